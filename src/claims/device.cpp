// SPDX-License-Identifier: Apache-2.0
#include "claims/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace gflow::claims {
namespace {

/// The domain and the name in it.
std::pair<std::string, std::string> qualified(const std::string& name, const std::string& driver) {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) return {driver, name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

CelValue value_of(const Attribute& attribute) {
  switch (attribute.kind) {
    case Attribute::Kind::Bool:
      return {attribute.text == "true"};
    case Attribute::Kind::Version:
      return {read_version(attribute.text).value_or(Version{})};
    case Attribute::Kind::String:
      return {attribute.text};
    case Attribute::Kind::Int:
      break;
  }
  std::int64_t number = 0;
  const char* end = attribute.text.data() + attribute.text.size();
  (void)std::from_chars(attribute.text.data(), end, number);  // it was written from a number
  return {number};
}

CelValue domains_of(std::map<std::string, CelFields> domains) {
  CelFields all;
  for (auto& [name, fields] : domains) all[name] = map_of(std::move(fields));
  return map_of(std::move(all), true);
}

/// What is wrong with a whole pool; "" if nothing is.
std::string trouble_of(Pool& pool) {
  std::set<std::string> names;
  for (const SharedSlice& slice : pool.slices) {
    for (const auto& [name, counters] : slice->counters) {
      if (!pool.counters.emplace(name, counters).second) return "two sets of counters of one name";
    }
    for (const Device& device : slice->devices) {
      if (!names.insert(device.name).second) return "two devices of one name";
    }
  }
  for (const SharedSlice& slice : pool.slices) {
    for (const Device& device : slice->devices) {
      for (const auto& [name, counters] : device.counters) {
        const auto set = pool.counters.find(name);
        const bool are_there =
            set != pool.counters.end() && std::ranges::all_of(counters, [&set](const auto& one) {
              return set->second.contains(one.first);
            });
        if (!are_there) return "a device of counters that it does not have";
      }
    }
  }
  return {};
}

bool is_tolerated_by(const DeviceTaint& taint, const DeviceToleration& one) {
  if (!one.effect.empty() && one.effect != taint.effect) return false;
  if (!one.key.empty() && one.key != taint.key) return false;
  if (one.op == "Exists") return true;
  return (one.op.empty() || one.op == "Equal") && !one.key.empty() && one.value == taint.value;
}

Amount whole_steps(const Amount& asked, const RequestPolicy::Range& range) {
  if (asked < range.min) return range.min;
  const std::int64_t step = range.step ? rounded(*range.step) : 0;
  if (step <= 0) return asked;
  const std::int64_t min = rounded(range.min);
  const __int128 more = __int128{rounded(asked)} - min;
  const __int128 steps = more / step + (more % step == 0 ? 0 : 1);
  return sum(whole(min), {steps * step * whole(1).nanos});
}

bool is_in_range(const Amount& consumed, const RequestPolicy::Range& range) {
  if (range.max && consumed > *range.max) return false;
  const std::int64_t step = range.step ? rounded(*range.step) : 0;
  return step <= 0 || (__int128{rounded(consumed)} - rounded(range.min)) % step == 0;
}

}  // namespace

CelValue device_value(const std::string& driver, const Device& device) {
  std::map<std::string, CelFields> attributes;
  for (const auto& [name, attribute] : device.attributes) {
    const auto [domain, id] = qualified(name, driver);
    attributes[domain][id] = value_of(attribute);
  }
  std::map<std::string, CelFields> capacity;
  for (const auto& [name, one] : device.capacity) {
    const auto [domain, id] = qualified(name, driver);
    capacity[domain][id] = {one.value};
  }
  return map_of({{"driver", {driver}},
                 {"attributes", domains_of(std::move(attributes))},
                 {"capacity", domains_of(std::move(capacity))},
                 {"allowMultipleAllocations", {device.is_shared}}});
}

std::vector<Pool> gather_pools(const std::vector<SharedSlice>& slices) {
  std::map<std::pair<std::string, std::string>, Pool> pools;
  for (const SharedSlice& slice : slices) {
    Pool& pool = pools[{slice->driver, slice->pool}];
    const bool is_first = pool.slices.empty();
    if (!is_first && slice->generation < pool.slices.front()->generation) continue;
    if (!is_first && slice->generation > pool.slices.front()->generation) pool.slices.clear();
    pool.driver = slice->driver;
    pool.name = slice->pool;
    pool.slices.push_back(slice);
  }
  std::vector<Pool> all;
  for (auto& [id, pool] : pools) {
    std::ranges::sort(pool.slices, [](const auto& a, const auto& b) { return a->name < b->name; });
    const auto count = static_cast<std::int64_t>(pool.slices.size());
    pool.trouble =
        count == pool.slices.front()->slices ? trouble_of(pool) : "not all of its slices there yet";
    all.push_back(std::move(pool));
  }
  return all;
}

const Attribute* find_attribute(const std::string& driver,
                                const Device& device,
                                const std::string& name) {
  const auto at = device.attributes.find(name);
  if (at != device.attributes.end()) return &at->second;
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos || name.substr(0, slash) != driver) return nullptr;
  const auto of_driver = device.attributes.find(name.substr(slash + 1));
  return of_driver == device.attributes.end() ? nullptr : &of_driver->second;
}

bool is_tolerated(const Device& device, const std::vector<DeviceToleration>& tolerations) {
  return std::ranges::all_of(device.taints, [&tolerations](const DeviceTaint& taint) {
    if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") return true;
    return std::ranges::any_of(tolerations,
                               [&taint](const auto& one) { return is_tolerated_by(taint, one); });
  });
}

Amount consumed_of(const std::optional<Amount>& asked, const Capacity& capacity) {
  const RequestPolicy* policy = capacity.policy ? &*capacity.policy : nullptr;
  if (!asked) {
    return policy != nullptr && policy->otherwise ? *policy->otherwise : capacity.value;
  }
  if (policy == nullptr) return *asked;
  if (policy->range) return whole_steps(*asked, *policy->range);
  for (const Amount& value : policy->values) {
    if (*asked <= value) return value;
  }
  return *asked;
}

bool is_allowed(const Amount& consumed, const Capacity& capacity) {
  if (consumed < Amount{}) return false;
  if (!capacity.policy) return true;
  const RequestPolicy& policy = *capacity.policy;
  if (policy.otherwise && consumed == *policy.otherwise) return true;
  if (policy.range) return is_in_range(consumed, *policy.range);
  return policy.values.empty() || std::ranges::find(policy.values, consumed) != policy.values.end();
}

}  // namespace gflow::claims

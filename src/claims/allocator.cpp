// SPDX-License-Identifier: Apache-2.0
#include "claims/allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace gflow::claims {
namespace {

/// Devices that one claim may be given, of the API.
constexpr std::size_t kMostDevices = 32;
/// Devices that are tried before what goes together is given up.
constexpr int kMostTries = 4000;  // for each alternative
constexpr int kMostTriesInAll = 12'000;

struct Candidate {
  const Pool* pool = nullptr;
  const Slice* slice = nullptr;
  const Device* device = nullptr;
  DeviceId id{};
};

/// What it leaves over; the least first.
using Waste = std::tuple<bool, std::int64_t>;

/// A request with what may be given for it.
struct Option {
  const Request* request = nullptr;
  std::vector<Candidate> candidates{};
  std::size_t count = 0;
  std::string lack{};  ///< why it cannot be had; "" if it may be
};

std::optional<Amount> asked_of(const Request& request, const std::string& capacity) {
  const auto at = request.capacity.find(capacity);
  return at == request.capacity.end() ? std::nullopt : std::optional(at->second);
}

Amounts consumed_by(const Request& request, const Device& device) {
  Amounts consumed;
  for (const auto& [name, capacity] : device.capacity) {
    consumed[name] = consumed_of(asked_of(request, name), capacity);
  }
  return consumed;
}

/// Whether the capacities are enough beside what is had of them.
bool has_capacity(const Request& request, const Device& device, const Amounts* used) {
  const auto is_there = [&device](const auto& one) { return device.capacity.contains(one.first); };
  if (!std::ranges::all_of(request.capacity, is_there)) return false;
  for (const auto& [name, capacity] : device.capacity) {
    const Amount consumed = consumed_of(asked_of(request, name), capacity);
    if (!is_allowed(consumed, capacity)) return false;
    const auto at = used == nullptr ? Amounts::const_iterator{} : used->find(name);
    const bool is_used = used != nullptr && at != used->end();
    if (sum(consumed, is_used ? at->second : Amount{}) > capacity.value) return false;
  }
  return true;
}

/// A thousandth of a whole.
std::int64_t per_mille(const Amount& part, const Amount& of) {
  if (of.nanos <= 0 || part.nanos <= 0) return 0;
  return static_cast<std::int64_t>(part.nanos / std::max<__int128>(of.nanos / 1000, 1));
}

bool goes_for(const std::vector<std::string>& requests, const std::string& name) {
  if (requests.empty()) return true;
  const std::string parent = name.substr(0, name.find('/'));
  return std::ranges::any_of(requests,
                             [&](const std::string& one) { return one == name || one == parent; });
}

class Allocation {
 public:
  Allocation(const Supply& supply, const std::vector<Asked>& claims)
      : supply_(supply), claims_(claims), given_(claims.size()) {}

  Result<std::vector<Given>> all() {
    for (const Asked& claim : claims_) {
      std::vector<std::vector<Option>>& of_claim = options_.emplace_back();
      for (const auto& alternatives : claim.spec->requests) {
        of_claim.push_back(GF_TRY(options_of(claim, alternatives)));
      }
    }
    if (!ask(0, 0)) {
      const std::string why = gave_up_ ? "too many ways to combine devices were tried in vain"
                                       : fmt::format("no devices go together for {}", apart_);
      return fail(Code::Infeasible, why);
    }
    for (std::size_t i = 0; i < claims_.size(); ++i) add_config(i);
    return std::move(given_);
  }

 private:
  Result<std::vector<Option>> options_of(const Asked& claim,
                                         const std::vector<Request>& alternatives) {
    std::vector<Option> options;
    std::string lack;
    for (const Request& request : alternatives) {
      Option option = GF_TRY(option_of(claim, request));
      if (option.lack.empty()) {
        options.push_back(std::move(option));
      } else if (lack.empty()) {
        lack = option.lack;
      }
    }
    if (options.empty()) return fail(Code::Infeasible, lack);
    return options;
  }

  Result<Option> option_of(const Asked& claim, const Request& request) {
    const auto of_class = supply_.classes.find(request.device_class);
    if (of_class == supply_.classes.end()) {
      return fail(Code::Infeasible, fmt::format("deviceclass {} not found", request.device_class));
    }
    Option option{.request = &request};
    const auto lacking = [&] {
      return fmt::format("Insufficient devices of class {} for resourceclaim {}",
                         request.device_class,
                         claim.name);
    };
    for (const Pool* one : supply_.pools) {
      const Pool& pool = *one;
      if (!pool.trouble.empty()) {
        if (!request.is_all || !is_any_here(pool)) continue;
        option.lack = fmt::format("pool {} had {}", pool.name, pool.trouble);
        return option;
      }
      GF_CHECK(gather(pool, of_class->second, option));
    }
    option.count = request.is_all
                       ? option.candidates.size()
                       : static_cast<std::size_t>(std::max<std::int64_t>(request.count, 0));
    const bool is_none = request.is_all && option.candidates.empty();
    if (is_none || option.count > option.candidates.size()) option.lack = lacking();
    if (option.count > kMostDevices) {
      option.lack =
          fmt::format("no more than {} devices can be had by one resourceclaim", kMostDevices);
    }
    if (!request.is_all) sort(option);
    return option;
  }

  [[nodiscard]] bool is_any_here(const Pool& pool) const {
    return std::ranges::any_of(pool.slices, [this](const SharedSlice& slice) {
      return std::ranges::any_of(slice->devices, [&](const Device& device) {
        return supply_.is_here(where_of(*slice, device));
      });
    });
  }

  [[nodiscard]] static Where where_of(const Slice& slice, const Device& device) {
    return slice.where ? *slice.where : device.where.value_or(Where{});
  }

  /// Those that could be had, and of which all are to be had also those that somebody else has.
  Result<void> gather(const Pool& pool, const DeviceClass& of_class, Option& option) {
    const Request& request = *option.request;
    for (const SharedSlice& slice : pool.slices) {
      if (slice->where && !supply_.is_here(*slice->where)) continue;
      for (const Device& device : slice->devices) {
        if (device.has_conditions) continue;
        if (!slice->where && !supply_.is_here(where_of(*slice, device))) continue;
        if (!GF_TRY(is_selected(of_class, request, device))) continue;
        Candidate one{&pool, slice.get(), &device, {pool.driver, pool.name, device.name}};
        if (!request.is_all && !is_free(one, request)) continue;
        option.candidates.push_back(std::move(one));
      }
    }
    return {};
  }

  Result<bool> is_selected(const DeviceClass& of_class,
                           const Request& request,
                           const Device& device) {
    const auto by_class = supply_.matcher.hold(of_class.selectors, device);
    if (!by_class) return with_context(by_class.error(), "deviceclass " + of_class.name);
    if (!*by_class) return false;
    const auto by_request = supply_.matcher.hold(request.selectors, device);
    if (!by_request) return with_context(by_request.error(), "request " + request.name);
    return *by_request;
  }

  /// As things are by now.
  [[nodiscard]] bool is_free(const Candidate& one, const Request& request) const {
    if (is_had_whole(one.id) || !is_tolerated(*one.device, request.tolerations)) return false;
    const auto used = parts_had(one.id);
    if (used && !one.device->is_shared) return false;  // from when several might have it
    return has_capacity(request, *one.device, used ? &*used : nullptr) &&
           (used || has_counters(one));
  }

  [[nodiscard]] bool is_had_whole(const DeviceId& id) const {
    return supply_.usage.whole.contains(id) || given_usage_.whole.contains(id);
  }

  [[nodiscard]] bool is_had(const DeviceId& id) const {
    return is_had_whole(id) || supply_.usage.parts.contains(id) || given_usage_.parts.contains(id);
  }

  /// The first of all has it, or the last one does not any more.
  void count_counters(const Candidate& one, Amount (*change)(const Amount&, const Amount&)) {
    const auto at = counters_taken_.find(one.pool);
    if (at == counters_taken_.end()) return;
    for (const auto& [set, counters] : one.device->counters) {
      for (const auto& [name, amount] : counters) {
        Amount& taken = at->second[set][name];
        taken = change(taken, amount);
      }
    }
  }

  /// By others, and by what was given here; empty: nobody has a part of it.
  [[nodiscard]] std::optional<Amounts> parts_had(const DeviceId& id) const {
    const auto before = supply_.usage.parts.find(id);
    const auto now = given_usage_.parts.find(id);
    const bool is_before = before != supply_.usage.parts.end();
    if (now == given_usage_.parts.end()) {
      return is_before ? std::optional(before->second) : std::nullopt;
    }
    Amounts used = now->second;
    if (!is_before) return used;
    for (const auto& [name, amount] : before->second) used[name] = sum(used[name], amount);
    return used;
  }

  [[nodiscard]] bool has_counters(const Candidate& one) const {
    if (one.device->counters.empty()) return true;
    const std::map<std::string, Amounts>& taken = counters_taken(*one.pool);
    for (const auto& [set, counters] : one.device->counters) {
      const Amounts& there = one.pool->counters.at(set);
      for (const auto& [name, amount] : counters) {
        const auto of_set = taken.find(set);
        const bool is_taken = of_set != taken.end() && of_set->second.contains(name);
        const Amount before = is_taken ? of_set->second.at(name) : Amount{};
        if (sum(before, amount) > there.at(name)) return false;
      }
    }
    return true;
  }

  [[nodiscard]] const std::map<std::string, Amounts>& counters_taken(const Pool& pool) const {
    const auto [at, is_new] = counters_taken_.try_emplace(&pool);
    std::map<std::string, Amounts>& taken = at->second;
    if (!is_new) return taken;
    for (const SharedSlice& slice : pool.slices) {
      for (const Device& device : slice->devices) {
        if (device.counters.empty()) continue;
        if (is_had({pool.driver, pool.name, device.name})) add_counters(taken, device);
      }
    }
    return taken;
  }
  static void add_counters(std::map<std::string, Amounts>& taken, const Device& device) {
    for (const auto& [set, counters] : device.counters) {
      for (const auto& [name, amount] : counters) {
        taken[set][name] = sum(taken[set][name], amount);
      }
    }
  }

  /// The best first.
  void sort(Option& option) const {
    Amounts most;
    Amounts most_counters;
    for (const Candidate& one : option.candidates) {
      for (const auto& [name, capacity] : one.device->capacity) {
        most[name] = std::max(most[name], capacity.value);
      }
      for (const auto& [set, counters] : one.device->counters) {
        for (const auto& [name, amount] : counters) {
          most_counters[name] = std::max(most_counters[name], amount);
        }
      }
    }
    std::vector<std::pair<Waste, Candidate>> judged;
    for (Candidate& one : option.candidates) {
      judged.emplace_back(waste_of(one, *option.request, most, most_counters), std::move(one));
    }
    std::ranges::stable_sort(judged,
                             [](const auto& a, const auto& b) { return a.first < b.first; });
    option.candidates.clear();
    for (auto& [waste, one] : judged) option.candidates.push_back(std::move(one));
  }

  /// Of a shared one: the most that is left of any of its capacities. Of another: how much there is
  /// of it, beside the others.
  [[nodiscard]] Waste waste_of(const Candidate& one,
                               const Request& request,
                               const Amounts& most,
                               const Amounts& most_counters) const {
    std::int64_t waste = 0;
    if (one.device->is_shared) {
      const auto used = parts_had(one.id);
      for (const auto& [name, consumed] : consumed_by(request, *one.device)) {
        const Amount& value = one.device->capacity.at(name).value;
        Amount left = difference(value, consumed);
        if (used && used->contains(name)) left = difference(left, used->at(name));
        waste = std::max(waste, per_mille(left, value));
      }
      return {!used, waste};
    }
    for (const auto& [name, capacity] : one.device->capacity) {
      waste += per_mille(capacity.value, most.at(name));
    }
    bool is_whole = true;
    for (const auto& [set, counters] : one.device->counters) {
      is_whole = is_whole && !counters_taken(*one.pool).contains(set);
      for (const auto& [name, amount] : counters) {
        waste += per_mille(amount, most_counters.at(name));
      }
    }
    return {is_whole, waste};
  }

  /// From this request on, all that is asked for.
  [[nodiscard]] bool ask(std::size_t claim, std::size_t request) {
    if (claim == options_.size()) return true;
    if (request == options_[claim].size()) return ask(claim + 1, 0);
    for (const Option& option : options_[claim][request]) {
      if (given_[claim].devices.size() + option.count > kMostDevices) continue;
      const Place from{claim, request, &option};
      const int most = std::exchange(most_, std::min(tries_ + kMostTries, kMostTriesInAll));
      if (pick(from, 0, 0)) return true;
      most_ = most;
    }
    if (apart_.empty()) apart_ = "resourceclaim " + claims_[claim].name;
    return false;
  }

  struct Place {
    std::size_t claim;
    std::size_t request;
    const Option* option;
  };

  /// One more device of this request, from this candidate on.
  [[nodiscard]] bool pick(const Place& place, std::size_t picked, std::size_t from) {
    const Option& option = *place.option;
    if (picked == option.count) return ask(place.claim, place.request + 1);
    const std::size_t last = option.candidates.size() - (option.count - picked);
    for (std::size_t i = from; i <= last; ++i) {
      if (++tries_ > most_) {
        gave_up_ = true;
        return false;
      }
      const Candidate& one = option.candidates[i];
      if (is_free(one, *option.request) && suits(place.claim, *option.request, one)) {
        give(place.claim, *option.request, one);
        if (pick(place, picked + 1, i + 1)) return true;
        take_back(place.claim);
      }
      if (option.request->is_all) return false;
    }
    return false;
  }

  /// Whether the constraints of its claim have it beside what that is given already.
  [[nodiscard]] bool suits(std::size_t claim, const Request& request, const Candidate& one) const {
    for (const Constraint& constraint : claims_[claim].spec->constraints) {
      if (!goes_for(constraint.requests, request.name)) continue;
      const Attribute* its = find_attribute(one.id.driver, *one.device, constraint.attribute);
      if (its == nullptr) return false;
      for (const auto& [name, other] : picked_) {
        if (name.first != claim || !goes_for(constraint.requests, name.second)) continue;
        const Attribute* others =
            find_attribute(other->id.driver, *other->device, constraint.attribute);
        const bool is_same = others != nullptr && *others == *its;
        if (is_same == constraint.is_distinct) return false;
      }
    }
    return true;
  }

  void give(std::size_t claim, const Request& request, const Candidate& one) {
    GivenDevice device{.request = request.name,
                       .id = one.id,
                       .is_shared = one.device->is_shared,
                       .tolerations_text = request.tolerations_text,
                       .where = where_of(*one.slice, *one.device),
                       .binds_to_node = one.device->binds_to_node};
    if (device.is_shared) device.consumed = consumed_by(request, *one.device);
    if (!is_had(one.id)) count_counters(one, sum);
    given_usage_.add(device);
    given_[claim].devices.push_back(std::move(device));
    picked_.push_back({{claim, request.name}, &one});
    chosen_classes_.push_back(request.device_class);
  }

  void take_back(std::size_t claim) {
    given_usage_.remove(given_[claim].devices.back());
    if (!is_had(picked_.back().second->id)) count_counters(*picked_.back().second, difference);
    given_[claim].devices.pop_back();
    picked_.pop_back();
    chosen_classes_.pop_back();
  }

  /// That of classes first, each once, and then its own.
  void add_config(std::size_t claim) {
    std::vector<std::string> classes;
    std::map<std::string, std::vector<std::string>> requests;
    std::set<std::string> chosen;
    for (std::size_t i = 0; i < picked_.size(); ++i) {
      const auto& [at, name] = picked_[i].first;
      if (at != claim || !chosen.insert(name).second) continue;
      const std::string& of_class = chosen_classes_[i];
      if (!requests.contains(of_class)) classes.push_back(of_class);
      requests[of_class].push_back(name);
    }
    std::vector<Config>& config = given_[claim].config;
    for (const std::string& name : classes) {
      for (const std::string& text : supply_.classes.at(name).config) {
        config.push_back({requests[name], text, true});
      }
    }
    for (const Config& own : claims_[claim].spec->config) {
      const bool goes =
          own.requests.empty() || std::ranges::any_of(chosen, [&own](const std::string& name) {
            return goes_for(own.requests, name);
          });
      if (goes) config.push_back(own);
    }
  }

  const Supply& supply_;
  const std::vector<Asked>& claims_;
  Usage given_usage_;  ///< what was given here
  std::vector<Given> given_;
  std::vector<std::vector<std::vector<Option>>> options_;
  /// What was given, in its order: for which claim and request.
  std::vector<std::pair<std::pair<std::size_t, std::string>, const Candidate*>> picked_;
  std::vector<std::string> chosen_classes_;  ///< of these
  std::string apart_;                        ///< for which it was not found first
  int tries_ = 0;
  int most_ = kMostTries;  ///< of these, for the alternative that is tried
  bool gave_up_ = false;
  /// By all of a pool's devices that somebody has, wherever they are: as others have them, and what
  /// was given here.
  mutable std::map<const Pool*, std::map<std::string, Amounts>> counters_taken_;
};

}  // namespace

void Usage::add(const GivenDevice& device) {
  if (!device.is_shared) {
    ++whole[device.id];
    return;
  }
  ++holders[device.id];
  Amounts& used = parts[device.id];
  for (const auto& [name, amount] : device.consumed) {
    used[name] = sum(used[name], std::max(amount, Amount{}));  // less than nothing makes no room
  }
}

bool Usage::is_double(const DeviceId& device) const {
  const auto at = whole.find(device);
  return at != whole.end() && (at->second > 1 || parts.contains(device));
}

void Usage::remove(const GivenDevice& device) {
  if (!device.is_shared) {
    const auto at = whole.find(device.id);
    if (at != whole.end() && --at->second <= 0) whole.erase(at);
    return;
  }
  const auto held = holders.find(device.id);
  if (held == holders.end()) return;
  if (--held->second <= 0) {
    holders.erase(held);
    parts.erase(device.id);
    return;
  }
  Amounts& used = parts[device.id];
  for (const auto& [name, amount] : device.consumed) {
    used[name] = difference(used[name], std::max(amount, Amount{}));
  }
}

Result<std::vector<Given>> allocate(const Supply& supply, const std::vector<Asked>& claims) {
  for (const Asked& claim : claims) {
    if (!claim.spec->trouble.empty()) return fail(Code::Infeasible, claim.spec->trouble);
  }
  return Allocation(supply, claims).all();
}

}  // namespace gflow::claims

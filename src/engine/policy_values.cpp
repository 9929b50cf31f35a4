// SPDX-License-Identifier: Apache-2.0
#include "engine/policy_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gflow::engine {
namespace {

std::string text_of(std::chrono::seconds value) { return fmt::format("{}s", value.count()); }
std::string text_of(std::size_t value) { return fmt::format("{}", value); }
std::string text_of(int value) { return fmt::format("{}", value); }
std::string text_of(bool value) { return value ? "true" : "false"; }

Result<void> read(std::chrono::seconds& out, const std::string& text) {
  out = text == "0s" || text == "0" ? std::chrono::seconds(0) : GF_TRY(parse_duration(text));
  return {};
}
Result<void> read(bool& out, const std::string& text) {
  if (text != "true" && text != "false") {
    return fail(Code::Usage, fmt::format("'{}' is neither true nor false", printable(text)));
  }
  out = text == "true";
  return {};
}
template <std::integral T>
Result<void> read(T& out, const std::string& text) {
  const auto number = parse_number(text);
  if (!number || !std::in_range<T>(*number)) {
    return fail(Code::Usage, fmt::format("'{}' is not a whole number from 0 on", printable(text)));
  }
  out = static_cast<T>(*number);
  return {};
}

struct Setting {
  std::string_view name;
  std::string (*write)(const Policy&);
  Result<void> (*read)(Policy&, const std::string&);
};

template <auto Member>
constexpr Setting setting(std::string_view name) {
  return {name,
          [](const Policy& policy) -> std::string { return text_of(policy.*Member); },
          [](Policy& policy, const std::string& text) { return read(policy.*Member, text); }};
}

/// Errors: Usage with the names there are.
Result<void> read_placement(Policy& policy, const std::string& text) {
  std::vector<std::string> names;
  for (const placement::PolicyEntry& entry : placement::policies()) {
    names.emplace_back(entry.name);
  }
  if (!text.empty() && std::ranges::find(names, text) == names.end()) {
    const auto near = nearest(text, names);
    return fail(Code::Usage,
                fmt::format("there is no policy '{}'{}; there are: {}",
                            printable(text),
                            near ? fmt::format(" (is it '{}'?)", *near) : "",
                            join(names, ", ")));
  }
  policy.placement = text;
  return {};
}

std::string write_order(const Policy& policy) {
  return policy.order.order == Order::Learned ? "learned" : "submission";
}
Result<void> read_order(Policy& policy, const std::string& text) {
  if (text != "learned" && text != "submission") {
    return fail(Code::Usage,
                fmt::format("'{}' is neither submission nor learned", printable(text)));
  }
  policy.order.order = text == "learned" ? Order::Learned : Order::Submission;
  return {};
}

template <auto Member>
constexpr Setting sharing_setting(std::string_view name) {
  return {
      name,
      [](const Policy& policy) -> std::string { return text_of(policy.sharing.*Member); },
      [](Policy& policy, const std::string& text) { return read(policy.sharing.*Member, text); }};
}

using placement::SharingRules;
constexpr Setting kSettings[] = {
    setting<&Policy::backfill_patience>("backfill_patience"),
    setting<&Policy::launch_backoff>("launch_backoff"),
    setting<&Policy::max_launch_failures>("max_launch_failures"),
    setting<&Policy::keep_ended>("keep_ended"),
    setting<&Policy::max_ended>("max_ended"),
    setting<&Policy::max_queued>("max_queued"),
    setting<&Policy::max_queued_per_user>("max_queued_per_user"),
    setting<&Policy::max_submit>("max_submit"),
    setting<&Policy::max_dependencies_per_job>("max_dependencies_per_job"),
    setting<&Policy::max_dependencies_per_user>("max_dependencies_per_user"),
    setting<&Policy::max_dependencies>("max_dependencies"),
    {"order", write_order, read_order},
    setting<&Policy::keep_after>("keep_after"),
    {"guard",
     [](const Policy& policy) { return text_of(policy.order.guard); },
     [](Policy& policy, const std::string& text) { return read(policy.order.guard, text); }},
    setting<&Policy::preempt>("preempt"),
    {"placement", [](const Policy& policy) { return policy.placement; }, read_placement},
    sharing_setting<&SharingRules::max_jobs>("max_jobs"),
    sharing_setting<&SharingRules::max_time_sliced>("max_time_sliced"),
    sharing_setting<&SharingRules::mix_modes>("mix_modes"),
    setting<&Policy::share_with_others>("share_with_others"),
    setting<&Policy::allow_see_all>("allow_see_all"),
};

}  // namespace

std::vector<PolicyValue> policy_values(const Policy& policy) {
  std::vector<PolicyValue> values;
  for (const Setting& one : kSettings) values.push_back({std::string(one.name), one.write(policy)});
  return values;
}

Result<void> set_policy_value(Policy& policy, const PolicyValue& value) {
  std::vector<std::string> names;
  for (const Setting& one : kSettings) {
    names.emplace_back(one.name);
    if (one.name != value.name) continue;
    if (auto done = one.read(policy, value.value); !done) {
      return with_context(done.error(), value.name);
    }
    return {};
  }
  const auto near = nearest(value.name, names);
  return fail(Code::Usage,
              fmt::format("there is no setting '{}'{}; there are: {}",
                          printable(value.name),
                          near ? fmt::format(" (is it '{}'?)", *near) : "",
                          join(names, ", ")));
}

}  // namespace gflow::engine

// SPDX-License-Identifier: Apache-2.0
#include "daemon/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "placement/policy.h"

namespace gflow::daemon {
namespace {

using Done = Result<void>;
using Text = const std::string&;

Result<void> set_duration(std::chrono::seconds& field, const std::string& value) {
  field = GF_TRY(parse_duration(value));
  return {};
}

Result<void> set_count(std::size_t& field, const std::string& value) {
  const auto number = parse_number(value);
  if (!number || *number == 0) {
    return fail(Code::Usage, fmt::format("'{}' is not a number from 1 on", printable(value)));
  }
  field = *number;
  return {};
}

Result<void> set_flag(bool& field, const std::string& value) {
  if (value != "true" && value != "false") {
    return fail(Code::Usage, fmt::format("'{}' is neither true nor false", printable(value)));
  }
  field = value == "true";
  return {};
}

Result<void> set_log_level(Config& config, const std::string& value) {
  constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};
  if (std::ranges::find(kLevels, value) == kLevels.end()) {
    return fail(Code::Usage,
                fmt::format("'{}' is not one of debug, info, warning, error", printable(value)));
  }
  config.log_level = value;
  return {};
}

Done set_text(std::string& field, Text value) {
  field = value;
  return {};
}

Done set_number(int& field, Text value, int least) {
  constexpr int kMax = 1'000'000;
  const auto number = parse_number(value);
  if (!number || *number < static_cast<std::uint64_t>(least) || *number > kMax) {
    return fail(Code::Usage,
                fmt::format("'{}' is not a number from {} to {}", printable(value), least, kMax));
  }
  field = static_cast<int>(*number);
  return {};
}

Done set_placement(Config& config, Text value) {
  std::vector<std::string> names;
  for (const placement::PolicyEntry& entry : placement::policies()) names.emplace_back(entry.name);
  if (!value.empty() && placement::find_policy(value) == nullptr) {
    return fail(Code::Usage,
                fmt::format("there is no placement policy '{}'; there are {}",
                            printable(value),
                            join(names, ", ")));
  }
  return set_text(config.policy.placement, value);
}

Done set_order(Config& config, Text value) {
  if (value != "submission" && value != "learned") {
    return fail(Code::Usage,
                fmt::format("'{}' is neither submission nor learned", printable(value)));
  }
  config.policy.order.order =
      value == "learned" ? engine::Order::Learned : engine::Order::Submission;
  return {};
}

/// "zone=a,disk=nvme".
Done set_labels(Config& config, Text value) {
  std::vector<Label> labels;
  for (const std::string_view part : split(value, ',')) {
    const std::string_view text = trim(part);
    if (text.empty()) continue;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return fail(Code::Usage,
                  fmt::format("'{}' is not of the form KEY=VALUE", printable(std::string(text))));
    }
    labels.push_back(
        {std::string(trim(text.substr(0, equals))), std::string(trim(text.substr(equals + 1)))});
  }
  std::ranges::sort(labels);
  const auto same = [](const Label& a, const Label& b) { return a.key == b.key; };
  if (const auto twice = std::ranges::adjacent_find(labels, same); twice != labels.end()) {
    return fail(Code::Usage, fmt::format("'{}' is there twice", printable(twice->key)));
  }
  config.policy.labels = std::move(labels);
  return {};
}

constexpr auto kKeys = std::to_array<ConfigKey>({
    {"daemon", "devices", [](Config& c, Text v) { return set_text(c.devices, v); }},
    {"daemon", "socket", [](Config& c, Text v) { return set_text(c.socket, v); }},
    {"daemon", "log_level", set_log_level},
    {"scheduler",
     "backfill_patience",
     [](Config& c, Text v) { return set_duration(c.policy.backfill_patience, v); }},
    {"scheduler", "order", set_order},
    {"scheduler",
     "keep_after",
     [](Config& c, Text v) { return set_duration(c.policy.keep_after, v); }},
    {"scheduler", "guard", [](Config& c, Text v) { return set_duration(c.policy.order.guard, v); }},
    {"scheduler", "preempt", [](Config& c, Text v) { return set_flag(c.policy.preempt, v); }},
    {"scheduler",
     "keep_ended",
     [](Config& c, Text v) { return set_duration(c.policy.keep_ended, v); }},
    {"scheduler", "max_ended", [](Config& c, Text v) { return set_count(c.policy.max_ended, v); }},
    {"scheduler",
     "max_queued",
     [](Config& c, Text v) { return set_count(c.policy.max_queued, v); }},
    {"scheduler",
     "max_submit",
     [](Config& c, Text v) { return set_count(c.policy.max_submit, v); }},
    {"placement", "policy", set_placement},
    {"placement",
     "gpu_weight",
     [](Config& c, Text v) { return set_number(c.policy.placement_options.gpu_weight, v, 0); }},
    {"placement",
     "memory_weight",
     [](Config& c, Text v) { return set_number(c.policy.placement_options.memory_weight, v, 0); }},
    {"placement",
     "cpu_weight",
     [](Config& c, Text v) { return set_number(c.policy.placement_options.cpu_weight, v, 0); }},
    {"placement",
     "fragmentation_weight",
     [](Config& c, Text v) {
       return set_number(c.policy.placement_options.fragmentation_weight, v, 0);
     }},
    {"sharing",
     "max_jobs",
     [](Config& c, Text v) { return set_number(c.policy.sharing.max_jobs, v, 1); }},
    {"sharing",
     "max_time_sliced",
     [](Config& c, Text v) { return set_number(c.policy.sharing.max_time_sliced, v, 1); }},
    {"sharing",
     "mix_modes",
     [](Config& c, Text v) { return set_flag(c.policy.sharing.mix_modes, v); }},
    {"sharing",
     "with_others",
     [](Config& c, Text v) { return set_flag(c.policy.share_with_others, v); }},
    {"sharing",
     "allow_see_all",
     [](Config& c, Text v) { return set_flag(c.policy.allow_see_all, v); }},
    {"node", "labels", set_labels},
    {"runner",
     "launch_backoff",
     [](Config& c, Text v) { return set_duration(c.policy.launch_backoff, v); }},
    {"runner", "cgroups", [](Config& c, Text v) { return set_flag(c.cgroups, v); }},
    {"limits",
     "max_queued_per_user",
     [](Config& c, Text v) { return set_count(c.policy.max_queued_per_user, v); }},
    {"limits",
     "max_dependencies_per_job",
     [](Config& c, Text v) { return set_count(c.policy.max_dependencies_per_job, v); }},
    {"limits",
     "max_dependencies_per_user",
     [](Config& c, Text v) { return set_count(c.policy.max_dependencies_per_user, v); }},
    {"limits",
     "max_dependencies",
     [](Config& c, Text v) { return set_count(c.policy.max_dependencies, v); }},
    {"store",
     "ballast",
     [](Config& c, Text v) -> Done {
       c.ballast = GF_TRY(parse_memory(v));
       return {};
     }},
});

}  // namespace

std::span<const ConfigKey> config_key_table() { return kKeys; }

}  // namespace gflow::daemon

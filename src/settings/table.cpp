// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "base/translate.h"
#include "placement/policy.h"
#include "settings/field.h"
#include "settings/sections.h"

namespace gflow::settings {
namespace {

/// "lab.yaml" of "sim:lab.yaml"; "" of what names no file.
std::string_view file_of_devices(std::string_view devices) {
  constexpr std::string_view kSimulated = "sim:";
  if (!devices.starts_with(kSimulated)) return "";
  const std::string_view rest = devices.substr(kSimulated.size());
  const bool is_file = rest.ends_with(".yaml") || rest.ends_with(".yml") || rest.contains('/');
  return is_file ? rest : "";
}

std::vector<std::string> placement_names() {
  std::vector<std::string> names = {""};
  for (const placement::PolicyEntry& entry : placement::policies()) names.emplace_back(entry.name);
  return names;
}

std::string write_order(const Settings& settings) {
  return settings.policy.order.order == engine::Order::Learned ? "learned" : "submission";
}
Result<void> read_order(Settings& settings, const std::string& text) {
  if (text != "learned" && text != "submission") {
    return fail(Code::Usage, tr_format("'{}' is neither learned nor submission", printable(text)));
  }
  settings.policy.order.order =
      text == "learned" ? engine::Order::Learned : engine::Order::Submission;
  return {};
}

/// "zone=a, disk=nvme" as pairs, sorted by key. Errors: another form, a key given twice.
Result<std::vector<Label>> read_pairs(const std::string& text) {
  std::vector<Label> pairs;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view one = trim(part);
    if (one.empty()) continue;
    const std::size_t equals = one.find('=');
    const std::string_view key = trim(one.substr(0, equals));
    if (equals == std::string_view::npos || key.empty()) {
      return fail(Code::Usage,
                  tr_format("'{}' is not of the form KEY=VALUE", printable(std::string(one))));
    }
    pairs.push_back({std::string(key), std::string(trim(one.substr(equals + 1)))});
  }
  std::ranges::sort(pairs);
  const auto same = [](const Label& a, const Label& b) { return a.key == b.key; };
  if (const auto twice = std::ranges::adjacent_find(pairs, same); twice != pairs.end()) {
    return fail(Code::Usage, tr_format("'{}' is given twice", printable(twice->key)));
  }
  return pairs;
}

std::string write_labels(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings.labels) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  }
  return text;
}
Result<void> read_labels(Settings& settings, const std::string& text) {
  settings.labels = GF_TRY(read_pairs(text));
  return {};
}

Result<void> read_node_name(Settings& settings, const std::string& text) {
  if (!text.empty() && !is_node_name(text)) {
    return fail(Code::Usage,
                tr_format("'{}' is not a node name: 1 to 64 letters, digits, '.', '-' and '_'",
                          printable(text)));
  }
  settings.node_name = text;
  return {};
}

using Numbers = std::map<std::string, int, std::less<>>;

constexpr int kMaxGpus = 100'000;

std::string write_numbers(const Numbers& numbers) {
  std::string text;
  for (const auto& [name, most] : numbers) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, most);
  }
  return text;
}
Result<void> read_numbers(Numbers& numbers, const std::string& text, int max) {
  Numbers read;
  for (const auto& [name, value] : GF_TRY(read_pairs(text))) {
    const auto most = parse_number(value);
    if (!most || std::cmp_greater(*most, max)) {
      return fail(
          Code::Usage,
          tr_format(
              "'{}' of {} is not a number from 0 to {}", printable(value), printable(name), max));
    }
    read[name] = static_cast<int>(*most);
  }
  numbers = std::move(read);
  return {};
}

void add_daemon(std::vector<Setting>& table) {
  static constexpr std::string_view kSection = "daemon";
  table.push_back(absolute(
      of(S{.section = kSection,
           .name = "devices",
           .applies = kRestart,
           .flag = "devices",
           .help = tr_later(
               "GPUs to use: auto, none, nvml, sim:8xH100, sim:2xRTX3090+1xA100, sim:FILE.yaml")},
         [](auto& s) -> auto& { return s.devices; }),
      file_of_devices));
  table.push_back(absolute(of(S{.section = kSection,
                                .name = "socket",
                                .applies = kRestart,
                                .help = tr_later("path of the socket; \"\" is the usual one")},
                              [](auto& s) -> auto& { return s.socket; }),
                           [](std::string_view socket) { return socket; }));
  table.push_back(
      of(S{.section = kSection,
           .name = "log_level",
           .type = Type::Choice,
           .choices = {"debug", "info", "warning", "error"},
           .help = tr_later("least severe messages logged: debug, info, warning or error")},
         [](auto& s) -> auto& { return s.log_level; }));
}

void add_scheduler(std::vector<Setting>& table) {
  static constexpr std::string_view kSection = "scheduler";
  const auto add = [&table](Setting setting, auto field) {
    setting.section = kSection;
    setting.part = kPolicy;
    table.push_back(of(std::move(setting), field));
  };
  add(S{.name = "backfill_patience",
        .help = tr_later("how long jobs may pass a blocked one when nothing can be proven")},
      [](auto& s) -> auto& { return s.policy.backfill_patience; });
  table.push_back(
      {.section = kSection,
       .name = "order",
       .type = Type::Choice,
       .part = kPolicy,
       .choices = {"learned", "submission"},
       .help = tr_later("who goes first among jobs of one priority: learned or submission "
                        "(queue.md)"),
       .write = write_order,
       .read = read_order});
  add(S{.name = "keep_after", .help = tr_later("learned: how long a blocked job lets others pass")},
      [](auto& s) -> auto& { return s.policy.keep_after; });
  add(S{.name = "guard",
        .help = tr_later("learned: a job that has waited this long goes before all that have not")},
      [](auto& s) -> auto& { return s.policy.order.guard; });
  add(S{.name = "preempt",
        .help = tr_later("jobs that allow it may be preempted by one ahead of them")},
      [](auto& s) -> auto& { return s.policy.preempt; });
  add(S{.name = "keep_ended",
        .help = tr_later("ended jobs and their logs are forgotten after this time")},
      [](auto& s) -> auto& { return s.policy.keep_ended; });
  add(S{.name = "max_ended",
        .min = 1,
        .max = 100 * kMillion,
        .help = tr_later(
            "maximum number of ended jobs kept; beyond it, the oldest of the user with most "
            "are forgotten")},
      [](auto& s) -> auto& { return s.policy.max_ended; });
  add(S{.name = "max_queued",
        .min = 1,
        .max = 100 * kMillion,
        .help = tr_later("maximum number of waiting jobs")},
      [](auto& s) -> auto& { return s.policy.max_queued; });
  add(S{.name = "max_submit",
        .min = 1,
        .max = 100 * kMillion,
        .help = tr_later("maximum number of jobs in one submission")},
      [](auto& s) -> auto& { return s.policy.max_submit; });
}

std::string write_others_jobs(const Settings& settings) {
  return std::string(kOthersJobsNames.at(static_cast<std::size_t>(settings.others_jobs)));
}
Result<void> read_others_jobs(Settings& settings, const std::string& text) {
  const auto* const found = std::ranges::find(kOthersJobsNames, text);
  if (found == kOthersJobsNames.end()) {
    return fail(Code::Usage,
                tr_format("'{}' is not one of {}{}", printable(text), "all, usage, none", ""));
  }
  settings.others_jobs = static_cast<OthersJobs>(found - kOthersJobsNames.begin());
  return {};
}

/// Whose names these are is nobody else's business, and nothing that starts hangs on them: they are
/// no part of a snapshot.
void add_people(std::vector<Setting>& table) {
  table.push_back({.section = "access",
                   .name = "administrators",
                   .type = Type::List,
                   .naming = Naming::Staff,
                   .help = tr_later("users besides root and gflowd's own: \"alice, @unixgroup\""),
                   .write = [](const Settings& s) { return write_list(s.roles.administrators); },
                   .read = [](Settings& s, const std::string& text) -> Result<void> {
                     s.roles.administrators = read_list(text);
                     return {};
                   }});
  table.push_back(
      {.section = "access",
       .name = "operators",
       .type = Type::List,
       .naming = Naming::Staff,
       .help = tr_later("may change any job, give any priority and drain: \"bob, @unixgroup\""),
       .write = [](const Settings& s) { return write_list(s.roles.operators); },
       .read = [](Settings& s, const std::string& text) -> Result<void> {
         s.roles.operators = read_list(text);
         return {};
       }});
  table.push_back(
      {.section = "access",
       .name = "others_jobs",
       .type = Type::Choice,
       .choices = {"all", "usage", "none"},
       .help = tr_later("what users see of others' jobs: all but what is run, usage without "
                        "names, or none (privacy.md)"),
       .write = write_others_jobs,
       .read = read_others_jobs});
  table.push_back(
      of(S{.section = "priority",
           .name = "max",
           .max = kMaxPriority,
           .help = tr_later("highest priority a user may give a job; operators are exempt")},
         [](auto& s) -> auto& { return s.policy.priority.max; }));
  table.push_back(
      {.section = "priority",
       .name = "users",
       .type = Type::Map,
       .naming = Naming::Users,
       .help = tr_later("highest priority of single users: \"alice=100, bob=5\""),
       .write = [](const Settings& s) { return write_numbers(s.policy.priority.users); },
       .read =
           [](Settings& s, const std::string& text) {
             return read_numbers(s.policy.priority.users, text, kMaxPriority);
           }});
  table.push_back(
      {.section = "priority",
       .name = "projects",
       .type = Type::Map,
       .naming = Naming::Nobody,
       .help = tr_later(
           "highest priority of jobs of a project, for members of the unix group of its name"),
       .write = [](const Settings& s) { return write_numbers(s.policy.priority.projects); },
       .read =
           [](Settings& s, const std::string& text) {
             return read_numbers(s.policy.priority.projects, text, kMaxPriority);
           }});
}

void add_placement(std::vector<Setting>& table) {
  static constexpr std::string_view kSection = "placement";
  const auto add = [&table](Setting setting, auto field) {
    setting.section = kSection;
    setting.part = kPolicy;
    table.push_back(of(std::move(setting), field));
  };
  add(S{.name = "policy",
        .type = Type::Choice,
        .choices = placement_names(),
        .help =
            tr_later("which node and which GPUs a job gets; \"\" is gflow's own, see 'gflow lab'")},
      [](auto& s) -> auto& { return s.policy.placement; });
  add(S{.name = "gpu_weight",
        .help = tr_later("weight of GPU utilisation in spread, pack and balanced")},
      [](auto& s) -> auto& { return s.policy.placement_options.gpu_weight; });
  add(S{.name = "memory_weight", .help = tr_later("weight of memory utilisation")},
      [](auto& s) -> auto& { return s.policy.placement_options.memory_weight; });
  add(S{.name = "cpu_weight", .help = tr_later("weight of CPU utilisation")},
      [](auto& s) -> auto& { return s.policy.placement_options.cpu_weight; });
  add(S{.name = "fragmentation_weight", .help = tr_later("weight of fragmentation")},
      [](auto& s) -> auto& { return s.policy.placement_options.fragmentation_weight; });
}

Result<void> read_cut_gpus(Settings& settings, const std::string& text) {
  const std::vector<std::string> named = read_list(text);
  for (const std::string& gpu : named) {
    if (gpu == engine::Policy::kAllGpus || gpu.starts_with("GPU-")) continue;
    return fail(Code::Usage,
                tr_format("'{}' is no UUID of a GPU: write all, or UUIDs as 'nvidia-smi -L' lists "
                          "them, such as GPU-5f0c...",
                          printable(gpu)));
  }
  settings.policy.cut_gpus = named;
  return {};
}

void add_sharing(std::vector<Setting>& table) {
  static constexpr std::string_view kSection = "sharing";
  constexpr std::int64_t kMaxJobs = 1000;
  const auto add = [&table](Setting setting, auto field) {
    setting.section = kSection;
    setting.part = kPolicy;
    table.push_back(of(std::move(setting), field));
  };
  add(S{.name = "max_jobs",
        .min = 1,
        .max = kMaxJobs,
        .help = tr_later("maximum number of jobs with a share on one GPU")},
      [](auto& s) -> auto& { return s.policy.sharing.max_jobs; });
  add(S{.name = "max_time_sliced",
        .min = 1,
        .max = kMaxJobs,
        .help = tr_later("maximum number of time-sliced jobs on one GPU")},
      [](auto& s) -> auto& { return s.policy.sharing.max_time_sliced; });
  add(S{.name = "mix_modes", .help = tr_later("allow shares and time slices on the same GPU")},
      [](auto& s) -> auto& { return s.policy.sharing.mix_modes; });
  add(S{.name = "with_others", .help = tr_later("allocate GPUs that processes outside gflow use")},
      [](auto& s) -> auto& { return s.policy.share_with_others; });
  add(S{.name = "allow_see_all",
        .help = tr_later("allow jobs to see every GPU and reserve none (-1)")},
      [](auto& s) -> auto& { return s.policy.allow_see_all; });
  add(S{.name = "stop_overuse",
        .help = tr_later(
            "stop jobs that use a GPU they do not hold, or its memory far beyond their part")},
      [](auto& s) -> auto& { return s.policy.stop_overuse; });
  add(S{.name = "overuse_margin",
        .help = tr_later("memory of a GPU beyond its part that stop_overuse leaves a job")},
      [](auto& s) -> auto& { return s.policy.overuse_margin; });
  add(S{.name = "lend_idle_after",
        .help = tr_later("a job that leaves its whole GPU idle for so long lends it to one with "
                         "--preemptible=requeue until it uses it again; 0s: none does")},
      [](auto& s) -> auto& { return s.policy.lend_idle_after; });
  table.push_back({.section = kSection,
                   .name = "cut_gpus",
                   .type = Type::List,
                   .part = kPolicy,
                   .naming = Naming::Nobody,
                   .help = tr_later(
                       "GPUs with MIG enabled of which slices are made and removed as jobs request "
                       "them: \"GPU-5f0c..., GPU-77ab...\" or \"all\""),
                   .write = [](const Settings& s) { return write_list(s.policy.cut_gpus); },
                   .read = read_cut_gpus});
}

void add_limits(std::vector<Setting>& table) {
  static constexpr std::string_view kSection = "limits";
  const auto add = [&table](Setting setting, auto field) {
    setting.section = kSection;
    setting.part = kPolicy;
    setting.min = 1;
    setting.max = 100 * kMillion;
    table.push_back(of(std::move(setting), field));
  };
  add(S{.name = "max_queued_per_user",
        .help = tr_later("maximum number of waiting jobs of one user")},
      [](auto& s) -> auto& { return s.policy.max_queued_per_user; });
  add(S{.name = "max_unreserved_per_user",
        .help = tr_later(
            "maximum number of running jobs of one user that reserve no GPUs and no CPUs")},
      [](auto& s) -> auto& { return s.policy.max_unreserved_per_user; });
  table.push_back(
      of(S{.section = kSection,
           .name = "max_gpus_per_user",
           .part = kPolicy,
           .max = kMaxGpus,
           .help = tr_later("maximum number of GPUs the jobs of one user hold at once; 0: any")},
         [](auto& s) -> auto& { return s.policy.gpu_quota.per_user; }));
  table.push_back(
      {.section = kSection,
       .name = "max_gpus_of",
       .type = Type::Map,
       .part = kPolicy,
       .naming = Naming::Users,
       .help = tr_later("the same of single users: \"alice=8, bob=0\""),
       .write = [](const Settings& s) { return write_numbers(s.policy.gpu_quota.users); },
       .read =
           [](Settings& s, const std::string& text) {
             return read_numbers(s.policy.gpu_quota.users, text, kMaxGpus);
           }});
  add(S{.name = "max_stored_per_user",
        .help =
            tr_later("maximum size of scripts, environments and other texts of one user's jobs")},
      [](auto& s) -> auto& { return s.policy.max_stored_per_user; });
  add(S{.name = "max_keys_per_user",
        .help = tr_later("maximum number of submissions of one user in 24 hours that have an "
                         "Idempotency-Key, as those of gbatch do")},
      [](auto& s) -> auto& { return s.policy.max_keys_per_user; });
  add(S{.name = "max_dependencies_per_job",
        .help = tr_later("maximum number of jobs one job may depend on")},
      [](auto& s) -> auto& { return s.policy.max_dependencies_per_job; });
  add(S{.name = "max_dependencies_per_user",
        .help = tr_later("maximum number of dependencies of all waiting jobs of one user")},
      [](auto& s) -> auto& { return s.policy.max_dependencies_per_user; });
  add(S{.name = "max_dependencies",
        .help = tr_later("maximum number of dependencies of all waiting jobs")},
      [](auto& s) -> auto& { return s.policy.max_dependencies; });
  add(S{.name = "allocation_ttl",
        .help = tr_later("how long an allocation lasts that names no time and no process")},
      [](auto& s) -> auto& { return s.policy.allocation_ttl; });
}

void add_rest(std::vector<Setting>& table) {
  table.push_back(
      {.section = "node",
       .name = "name",
       .applies = kRestart,
       .help = tr_later("name of this machine; \"\" is that of the machine file, or the host "
                        "name up to the first dot"),
       .write = [](const Settings& settings) { return settings.node_name; },
       .read = read_node_name});
  table.push_back(
      {.section = "node",
       .name = "labels",
       .type = Type::Map,
       .naming = Naming::Nobody,
       .help = tr_later("labels of this machine, which jobs can select: \"zone=a,disk=nvme\""),
       .write = write_labels,
       .read = read_labels});
  table.push_back(of(S{.section = "runner",
                       .name = "cgroups",
                       .applies = kRestart,
                       .help = tr_later("use control groups where possible; false: never")},
                     [](auto& s) -> auto& { return s.cgroups; }));
  table.push_back(of(S{.section = "runner",
                       .name = "gpu_isolation",
                       .type = Type::Choice,
                       .applies = kRestart,
                       .choices = {"auto", "filter", "landlock", "none"},
                       .help = tr_later("what keeps jobs from GPUs they were not given: auto, "
                                        "filter, landlock or none")},
                     [](auto& s) -> auto& { return s.gpu_isolation; }));
  table.push_back(of(S{.section = "runner",
                       .name = "launch_backoff",
                       .part = kPolicy,
                       .min = 1,
                       .help = tr_later("delay after a failed launch; doubles each time")},
                     [](auto& s) -> auto& { return s.policy.launch_backoff; }));
  table.push_back(of(S{.section = "runner",
                       .name = "max_launch_failures",
                       .part = kPolicy,
                       .min = 1,
                       .help = tr_later("failed launches after which a job is put on hold")},
                     [](auto& s) -> auto& { return s.policy.max_launch_failures; }));
  table.push_back(of(S{.section = "store",
                       .name = "ballast",
                       .applies = kRestart,
                       .help = tr_later("disk space kept in reserve for a full disk")},
                     [](auto& s) -> auto& { return s.ballast; }));
  table.push_back(of(S{.section = "store",
                       .name = "backup_interval",
                       .min = 1,
                       .help = tr_later("time between backups of the database, if it changed")},
                     [](auto& s) -> auto& { return s.backup_interval; }));
  table.push_back(of(S{.section = "store",
                       .name = "max_backups",
                       .max = 1000,
                       .help = tr_later("number of backups kept; 0: none are made")},
                     [](auto& s) -> auto& { return s.max_backups; }));
}

}  // namespace

std::span<const Setting> table() {
  static const std::vector<Setting> all = [] {
    std::vector<Setting> made;
    add_daemon(made);
    add_scheduler(made);
    add_people(made);
    add_api(made);
    add_api_for_others(made);
    add_telemetry(made);
    add_placement(made);
    add_sharing(made);
    add_limits(made);
    add_rest(made);
    return made;
  }();
  return all;
}

}  // namespace gflow::settings

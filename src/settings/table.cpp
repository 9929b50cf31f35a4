// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <map>
#include <type_traits>
#include <utility>

#include "base/loopback_address.h"
#include "base/text.h"
#include "base/translate.h"
#include "placement/policy.h"
#include "settings/settings.h"

namespace gflow::settings {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kTenYears = std::int64_t{3650} * 86'400;

std::string value_text(bool value) { return value ? "true" : "false"; }
std::string value_text(const std::string& value) { return value; }
std::string value_text(seconds value) { return duration_text(value); }
std::string value_text(Memory value) { return memory_text(value); }
template <std::integral T>
std::string value_text(T value) {
  return fmt::format("{}", value);
}

Result<void> read_value(const Setting& /*setting*/, bool& field, const std::string& text) {
  if (text != "true" && text != "false") {
    return fail(Code::Usage, tr_format("'{}' is neither true nor false", printable(text)));
  }
  field = text == "true";
  return {};
}

template <std::integral T>
Result<void> read_value(const Setting& setting, T& field, const std::string& text) {
  const auto number = parse_number(text);
  if (!number || std::cmp_less(*number, setting.min) || std::cmp_greater(*number, setting.max)) {
    return fail(
        Code::Usage,
        tr_format("'{}' is not a number from {} to {}", printable(text), setting.min, setting.max));
  }
  field = static_cast<T>(*number);
  return {};
}

Result<void> read_value(const Setting& setting, seconds& field, const std::string& text) {
  const seconds value = text == "0" || text == "0s" ? seconds(0) : GF_TRY(parse_duration(text));
  if (value.count() < setting.min) {
    return fail(Code::Usage,
                tr_format("'{}' is too short; the minimum is {}",
                          printable(text),
                          duration_text(seconds(setting.min))));
  }
  field = value;
  return {};
}

Result<void> read_value(const Setting& /*setting*/, Memory& field, const std::string& text) {
  field = GF_TRY(parse_memory(text));
  return {};
}

Result<void> read_value(const Setting& setting, std::string& field, const std::string& text) {
  if (setting.type == Type::Choice &&
      std::ranges::find(setting.choices, text) == setting.choices.end()) {
    std::vector<std::string> named = setting.choices;
    std::erase(named, "");
    const auto near = nearest(text, named);
    return fail(Code::Usage,
                tr_format("'{}' is not one of {}{}",
                          printable(text),
                          join(named, ", "),
                          near ? tr_format("; did you mean '{}'?", *near) : ""));
  }
  field = text;
  return {};
}

template <typename T>
constexpr Type type_of() {
  if (std::is_same_v<T, bool>) return Type::Boolean;
  if (std::is_integral_v<T>) return Type::Integer;
  if (std::is_same_v<T, seconds>) return Type::Duration;
  if (std::is_same_v<T, Memory>) return Type::Size;
  return Type::Text;
}

/// A setting that is one field. `field(settings)` is a reference to it.
template <typename Field>
Setting of(Setting setting, Field field) {
  using T = std::remove_reference_t<decltype(field(std::declval<Settings&>()))>;
  if (setting.type == Type::Text) setting.type = type_of<T>();
  if (setting.type == Type::Integer && setting.max == 0) setting.max = kMillion;
  if (setting.type == Type::Duration && setting.max == 0) setting.max = kTenYears;
  setting.write = [field](const Settings& settings) { return value_text(field(settings)); };
  // A copy of what reading needs: the setting itself moves into the table.
  Setting rules = setting;
  setting.read = [field, rules](Settings& settings, const std::string& text) {
    return read_value(rules, field(settings), text);
  };
  return setting;
}

/// The daemon in the background runs in "/": a path that begins anywhere else leads nowhere.
bool is_relative(std::string_view path) { return !path.empty() && !path.starts_with('/'); }

/// The same setting, which is refused where `path_of` its value is a relative path.
template <typename PathOf>
Setting absolute(Setting setting, PathOf path_of) {
  setting.read = [read = setting.read, path_of](Settings& settings,
                                                const std::string& text) -> Result<void> {
    if (is_relative(path_of(text))) {
      return fail(Code::Usage,
                  tr_format("'{}' is a relative path: begin it with '/'", printable(text)));
    }
    return read(settings, text);
  };
  return setting;
}

/// An address that a setting names, or none.
Result<void> read_listen(Settings& settings, const std::string& text) {
  if (!text.empty()) GF_CHECK(parse_loopback(text));
  settings.api_listen = text;
  return {};
}

Result<void> read_tls_listen(Settings& settings, const std::string& text) {
  if (!text.empty()) GF_CHECK(parse_listen_address(text));
  settings.tls_listen = text;
  return {};
}

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

std::string write_list(const std::vector<std::string>& names) { return join(names, ", "); }
std::vector<std::string> read_list(const std::string& text) {
  std::vector<std::string> names;
  for (const std::string_view part : split(text, ',')) {
    const std::string_view name = trim(part);
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

/// "https://board.lab:3000": what a browser sends, and nothing that stands for several.
bool is_origin(std::string_view text) {
  const std::size_t scheme = text.starts_with("https://") ? 8 : text.starts_with("http://") ? 7 : 0;
  const std::string_view host = text.substr(scheme);
  return scheme != 0 && !host.empty() && host.find_first_of("/*?#@ ,") == std::string_view::npos &&
         to_lower(host) == host;
}

Result<void> read_origins(Settings& settings, const std::string& text) {
  auto origins = read_list(text);
  for (const std::string& origin : origins) {
    if (is_origin(origin)) continue;
    return fail(Code::Usage,
                tr_format("'{}' is not the origin of a web page, as https://board.lab:3000",
                          printable(origin)));
  }
  settings.allowed_origins = std::move(origins);
  return {};
}

using Priorities = std::map<std::string, int, std::less<>>;

std::string write_priorities(const Priorities& priorities) {
  std::string text;
  for (const auto& [name, most] : priorities) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, most);
  }
  return text;
}
Result<void> read_priorities(Priorities& priorities, const std::string& text) {
  Priorities read;
  for (const auto& [name, value] : GF_TRY(read_pairs(text))) {
    const auto most = parse_number(value);
    if (!most || *most > kMaxPriority) {
      return fail(Code::Usage,
                  tr_format("'{}' of {} is not a number from 0 to {}",
                            printable(value),
                            printable(name),
                            kMaxPriority));
    }
    read[name] = static_cast<int>(*most);
  }
  priorities = std::move(read);
  return {};
}

using S = Setting;
constexpr Part kPolicy = Part::Policy;
constexpr Applies kRestart = Applies::Restart;

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
                                .help = "path of the socket; \"\" is the usual one"},
                              [](auto& s) -> auto& { return s.socket; }),
                           [](std::string_view socket) { return socket; }));
  table.push_back(of(S{.section = kSection,
                       .name = "log_level",
                       .type = Type::Choice,
                       .choices = {"debug", "info", "warning", "error"},
                       .help = "least severe messages logged: debug, info, warning or error"},
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
        .help = "how long jobs may pass a blocked one when nothing can be proven"},
      [](auto& s) -> auto& { return s.policy.backfill_patience; });
  table.push_back({.section = kSection,
                   .name = "order",
                   .type = Type::Choice,
                   .part = kPolicy,
                   .choices = {"learned", "submission"},
                   .help = "who goes first among jobs of one priority: learned or submission "
                           "(queue.md)",
                   .write = write_order,
                   .read = read_order});
  add(S{.name = "keep_after", .help = "learned: how long a blocked job lets others pass"},
      [](auto& s) -> auto& { return s.policy.keep_after; });
  add(S{.name = "guard",
        .help = "learned: a job that has waited this long goes before all that have not"},
      [](auto& s) -> auto& { return s.policy.order.guard; });
  add(S{.name = "preempt", .help = "jobs that allow it may be preempted by one ahead of them"},
      [](auto& s) -> auto& { return s.policy.preempt; });
  add(S{.name = "keep_ended", .help = "ended jobs and their logs are forgotten after this time"},
      [](auto& s) -> auto& { return s.policy.keep_ended; });
  add(S{.name = "max_ended",
        .min = 1,
        .max = 100 * kMillion,
        .help = "maximum number of ended jobs kept; beyond it, the oldest of the user with most "
                "are forgotten"},
      [](auto& s) -> auto& { return s.policy.max_ended; });
  add(S{.name = "max_queued",
        .min = 1,
        .max = 100 * kMillion,
        .help = "maximum number of waiting jobs"},
      [](auto& s) -> auto& { return s.policy.max_queued; });
  add(S{.name = "max_submit",
        .min = 1,
        .max = 100 * kMillion,
        .help = "maximum number of jobs in one submission"},
      [](auto& s) -> auto& { return s.policy.max_submit; });
}

void add_api(std::vector<Setting>& table) {
  table.push_back({.section = "api",
                   .name = "listen",
                   .type = Type::Address,
                   .applies = kRestart,
                   .help = "address of the REST API: localhost, 127.0.0.1 or [::1] and a port; "
                           "port 0 is any that is free, \"\" is none",
                   .write = [](const Settings& s) { return s.api_listen; },
                   .read = read_listen});
  table.push_back(of(S{.section = "api",
                       .name = "max_connections",
                       .applies = kRestart,
                       .min = 16,
                       .max = kMillion,
                       .help = "maximum number of open connections; fewer where gflowd may not "
                               "have so many files open"},
                     [](auto& s) -> auto& { return s.max_connections; }));
  table.push_back(of(S{.section = "api",
                       .name = "max_connections_per_user",
                       .applies = kRestart,
                       .min = 1,
                       .max = kMillion,
                       .help = "maximum number of open connections of one user"},
                     [](auto& s) -> auto& { return s.max_connections_per_user; }));
  table.push_back({.section = "api",
                   .name = "tls_listen",
                   .type = Type::Address,
                   .applies = kRestart,
                   .help =
                       "address at which other machines reach the REST API, with TLS and a token "
                       "or certificate: \"0.0.0.0:8443\", \"10.0.0.5:8000\"; \"\" is none",
                   .write = [](const Settings& s) { return s.tls_listen; },
                   .read = read_tls_listen});
  const auto add_path = [&table](std::string_view name, std::string_view help, auto field) {
    table.push_back(
        absolute(of(S{.section = "api", .name = name, .applies = kRestart, .help = help}, field),
                 [](std::string_view path) { return path; }));
  };
  add_path("tls_certificate",
           "its certificate (PEM); \"\" is one gflowd makes itself, which clients pin",
           [](auto& s) -> auto& { return s.tls_certificate; });
  add_path(
      "tls_key", "the key of tls_certificate (PEM)", [](auto& s) -> auto& { return s.tls_key; });
  add_path("client_ca",
           "certificates (PEM) of who may vouch for clients; the common name is the account",
           [](auto& s) -> auto& { return s.client_ca; });
  table.push_back(
      {.section = "api",
       .name = "host_names",
       .type = Type::List,
       .applies = kRestart,
       .help = "names other machines call this one by, besides its host name: \"lab1.example.org\"",
       .write = [](const Settings& s) { return write_list(s.host_names); },
       .read = [](Settings& s, const std::string& text) -> Result<void> {
         s.host_names = read_list(to_lower(text));
         return {};
       }});
  table.push_back({.section = "api",
                   .name = "allowed_origins",
                   .type = Type::List,
                   .applies = kRestart,
                   .help = "web pages that may ask, with a token: \"https://board.lab:3000\"; none "
                           "by default",
                   .write = [](const Settings& s) { return write_list(s.allowed_origins); },
                   .read = read_origins});
}

Result<void> read_endpoint(Settings& settings, const std::string& text) {
  constexpr std::string_view kScheme = "http://";
  const std::string_view rest =
      text.starts_with(kScheme) ? std::string_view(text).substr(kScheme.size()) : "";
  const std::string_view host = rest.substr(0, rest.find('/'));
  const bool plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7F'; });
  if (!text.empty() && (host.empty() || host.starts_with(':') || host.contains('@') || !plain)) {
    return fail(Code::Usage,
                tr_format("'{}' is not the address of a collector, such as http://127.0.0.1:4318",
                          printable(text)));
  }
  settings.otlp_endpoint = text;
  return {};
}

void add_telemetry(std::vector<Setting>& table) {
  const auto add = [&table](Setting setting, auto field) {
    setting.section = "metrics";
    table.push_back(of(std::move(setting), field));
  };
  add(S{.name = "dcgm", .help = "serve GPUs under the names of DCGM (DCGM_FI_DEV_...), too"},
      [](auto& s) -> auto& { return s.metrics.dcgm; });
  add(S{.name = "jobs", .help = "serve a series for each running job, with its user and project"},
      [](auto& s) -> auto& { return s.metrics.jobs; });
  add(S{.name = "users", .help = "serve a series for each user who has jobs running"},
      [](auto& s) -> auto& { return s.metrics.users; });
  add(S{.name = "hpc_job_mapping_dir",
        .help = "directory of dcgm-exporter's --hpc-job-mapping-dir; \"\" is none"},
      [](auto& s) -> auto& { return s.metrics.hpc_job_mapping_dir; });
  table.back() = absolute(std::move(table.back()), [](std::string_view path) { return path; });
  table.push_back({.section = "telemetry",
                   .name = "otlp_endpoint",
                   .help = "OpenTelemetry collector that gets a trace of each job, such as "
                           "http://127.0.0.1:4318; \"\" is none",
                   .write = [](const Settings& s) { return s.otlp_endpoint; },
                   .read = read_endpoint});
}

/// Whose names these are is nobody else's business: they are no part of a snapshot.
void add_people(std::vector<Setting>& table) {
  table.push_back({.section = "access",
                   .name = "administrators",
                   .type = Type::List,
                   .help = "users besides root and gflowd's own: \"alice, @unixgroup\"",
                   .write = [](const Settings& s) { return write_list(s.roles.administrators); },
                   .read = [](Settings& s, const std::string& text) -> Result<void> {
                     s.roles.administrators = read_list(text);
                     return {};
                   }});
  table.push_back({.section = "access",
                   .name = "operators",
                   .type = Type::List,
                   .help = "may change any job, give any priority and drain: \"bob, @unixgroup\"",
                   .write = [](const Settings& s) { return write_list(s.roles.operators); },
                   .read = [](Settings& s, const std::string& text) -> Result<void> {
                     s.roles.operators = read_list(text);
                     return {};
                   }});
  table.push_back(of(S{.section = "priority",
                       .name = "max",
                       .max = kMaxPriority,
                       .help = "highest priority a user may give a job; operators are exempt"},
                     [](auto& s) -> auto& { return s.policy.priority.max; }));
  table.push_back(
      {.section = "priority",
       .name = "users",
       .type = Type::Map,
       .help = "highest priority of single users: \"alice=100, bob=5\"",
       .write = [](const Settings& s) { return write_priorities(s.policy.priority.users); },
       .read =
           [](Settings& s, const std::string& text) {
             return read_priorities(s.policy.priority.users, text);
           }});
  table.push_back(
      {.section = "priority",
       .name = "projects",
       .type = Type::Map,
       .help = "highest priority of jobs of a project, for members of the unix group of its name",
       .write = [](const Settings& s) { return write_priorities(s.policy.priority.projects); },
       .read =
           [](Settings& s, const std::string& text) {
             return read_priorities(s.policy.priority.projects, text);
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
        .help = "which node and which GPUs a job gets; \"\" is gflow's own, see 'gflow lab'"},
      [](auto& s) -> auto& { return s.policy.placement; });
  add(S{.name = "gpu_weight", .help = "weight of GPU utilisation in spread, pack and balanced"},
      [](auto& s) -> auto& { return s.policy.placement_options.gpu_weight; });
  add(S{.name = "memory_weight", .help = "weight of memory utilisation"},
      [](auto& s) -> auto& { return s.policy.placement_options.memory_weight; });
  add(S{.name = "cpu_weight", .help = "weight of CPU utilisation"},
      [](auto& s) -> auto& { return s.policy.placement_options.cpu_weight; });
  add(S{.name = "fragmentation_weight", .help = "weight of fragmentation"},
      [](auto& s) -> auto& { return s.policy.placement_options.fragmentation_weight; });
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
        .help = "maximum number of jobs with a share on one GPU"},
      [](auto& s) -> auto& { return s.policy.sharing.max_jobs; });
  add(S{.name = "max_time_sliced",
        .min = 1,
        .max = kMaxJobs,
        .help = "maximum number of time-sliced jobs on one GPU"},
      [](auto& s) -> auto& { return s.policy.sharing.max_time_sliced; });
  add(S{.name = "mix_modes", .help = "allow shares and time slices on the same GPU"},
      [](auto& s) -> auto& { return s.policy.sharing.mix_modes; });
  add(S{.name = "with_others", .help = "allocate GPUs that processes outside gflow use"},
      [](auto& s) -> auto& { return s.policy.share_with_others; });
  add(S{.name = "allow_see_all", .help = "allow jobs to see every GPU and reserve none (-1)"},
      [](auto& s) -> auto& { return s.policy.allow_see_all; });
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
  add(S{.name = "max_queued_per_user", .help = "maximum number of waiting jobs of one user"},
      [](auto& s) -> auto& { return s.policy.max_queued_per_user; });
  add(S{.name = "max_unreserved_per_user",
        .help = "maximum number of running jobs of one user that reserve no GPUs and no CPUs"},
      [](auto& s) -> auto& { return s.policy.max_unreserved_per_user; });
  add(S{.name = "max_stored_per_user",
        .help = "maximum size of scripts, environments and other texts of one user's jobs"},
      [](auto& s) -> auto& { return s.policy.max_stored_per_user; });
  add(S{.name = "max_dependencies_per_job", .help = "maximum number of jobs one job may depend on"},
      [](auto& s) -> auto& { return s.policy.max_dependencies_per_job; });
  add(S{.name = "max_dependencies_per_user",
        .help = "maximum number of dependencies of all waiting jobs of one user"},
      [](auto& s) -> auto& { return s.policy.max_dependencies_per_user; });
  add(S{.name = "max_dependencies", .help = "maximum number of dependencies of all waiting jobs"},
      [](auto& s) -> auto& { return s.policy.max_dependencies; });
  add(S{.name = "allocation_ttl",
        .help = "how long an allocation lasts that names no time and no process"},
      [](auto& s) -> auto& { return s.policy.allocation_ttl; });
}

void add_rest(std::vector<Setting>& table) {
  table.push_back({.section = "node",
                   .name = "name",
                   .applies = kRestart,
                   .help = "name of this machine; \"\" is that of the machine file, or the host "
                           "name up to the first dot",
                   .write = [](const Settings& settings) { return settings.node_name; },
                   .read = read_node_name});
  table.push_back({.section = "node",
                   .name = "labels",
                   .type = Type::Map,
                   .help = "labels of this machine, which jobs can select: \"zone=a,disk=nvme\"",
                   .write = write_labels,
                   .read = read_labels});
  table.push_back(of(S{.section = "runner",
                       .name = "cgroups",
                       .applies = kRestart,
                       .help = "use control groups where possible; false: never"},
                     [](auto& s) -> auto& { return s.cgroups; }));
  table.push_back(of(S{.section = "runner",
                       .name = "launch_backoff",
                       .part = kPolicy,
                       .min = 1,
                       .help = "delay after a failed launch; doubles each time"},
                     [](auto& s) -> auto& { return s.policy.launch_backoff; }));
  table.push_back(of(S{.section = "runner",
                       .name = "max_launch_failures",
                       .part = kPolicy,
                       .min = 1,
                       .help = "failed launches after which a job is put on hold"},
                     [](auto& s) -> auto& { return s.policy.max_launch_failures; }));
  table.push_back(of(S{.section = "store",
                       .name = "ballast",
                       .applies = kRestart,
                       .help = "disk space kept in reserve for a full disk"},
                     [](auto& s) -> auto& { return s.ballast; }));
  table.push_back(of(S{.section = "store",
                       .name = "backup_interval",
                       .min = 1,
                       .help = "time between backups of the database, if it changed"},
                     [](auto& s) -> auto& { return s.backup_interval; }));
  table.push_back(of(S{.section = "store",
                       .name = "max_backups",
                       .max = 1000,
                       .help = "number of backups kept; 0: none are made"},
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

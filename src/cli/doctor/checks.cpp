// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/json.h"
#include "base/text.h"
#include "base/translate.h"
#include "command/wrap.h"

namespace gflow::cli {

namespace {

std::string_view level_name(Level level) {
  switch (level) {
    case Level::Ok:
      return tr_later("ok");
    case Level::Warn:
      return tr_later("warn");
    case Level::Fail:
      break;
  }
  return tr_later("fail");
}

Style style_of(Level level) {
  switch (level) {
    case Level::Ok:
      return Style::Green;
    case Level::Warn:
      return Style::Yellow;
    case Level::Fail:
      break;
  }
  return Style::Red;
}

/// The runner says "none: <why>" where it can enforce nothing.
Check enforcement(const std::string& name, const std::string& how, const std::string& cost) {
  const bool none = how.empty() || how.starts_with("none");
  return {name,
          none ? Level::Warn : Level::Ok,
          how.empty() ? tr("none") : tr(printable(how)),
          none ? cost : ""};
}

/// What is in force has its limits, too.
Check gpu_limits(const std::string& name,
                 const std::string& how,
                 const std::string& cost,
                 const std::string& what_is_not) {
  Check check = enforcement(name, how, cost);
  if (check.level == Level::Ok) check.advice = what_is_not;
  return check;
}

Check gpu_memory_limits(const std::string& how) {
  return gpu_limits(
      tr_later("GPU memory limits"),
      how,
      tr("jobs that share a GPU can take memory from each other"),
      tr("not held to them: static and setuid programs, those that clear LD_PRELOAD, containers "
         "without the library; not counted: what the driver takes itself (docs/sharing.md)"));
}

Check gpu_compute_shares(const std::string& how) {
  return gpu_limits(tr_later("GPU compute shares"),
                    how,
                    tr("jobs that share a GPU can take compute from each other"),
                    tr("not held to them: programs that are not held to their memory; not "
                       "measured: copies (docs/sharing.md)"));
}

/// What it costs where it cannot be done is nothing that has to be mended.
Check parking(const std::string& how) {
  Check check{tr_later("GPU memory of suspended jobs"), Level::Ok, tr(printable(how)), ""};
  check.advice = how.starts_with("none")
                     ? tr("they keep it: one that is urgent and wants the whole GPU waits for them")
                     : tr("kept where it is: of jobs with several GPUs, managed memory or memory "
                          "shared with another process (docs/queue.md)");
  return check;
}

/// Where gflowd serves its own user alone, nobody has to be kept from anybody unless that was asked
/// for; and then it says of which GPUs nobody is ("; not of jobs on GPU 0-3: ...").
Check gpu_isolation(const api::DaemonView& daemon) {
  const std::string cost =
      tr("a job that sets CUDA_VISIBLE_DEVICES itself can use GPUs it was not given "
         "(docs/sharing.md)");
  Check check = enforcement(tr_later("GPU isolation"), daemon.enforcement_gpu_isolation, cost);
  if (daemon.mode == "user") check.level = Level::Ok;
  if (daemon.enforcement_gpu_isolation.contains("; not of jobs on GPU ")) {
    check.level = Level::Warn;
    check.advice = cost;
  }
  if (check.advice.empty()) {
    check.advice =
        tr("not kept from them: what runs outside of jobs, as containers of a daemon do, "
           "and jobs that see every GPU (docs/sharing.md)");
  }
  return check;
}

bool is_loopback_url(std::string_view url) {
  const std::string_view host = url.substr(std::min(url.size(), url.find("//") + 2));
  return host.starts_with("127.") || host.starts_with("[::1]") || host.starts_with("localhost");
}

}  // namespace

Check check_daemon(const Result<api::DaemonView>& daemon, std::string_view version) {
  if (!daemon) return {tr_later("daemon"), Level::Fail, daemon.error().message, ""};
  const std::string text = tr_format("{} answers, version {}, {} mode, pid {}, devices '{}'",
                                     printable(daemon->socket),
                                     printable(daemon->version),
                                     api::mode_text(*daemon),
                                     daemon->pid,
                                     printable(daemon->devices));
  if (daemon->version == version) return {tr_later("daemon"), Level::Ok, text, ""};
  return {
      tr_later("daemon"),
      Level::Warn,
      text,
      tr_format("this program is version {}: run 'gflowd restart'; jobs keep running", version)};
}

std::vector<Check> check_listening(const api::DaemonView& daemon, WallTime now) {
  constexpr std::chrono::days kSoon{30};
  std::vector<Check> checks = {{tr_later("socket"), Level::Ok, printable(daemon.socket), ""}};
  checks.push_back({tr_later("API"),
                    Level::Ok,
                    daemon.api_url.empty() ? tr("on the socket only") : printable(daemon.api_url),
                    ""});
  if (!daemon.api_url.empty() && !is_loopback_url(daemon.api_url)) {
    checks.back().level = Level::Fail;
    checks.back().advice =
        tr("whoever is on the way can read and change what is sent there: set [api] listen to "
           "127.0.0.1, and serve other machines by [api] tls_listen");
  }
  if (daemon.tls_url.empty()) return checks;
  Check tls{tr_later("TLS"), Level::Ok, "", ""};
  const std::string url = printable(daemon.tls_url);
  const std::string fingerprint = printable(daemon.tls_fingerprint);
  tls.text = tr_format("{}, certificate {}", url, fingerprint);
  if (daemon.tls_expires) {
    const std::string until = rfc3339(*daemon.tls_expires);
    tls.text = tr_format("{}, certificate {}, valid until {}", url, fingerprint, until);
    if (*daemon.tls_expires <= now) {
      tls.level = Level::Fail;
      tls.advice =
          tr("it is not valid any more, and clients refuse it: replace it, and 'gflowd "
             "restart'");
    } else if (*daemon.tls_expires - now < kSoon) {
      tls.level = Level::Warn;
      tls.advice = tr("clients refuse it then: replace it before, and 'gflowd restart'");
    }
  }
  checks.push_back(std::move(tls));
  return checks;
}

std::vector<Check> check_tokens(const std::vector<api::TokenView>& tokens) {
  if (tokens.empty()) return {};
  std::vector<std::string> endless;
  for (const api::TokenView& token : tokens) {
    if (!token.expires) endless.push_back(printable(token.name));
  }
  if (endless.empty()) {
    return {{tr_later("tokens"),
             Level::Ok,
             tr_count(tokens.size(),
                      "{} token, which expires",
                      "{} tokens, which all expire",
                      tokens.size()),
             ""}};
  }
  return {{tr_later("tokens"),
           Level::Warn,
           tr_format("never expire: {}", join(endless, ", ")),
           tr("who finds one can use it until 'gctl token revoke NAME'; make one with --expires")}};
}

/// Of GPUs that gflow may cut.
std::vector<Check> check_cutting(const api::NodeView& node) {
  std::vector<Check> checks;
  for (const api::MigRoomView& room : node.mig_room) {
    const std::string name = tr_format("slices of {}", printable(room.gpu));
    if (room.drained) {
      checks.push_back(
          {name, Level::Ok, tr_format("none is made: {}", drained_text(room.drained_reason)), ""});
    } else if (room.trouble.empty() && room.refused.empty()) {
      checks.push_back({name, Level::Ok, tr("made as jobs request them"), ""});
    } else if (room.trouble.empty()) {
      checks.push_back(
          {name,
           Level::Warn,
           tr_format("refused when last tried: {}", printable(room.refused)),
           tr("it is tried again, ever more rarely, for as long as a job waits for it; "
              "'nvidia-smi mig -lgi' shows what is cut")});
    } else {
      checks.push_back({name,
                        Level::Fail,
                        printable(room.trouble),
                        tr("none is made; only root may cut a GPU: run gflowd as a service of the "
                           "system")});
    }
  }
  return checks;
}

std::vector<Check> check_gpus(const api::NodeView& node) {
  if (node.devices.empty() && !node.mig_room.empty()) return check_cutting(node);
  if (node.devices.empty()) {
    return {{tr_later("gpus"),
             Level::Warn,
             node.note.empty() ? tr("none found") : tr(printable(node.note)),
             tr("jobs with --gpus are rejected, all others run; to try gflow with simulated GPUs: "
                "gflowd up --devices sim:8xH100")}};
  }
  const auto slices = static_cast<std::uint64_t>(std::ranges::count_if(
      node.devices, [](const api::DeviceView& view) { return view.device.mig.has_value(); }));
  std::vector<Check> checks = {
      {tr_later("gpus"),
       Level::Ok,
       tr_format("{} found by {}{}",
                 node.devices.size(),
                 printable(node.source),
                 node.driver.empty() ? "" : tr_format(", driver {}", printable(node.driver))) +
           (slices == 0 ? ""
                        : tr_count(slices,
                                   ", of which {} is a MIG device",
                                   ", of which {} are MIG devices",
                                   slices)),
       ""}};
  for (const api::DeviceView& view : node.devices) {
    const std::string name = tr_format("gpu {}", view.device.index);
    if (!view.device.usable) {
      checks.push_back({name,
                        Level::Fail,
                        tr_format("not usable: {}", printable(view.device.trouble)),
                        tr("it is not allocated to jobs; see nvidia-smi and dmesg")});
    } else if (!view.device.trouble.empty()) {
      checks.push_back(
          {name, Level::Warn, printable(view.device.trouble), tr("some readings are missing")});
    } else if (!view.foreign.empty() && !view.has_jobs()) {
      const DeviceProcess& first = view.foreign.front();
      checks.push_back({name,
                        Level::Warn,
                        !first.job ? tr_format("used outside gflow by pid {}", first.pid)
                        : first.pid == 0
                            ? tr_format("used by job {}, which does not hold it", first.job->value)
                            : tr_format("used by job {}, which does not hold it, with pid {}",
                                        first.job->value,
                                        first.pid),
                        tr("it is not allocated to jobs until that process ends")});
    }
  }
  std::ranges::move(check_cutting(node), std::back_inserter(checks));
  return checks;
}

Check check_driver(bool driver_loaded) {
  if (driver_loaded) return {tr_later("driver"), Level::Ok, tr("the NVIDIA driver is loaded"), ""};
  return {tr_later("driver"),
          Level::Warn,
          tr("no NVIDIA driver is loaded"),
          tr("gflow has no GPUs: install the driver, or use simulated devices")};
}

std::vector<Check> check_enforcement(const api::DaemonView& daemon) {
  std::vector<Check> checks = {
      enforcement(tr_later("stopping jobs"),
                  daemon.enforcement_kill,
                  tr("a process that leaves its job may outlive it")),
      enforcement(tr_later("memory limits"),
                  daemon.enforcement_memory,
                  tr("--memory is reserved but not enforced: a job can use more and bring the "
                     "machine down")),
      enforcement(tr_later("cpu limits"),
                  daemon.enforcement_cpu,
                  tr("--cpus is reserved but not enforced: a job can use more")),
      enforcement(tr_later("process isolation"),
                  daemon.enforcement_processes,
                  tr("a job can start as many processes as its user may")),
      gpu_memory_limits(daemon.enforcement_gpu_memory),
      gpu_compute_shares(daemon.enforcement_gpu_compute),
      gpu_isolation(daemon),
  };
  if (!daemon.enforcement_parking.empty()) checks.push_back(parking(daemon.enforcement_parking));
  for (const std::string& warning : daemon.warnings) {
    checks.push_back({tr_later("daemon warning"), Level::Warn, printable(warning), ""});
  }
  return checks;
}

std::vector<Check> check_state(const StateDirectory& directory) {
  std::vector<Check> checks;
  if (directory.network_file_system.empty()) {
    checks.push_back({tr_later("state directory"),
                      Level::Ok,
                      tr_format("{} is local", printable(directory.path)),
                      ""});
  } else {
    checks.push_back(
        {tr_later("state directory"),
         Level::Fail,
         tr_format("{} is on {}", printable(directory.path), directory.network_file_system),
         tr("locks and syncs are not reliable there, so gflowd does not start: set XDG_DATA_HOME "
            "to a directory on a local disk")});
  }
  if (!directory.free_bytes) return checks;
  constexpr std::uint64_t kFew = 1ULL << 30;
  constexpr std::uint64_t kTooFew = 100ULL << 20;
  const std::uint64_t bytes = *directory.free_bytes;
  const Level level = bytes < kTooFew ? Level::Fail : bytes < kFew ? Level::Warn : Level::Ok;
  checks.push_back(
      {tr_later("disk space"),
       level,
       tr_format("{:.1f} GiB free", static_cast<double>(bytes) / (1ULL << 30)),
       level == Level::Ok ? "" : tr("when it is full, no job can be submitted or started")});
  return checks;
}

Check check_backups(const Backups& backups) {
  constexpr std::chrono::hours kOld{24 * 7};
  if (backups.newest.empty()) {
    return {tr_later("backups"),
            Level::Warn,
            tr("the database has no backup"),
            tr("gflowd makes one every hour and when it stops, unless [store] max_backups is 0")};
  }
  const std::string text = tr_format("{} kept, the newest {} old: {}",
                                     backups.count,
                                     duration_text(backups.age),
                                     printable(backups.newest));
  if (backups.age < kOld) return {tr_later("backups"), Level::Ok, text, ""};
  return {
      tr_later("backups"), Level::Warn, text, tr("one is made only when something has changed")};
}

Check check_session(const Session& session) {
  if (!session.systemd) {
    return {tr_later("start at boot"),
            Level::Warn,
            tr("this machine does not run systemd"),
            tr("after a reboot, 'gflowd up' has to be run by hand")};
  }
  if (session.mode == "system" || session.linger) {
    return {tr_later("logout"), Level::Ok, tr("daemon and jobs keep running after logout"), ""};
  }
  return {tr_later("logout"),
          Level::Warn,
          tr_format("lingering is off for {}", printable(session.user)),
          tr_format("systemd may kill daemon and jobs when you log out; to prevent that: loginctl "
                    "enable-linger {}",
                    printable(session.user))};
}

Check check_helper(const std::string& name, const Result<std::string>& path, Level missing) {
  if (path) return {name, Level::Ok, printable(*path), ""};
  return {
      name, missing, path.error().message, missing == Level::Fail ? tr("no job can start") : ""};
}

std::string checks_text(const std::vector<Check>& checks,
                        const Painter& paint,
                        std::size_t columns) {
  std::string out;
  for (const Check& check : checks) {
    const std::string level = fmt::format("{:<4}", tr(level_name(check.level)));
    const std::string label =
        fmt::format("{}  {:<18}  ", paint(style_of(check.level), level), tr(check.name));
    const std::string advice = check.advice.empty() ? "" : "\n" + check.advice;
    out += labelled(label, check.text + advice, columns);
  }
  return out;
}

std::string checks_json(const std::vector<Check>& checks) {
  nlohmann::ordered_json document = {{"apiVersion", api::kApiVersion}, {"kind", "Doctor"}};
  document["checks"] = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    document["checks"].push_back({{"name", check.name},
                                  {"level", level_name(check.level)},
                                  {"text", check.text},
                                  {"advice", check.advice}});
  }
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

int exit_code_of(const std::vector<Check>& checks) {
  return std::ranges::any_of(checks, [](const Check& check) { return check.level == Level::Fail; })
             ? 1
             : 0;
}

}  // namespace gflow::cli

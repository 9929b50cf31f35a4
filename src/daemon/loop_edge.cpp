// SPDX-License-Identifier: Apache-2.0
// Where the daemon is reached, and what it tells of itself there.
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include "api/config_view.h"
#include "base/kept_sentence.h"
#include "base/listen_address.h"
#include "base/text.h"
#include "base/translate.h"
#include "base/version.h"
#include "core/job_devices.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/setting_views.h"
#include "daemon/tls_files.h"
#include "os/clock.h"
#include "os/usage.h"
#include "os/user.h"
#include "server/shown.h"

namespace gflow::daemon {
namespace {

std::string no_api_text(const std::string& trouble) {
  return tr_format(
      "the API is not served everywhere it should be: {}; set [api] listen to a free port, or to "
      "\"\", and run 'gflowd restart'",
      trouble);
}

}  // namespace

Result<void> Loop::listen() {
  if (server_) return server_->listen_again();
  server::HttpServer::Options options;
  options.socket_path = parts_.options.paths.socket;
  options.any_user = parts_.options.system;
  options.own_uid = os::own_account().uid;
  options.max_connections = parts_.config.max_connections;
  options.max_connections_per_user = parts_.config.max_connections_per_user;
  options.allowed_origins = parts_.config.allowed_origins;
  GF_CHECK(set_remote(options));
  options.audit = [](const std::string& line) { audit_log().info("{}", printable(line)); };
  if (const std::string& address = parts_.config.api_listen; !address.empty()) {
    options.loopback = GF_TRY(parse_loopback(address));
  }
  options.note = [](const std::string& line) { spdlog::info("{}", line); };
  server_ = GF_TRY(server::HttpServer::listen(io_, options, *this));
  configure_access();
  if (const auto& trouble = server_->listen_trouble(); !trouble.empty()) {
    spdlog::warn("{}", no_api_text(trouble));
  }
  if (const auto& remote = server_->remote()) {
    spdlog::info("other machines reach the API at https://{}, certificate {}",
                 to_text(remote->address),
                 remote->fingerprint);
  }
  if (const auto address = server_->loopback()) {
    spdlog::info("the API is at http://{}", to_text(*address));
  }
  return {};
}

/// Where other machines reach it, if they are to: startup fails rather than to serve them without
/// what keeps them apart.
Result<void> Loop::set_remote(server::HttpServer::Options& options) const {
  const Config& config = parts_.config;
  if (config.tls_listen.empty()) return {};
  options.tls = GF_TRY(parse_listen_address(config.tls_listen));
  options.host_names = host_names(config);
  options.tls_files = GF_TRY(tls_files(config, parts_.options.paths));
  return {};
}

void Loop::configure_access() {
  shell_.show_of_others(parts_.config.others_jobs);
  if (!server_) return;
  std::vector<std::string> projects;
  for (const auto& [project, max] : parts_.config.policy.priority.projects) {
    projects.push_back(project);
  }
  unknown_names_ = server_->configure(parts_.config.roles, projects, parts_.config.others_jobs);
  for (const std::string& unknown : unknown_names_) spdlog::warn("{}", printable(unknown));
}

server::Vitals Loop::vitals() const {
  const os::Usage usage = os::own_usage();
  struct stat database{};
  const bool is_there = ::stat(parts_.options.paths.database().c_str(), &database) == 0;
  return {.disk_free = ballast_.disk_free(),
          .database = is_there ? std::optional(Memory{database.st_size}) : std::nullopt,
          .disk_is_full = shell_.disk_is_full() || !ballast_.held(),
          .last_reading = last_reading_,
          .cpu_seconds = usage.cpu_seconds,
          .resident = usage.resident,
          .spans_sent = traces_.sent(),
          .spans_dropped = traces_.dropped()};
}

Result<void> Loop::ready() const {
  if (state_.nodes().empty())
    return fail(Code::Unreachable, tr("no node has told of its GPUs yet"));
  if (ballast_.held() && !shell_.disk_is_full()) return {};
  return fail(Code::Unreachable,
              tr("the disk of gflow's state directory is full: no new jobs are taken"));
}

/// What is not as it should be.
std::vector<std::string> Loop::warnings(OthersJobs shown) const {
  std::vector<std::string> warnings = parts_.config.warnings;
  warnings.insert(warnings.end(), unknown_names_.begin(), unknown_names_.end());
  if (!settings_for_restart_.empty()) {
    warnings.push_back(api::for_restart_text(settings_for_restart_));
  }
  for (const NodeHealth& health : state_.unhealthy()) {
    const std::string reason =
        shown == OthersJobs::None ? server::cause_withheld() : kept_text(health.reason);
    warnings.push_back(
        state_.nodes().size() > 1
            ? tr_format("jobs cannot be started on node {}: {}; they wait, and it is tried again",
                        health.node,
                        reason)
            : tr_format("jobs cannot be started: {}; they wait, and it is tried again", reason));
  }
  for (const executor::Doubt& doubt : dispatcher_.doubts()) {
    if (shown == OthersJobs::None) break;  // they name jobs
    warnings.push_back(doubt_text(doubt));
  }
  if (!ballast_.held() || shell_.disk_is_full()) {
    warnings.push_back(shell_.disk_text(shown));
  }
  if (server_ && !server_->listen_trouble().empty()) {
    warnings.push_back(no_api_text(server_->listen_trouble()));
  }
  if (const std::string trouble = hpc_jobs_.trouble(); !trouble.empty()) {
    warnings.push_back(
        tr_format("the jobs of each GPU cannot be written for dcgm-exporter: {}", trouble));
  }
  if (!backups_.trouble().empty()) warnings.push_back(backups_.trouble());
  return warnings;
}

api::DaemonView Loop::daemon(OthersJobs shown) const {
  const executor::Enforcement enforced =
      parts_.executors.front().executor->enforcement(parts_.node);
  api::DaemonView view;
  view.version = kVersion;
  view.pid = os::process_id();
  view.started = started_.wall;
  view.up_time = std::chrono::floor<std::chrono::seconds>(os::now().mono - started_.mono);
  view.mode = parts_.options.system ? "system" : "user";
  view.socket = parts_.options.paths.socket;
  if (const auto address = server_ ? server_->loopback() : std::nullopt) {
    view.api_url = "http://" + to_text(*address);
  }
  if (server_ && server_->remote()) {
    view.tls_url = "https://" + to_text(server_->remote()->address);
    view.tls_fingerprint = server_->remote()->fingerprint;
    view.tls_expires = server_->remote()->expires;
  }
  view.state_dir = parts_.options.paths.state_dir;
  view.log_path = parts_.options.paths.daemon_log();
  view.config_path = parts_.options.paths.config_file;
  view.settings_for_restart = settings_for_restart_;
  view.devices = parts_.config.devices;
  view.enforcement_kill = enforced.kill;
  view.enforcement_memory = enforced.memory;
  view.enforcement_cpu = enforced.cpu;
  view.enforcement_processes = enforced.processes;
  view.enforcement_suspend = enforced.suspend;
  view.enforcement_binding = enforced.binding;
  view.enforcement_gpu_memory = enforced.gpu_memory;
  view.enforcement_gpu_compute = enforced.gpu_compute;
  view.enforcement_gpu_isolation = enforced.gpu_isolation;
  const Machine& machine = state_.nodes().at(parts_.node).machine;
  if (const std::string open = gpus_without_nodes(machine); !open.empty()) {
    view.enforcement_gpu_isolation +=
        fmt::format("; not of jobs on GPU {}: what opens it is not known", open);
  }
  view.enforcement_parking = enforced.parking;
  view.warnings = warnings(shown);
  return view;
}

std::vector<api::SettingView> Loop::settings() const { return setting_views(parts_.config); }

}  // namespace gflow::daemon

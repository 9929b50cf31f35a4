// SPDX-License-Identifier: Apache-2.0
#include "api/documents.h"
#include "api/json.h"
#include "api/json_reader.h"
#include "api/json_writer.h"
#include "api/schema_writer.h"
#include "base/translate.h"

namespace gflow::api {

template <class Io, Like<VersionView> T>
void fields(Io& io, T& view) {
  io.required("version", view.version);
}

template <class Io, Like<DaemonView> T>
void fields(Io& io, T& daemon) {
  io.required("version", daemon.version);
  io.field("pid", daemon.pid);
  io.field("started", daemon.started);
  io.field("up_time_seconds", daemon.up_time);
  io.field("mode", daemon.mode);
  io.field("socket", daemon.socket);
  io.field("api_url", daemon.api_url);
  io.known_text("tls_url", daemon.tls_url);
  io.known_text("tls_fingerprint", daemon.tls_fingerprint);
  io.field("tls_expires", daemon.tls_expires);
  io.field("state_dir", daemon.state_dir);
  io.field("log_path", daemon.log_path);
  io.field("config_path", daemon.config_path);
  io.field("settings_for_restart", daemon.settings_for_restart);
  io.field("devices", daemon.devices);
  io.field("enforcement_kill", daemon.enforcement_kill);
  io.field("enforcement_memory", daemon.enforcement_memory);
  io.field("enforcement_cpu", daemon.enforcement_cpu);
  io.field("enforcement_processes", daemon.enforcement_processes);
  io.field("enforcement_suspend", daemon.enforcement_suspend);
  io.field("enforcement_binding", daemon.enforcement_binding);
  io.field("enforcement_gpu_memory", daemon.enforcement_gpu_memory);
  io.field("enforcement_gpu_compute", daemon.enforcement_gpu_compute);
  io.field("enforcement_gpu_isolation", daemon.enforcement_gpu_isolation);
  io.field("enforcement_parking", daemon.enforcement_parking);
  io.field("warnings", daemon.warnings);
}

std::string mode_text(const DaemonView& daemon) {
  if (daemon.mode == "system") return tr("system");
  return daemon.mode == "user" ? tr("user") : daemon.mode;
}

void describe_daemon(Schemas& schemas) {
  schemas.document<VersionView>("Version", Form::Answer);
  schemas.document<DaemonView>("Daemon", Form::Answer);
}

std::string write(const VersionView& version) { return Writer::document("Version", version); }

std::string write(const DaemonView& daemon) { return Writer::document("Daemon", daemon); }

Result<DaemonView> read_daemon(std::string_view json) {
  return Reader::answer<DaemonView>(json, "Daemon");
}

}  // namespace gflow::api

// SPDX-License-Identifier: Apache-2.0
#include "api/free_gpus.h"
#include "api/job_fields.h"
#include "api/json_writer.h"
#include "api/printed.h"
#include "api/start_fields.h"
#include "api/waiting_jobs.h"

namespace gflow::api {
namespace {

struct Remotes {
  std::vector<RemoteView> remotes;
};

struct WaitingJobs {
  std::vector<WaitingJob> jobs;
};

}  // namespace

template <class Io, Like<DaemonStatusView> T>
void fields(Io& io, T& status) {
  io.field("status", status.status);
  io.field("pid", status.pid);
  io.known_text("socket", status.socket);
  io.field("state_dir", status.state_dir);
  io.known_text("log_path", status.log_path);
  io.field("running_jobs", status.running_jobs);
}

template <class Io, Like<RemoteView> T>
void fields(Io& io, T& remote) {
  io.field("name", remote.name);
  io.field("url", remote.url);
  io.field("has_token", remote.has_token);
  io.field("fingerprint", remote.fingerprint);
}

template <class Io, Like<Remotes> T>
void fields(Io& io, T& remotes) {
  io.field("remotes", remotes.remotes);
}

template <class Io, Like<WaitingJob> T>
void fields(Io& io, T& waiting) {
  fields(io, waiting.job);
  io.field("expected_start", waiting.expected_start);
}

template <class Io, Like<WaitingJobs> T>
void fields(Io& io, T& waiting) {
  io.field("jobs", waiting.jobs);
}

template <class Io, Like<FreeGpu> T>
void fields(Io& io, T& gpu) {
  io.field("index", gpu.index);
  io.known_text("uuid", gpu.uuid);
  io.known_text("model", gpu.model);
}

template <class Io, Like<FreeGpus> T>
void fields(Io& io, T& free) {
  io.field("request", free.request);
  io.field("node", free.node);
  io.field("gpus", free.gpus);
}

std::string write(const DaemonStatusView& status) {
  return Writer::document("DaemonStatus", status);
}

std::string write_remotes(const std::vector<RemoteView>& remotes) {
  return Writer::document("Remotes", Remotes{remotes});
}

std::string_view start_by_name(StartBy by) { return json_name(by); }

std::string write(const WaitingJob& waiting) { return Writer::document("WaitingJob", waiting); }

std::string write_waiting(const std::vector<WaitingJob>& waiting) {
  return Writer::document("WaitingJobs", WaitingJobs{waiting});
}

std::string write(const FreeGpus& free) { return Writer::document("FreeGpus", free); }

}  // namespace gflow::api

// SPDX-License-Identifier: Apache-2.0
#include "api/json_writer.h"
#include "api/printed.h"

namespace gflow::api {
namespace {

struct Remotes {
  std::vector<RemoteView> remotes;
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

std::string write(const DaemonStatusView& status) {
  return Writer::document("DaemonStatus", status);
}

std::string write_remotes(const std::vector<RemoteView>& remotes) {
  return Writer::document("Remotes", Remotes{remotes});
}

}  // namespace gflow::api

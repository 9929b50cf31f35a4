// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Documents that commands print and no route answers with: docs/format/commands.md.
namespace gflow::api {

/// A gflowd that cannot tell of itself: 'gflowd status --json' and 'gflowd down --json'.
struct DaemonStatusView {
  std::string status;      ///< "not_running", "not_answering"
  std::optional<int> pid;  ///< of one that does not answer
  std::string socket;      ///< "" where that is not known
  std::string state_dir;
  std::string log_path;                            ///< "" if there is none
  std::optional<std::uint64_t> running_jobs = {};  ///< that go on without it; empty: not known
};
[[nodiscard]] std::string write(const DaemonStatusView& status);

/// A gflowd of another machine, without its token: 'gctl remote list --json'.
struct RemoteView {
  std::string name;
  std::string url;
  bool has_token = false;
  std::string fingerprint;  ///< of the pinned certificate
};
[[nodiscard]] std::string write_remotes(const std::vector<RemoteView>& remotes);

}  // namespace gflow::api

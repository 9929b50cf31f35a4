// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "cli/queue/listing.h"
#include "client/client.h"
#include "command/context.h"

namespace gflow::cli {

/// Asks a daemon for a listing. Called on another thread: holds nothing of its caller.
using Fetch = std::function<Result<ListedJobs>(client::Client&)>;

/// The listing again with every change, fetched on a thread and a connection of its own, so that
/// nothing the daemon does keeps a screen from answering. Another one asks each second whether the
/// daemon is there, as no news and no daemon look the same.
class JobFeed {
 public:
  /// How long between two listings: at least `pause`, and where there is an `interval`, that long,
  /// whether there is news or not. Errors: what the system said.
  struct Pace {
    std::chrono::milliseconds pause{0};
    std::optional<std::chrono::milliseconds> interval = {};
  };
  [[nodiscard]] static Result<JobFeed> start(Fetch fetch, const Context& context, Pace pace);
  ~JobFeed();
  JobFeed(JobFeed&&) noexcept;
  JobFeed& operator=(JobFeed&&) noexcept = delete;
  JobFeed(const JobFeed&) = delete;
  JobFeed& operator=(const JobFeed&) = delete;

  [[nodiscard]] int fd() const;  ///< readable when there is news, or the daemon fell silent
  /// The newest listing, or why there is none now; nothing if it was taken already. A daemon that
  /// cannot be reached or says nothing is asked again; after another error nothing more comes.
  [[nodiscard]] std::optional<Result<ListedJobs>> take();
  /// When the daemon answered last, if it does not now, at most 2 s after it stopped to; and what
  /// is known of why: "gflowd (pid 12) does not answer; it is stopped (T)...".
  struct Silent {
    MonoTime since;
    std::string why;
  };
  [[nodiscard]] std::optional<Silent> silence() const;

 private:
  struct Shared;
  explicit JobFeed(std::shared_ptr<Shared> shared);
  std::shared_ptr<Shared> shared_;
};

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "client/client.h"

namespace gflow::cli {

/// Asks a daemon for a listing. Called on another thread: holds nothing of its caller.
using Fetch = std::function<Result<api::JobPage>(client::Client&)>;

/// The listing again with every change, fetched on a thread and a connection of its own, so that
/// nothing the daemon does keeps a screen from answering.
class JobFeed {
 public:
  /// `pause`: at least so long between two listings. Errors: what the system said.
  [[nodiscard]] static Result<JobFeed> start(Fetch fetch,
                                             client::Client client,
                                             std::chrono::milliseconds pause);
  ~JobFeed();
  JobFeed(JobFeed&&) noexcept;
  JobFeed& operator=(JobFeed&&) noexcept = delete;
  JobFeed(const JobFeed&) = delete;
  JobFeed& operator=(const JobFeed&) = delete;

  [[nodiscard]] int fd() const;  ///< readable when there is news
  /// The newest listing, or why there is none now; nothing if it was taken already. A daemon that
  /// cannot be reached is asked again each second; after another error nothing more comes.
  [[nodiscard]] std::optional<Result<api::JobPage>> take();

 private:
  struct Shared;
  explicit JobFeed(std::shared_ptr<Shared> shared);
  std::shared_ptr<Shared> shared_;
};

}  // namespace gflow::cli

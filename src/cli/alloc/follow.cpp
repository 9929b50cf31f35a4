// SPDX-License-Identifier: Apache-2.0
#include "cli/alloc/follow.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <thread>
#include <utility>

#include "core/status.h"

namespace gflow::cli {

struct Follower::Mailbox {
  std::mutex mutex;
  std::optional<Result<api::GpuAllocation>> answer;
  os::Fd filled{::eventfd(0, EFD_CLOEXEC)};
};

namespace {

bool is_reached(const api::GpuAllocation& allocation, Until until) {
  const auto status = parse_status(allocation.state);
  if (status && is_ended(*status)) return true;
  return allocation.success == (until == Until::Granted);
}

/// A daemon that goes away for a while comes back: the allocation outlives it.
Result<api::GpuAllocation> follow(client::Client& daemon, JobId id, Until until) {
  const std::string target = fmt::format("/api/v1/gpu/allocations/{}", id.value);
  std::uint64_t revision = 0;
  constexpr std::chrono::seconds kPause{1};
  while (true) {
    const auto news = daemon.wait_change(revision, id);
    auto text = news ? daemon.call("GET", target) : std::unexpected(news.error());
    if (!text && text.error().code == Code::Unreachable) {
      std::this_thread::sleep_for(kPause);
      revision = 0;  // the next daemon counts anew
      continue;
    }
    auto allocation = text ? api::read_gpu_allocation(*text) : std::unexpected(text.error());
    if (!allocation || is_reached(*allocation, until)) return allocation;
    revision = *news;
  }
}

}  // namespace

Follower::Follower(client::Client daemon, JobId allocation, Until until)
    : mailbox_(std::make_shared<Mailbox>()) {
  std::thread([mailbox = mailbox_, daemon = std::move(daemon), allocation, until]() mutable {
    auto answer = follow(daemon, allocation, until);
    const std::lock_guard lock(mailbox->mutex);
    mailbox->answer = std::move(answer);
    const std::uint64_t one = 1;
    (void)!::write(mailbox->filled.get(), &one, sizeof one);  // a counter always takes it
  }).detach();
}

int Follower::fd() const { return mailbox_->filled.get(); }

Result<api::GpuAllocation> Follower::answer() const {
  const std::lock_guard lock(mailbox_->mutex);
  return *std::move(mailbox_->answer);
}

}  // namespace gflow::cli

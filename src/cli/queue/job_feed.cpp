// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/job_feed.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "os/clock.h"
#include "os/fd.h"
#include "os/file.h"

namespace gflow::cli {

/// Owned by the feed and by its threads, whichever is the last to let go: a long poll cannot be
/// broken off, so at the end they are left behind.
struct JobFeed::Shared {
  os::Fd news;
  mutable std::mutex mutex;
  std::condition_variable closing;
  bool closed = false;
  std::optional<Result<ListedJobs>> newest;
  MonoTime answered_at = os::now().mono;
  bool silent = false;

  void wake() const {
    const std::uint64_t one = 1;
    (void)::write(news.get(), &one, sizeof one);  // cannot fail: the counter is read each time
  }
  void publish(Result<ListedJobs> page) {
    {
      const std::lock_guard lock(mutex);
      newest = std::move(page);
    }
    wake();
  }
  void answered() {
    const std::lock_guard lock(mutex);
    answered_at = os::now().mono;
    if (std::exchange(silent, false)) wake();
  }
  void fell_silent() {
    const std::lock_guard lock(mutex);
    if (!std::exchange(silent, true)) wake();
  }
  /// False once nobody reads any more.
  bool rest(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex);
    return !closing.wait_for(lock, most, [this] { return closed; });
  }
};

namespace {

constexpr std::chrono::seconds kSecond{1};

/// Returns at the first change after that revision, or when the daemon cannot be asked.
void wait_for_news(client::Client& client, std::uint64_t revision) {
  while (true) {
    const Result<std::uint64_t> now = client.wait_change(revision, std::nullopt);
    if (!now || *now != revision) return;
  }
}

/// What goes by when the daemon is back.
bool is_silence(const Error& error) {
  return error.code == Code::Unreachable || error.code == Code::Timeout;
}

}  // namespace

JobFeed::JobFeed(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
JobFeed::JobFeed(JobFeed&&) noexcept = default;
JobFeed::~JobFeed() {
  if (shared_ == nullptr) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->closed = true;
  shared_->closing.notify_all();
}

Result<JobFeed> JobFeed::start(Fetch fetch,
                               const Context& context,
                               std::chrono::milliseconds pause) {
  auto shared = std::make_shared<Shared>();
  shared->news.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!shared->news.valid()) return os::errno_error("eventfd");
  std::thread([shared,
               pause,
               fetch = std::move(fetch),
               client = context.another_daemon()]() mutable {
    bool goes_on = true;
    while (goes_on) {
      Result<ListedJobs> page = fetch(client);
      const bool reached = page.has_value();
      if (!reached && !is_silence(page.error())) return shared->publish(std::move(page));
      const std::uint64_t revision = reached ? page->page.revision : 0;
      reached ? shared->answered() : shared->fell_silent();
      shared->publish(std::move(page));
      goes_on = shared->rest(reached ? pause : kSecond);
      if (goes_on && reached) wait_for_news(client, revision);
    }
  }).detach();
  std::thread([shared, client = context.another_daemon()]() mutable {
    do {
      const bool reached = client.health(kSecond, [&] { shared->fell_silent(); }).has_value();
      reached ? shared->answered() : shared->fell_silent();
    } while (shared->rest(kSecond));
  }).detach();
  return JobFeed(std::move(shared));
}

int JobFeed::fd() const { return shared_->news.get(); }

std::optional<MonoTime> JobFeed::silent_since() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->silent ? std::optional(shared_->answered_at) : std::nullopt;
}

std::optional<Result<ListedJobs>> JobFeed::take() {
  std::uint64_t count = 0;
  (void)::read(shared_->news.get(), &count, sizeof count);  // nothing to read: nothing is new
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->newest, std::nullopt);
}

}  // namespace gflow::cli

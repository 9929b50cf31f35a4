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
  bool has_answered = false;
  MonoTime answered_at = os::now().mono;  ///< or when it was first asked
  std::optional<std::string> silence;     ///< why

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
    has_answered = true;
    answered_at = os::now().mono;
    if (std::exchange(silence, std::nullopt)) wake();
  }
  /// One that never answered and is not there has not fallen silent.
  void fell_silent(const Error& why) {
    const std::lock_guard lock(mutex);
    if (!has_answered && why.code == Code::Unreachable) return;
    if (std::exchange(silence, why.message) != why.message) wake();
  }
  template <typename T>
  void heard(const Result<T>& answer) {
    answer ? answered() : fell_silent(answer.error());
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

Result<JobFeed> JobFeed::start(Fetch fetch, const Context& context, Pace pace) {
  auto shared = std::make_shared<Shared>();
  shared->news.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!shared->news.valid()) return os::errno_error("eventfd");
  std::thread([shared,
               pace,
               fetch = std::move(fetch),
               client = context.another_daemon()]() mutable {
    bool goes_on = true;
    while (goes_on) {
      Result<ListedJobs> listed = fetch(client);
      const bool reached = listed.has_value();
      if (!reached && !is_silence(listed.error())) return shared->publish(std::move(listed));
      const std::uint64_t revision = reached ? listed->page.revision : 0;
      shared->heard(listed);
      shared->publish(std::move(listed));
      goes_on = shared->rest(reached ? pace.interval.value_or(pace.pause) : kSecond);
      if (goes_on && reached && !pace.interval) wait_for_news(client, revision);
    }
  }).detach();
  std::thread([shared, client = context.another_daemon()]() mutable {
    do {
      const auto late = [&shared](const std::string& who) {
        shared->fell_silent({Code::Timeout, who});
      };
      shared->heard(client.health(kSecond, late));
    } while (shared->rest(kSecond));
  }).detach();
  return JobFeed(std::move(shared));
}

int JobFeed::fd() const { return shared_->news.get(); }

std::optional<JobFeed::Silent> JobFeed::silence() const {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->silence) return std::nullopt;
  return Silent{shared_->answered_at, *shared_->silence};
}

std::optional<Result<ListedJobs>> JobFeed::take() {
  std::uint64_t count = 0;
  (void)::read(shared_->news.get(), &count, sizeof count);  // nothing to read: nothing is new
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->newest, std::nullopt);
}

}  // namespace gflow::cli

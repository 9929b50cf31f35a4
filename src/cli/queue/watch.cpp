// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/watch.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <ostream>
#include <thread>

#include "base/text.h"
#include "cli/patience.h"
#include "command/times.h"
#include "os/clock.h"
#include "os/terminal.h"

namespace gflow::cli {

namespace {

/// Learns of changes on a thread and a connection of its own, so that drawing can go on.
class News {
 public:
  News(client::Client client, std::uint64_t revision)
      : revision_(revision),
        thread_([this, client = std::move(client)](const std::stop_token& stop) mutable {
          listen(client, stop);
        }) {}

  /// True if there was a change or an error since the last call, at the latest after `most`.
  bool wait(std::chrono::seconds most) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, most, [this] { return news_; });
    return std::exchange(news_, false);
  }

 private:
  void listen(client::Client& client, const std::stop_token& stop) {
    std::uint64_t revision = revision_;
    while (!stop.stop_requested()) {
      const Result<std::uint64_t> next = client.wait_change(revision, std::nullopt);
      const bool same = next && *next == revision;
      if (next) revision = *next;
      if (same) continue;
      {
        const std::lock_guard lock(mutex_);
        news_ = true;
      }
      changed_.notify_one();
      // A daemon that is down answers at once; the drawing thread says so and is patient.
      if (!next) std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }

  std::uint64_t revision_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool news_ = false;
  std::jthread thread_;
};

/// The page with running times counted on to now.
api::JobPage counted_on(api::JobPage page, std::chrono::seconds passed) {
  for (api::JobView& job : page.jobs) {
    if (counts_run_time(job.status)) job.run_time += passed;
  }
  return page;
}

/// As many lines as the screen has, so that the top stays in sight.
std::string fitted(const std::string& text, int rows) {
  std::string out;
  int line = 0;
  for (const std::string_view piece : split(text, '\n')) {
    if (++line >= rows) break;
    out += std::string(piece) + '\n';
  }
  return out;
}

void draw(Context& context, const Listing& listing, const api::JobPage& page) {
  const os::TerminalSize size = os::terminal_size(1);
  std::string screen = fmt::format("{}    {} jobs    Ctrl-C ends this view, not the jobs\n\n",
                                   local_text(os::now().wall),
                                   page.jobs.size());
  screen += listing_text(listing, page, context.paint);
  context.out << "\x1b[H\x1b[J" << fitted(screen, size.rows) << std::flush;
}

Result<int> watch_terminal(Context& context,
                           const Listing& listing,
                           const Fetch& fetch,
                           std::chrono::seconds interval) {
  Patience patience(context);
  api::JobPage page = GF_TRY(patience(fetch));
  MonoTime fetched = os::now().mono;
  News news(context.another_daemon(), page.revision);
  while (context.out) {
    const auto passed = std::chrono::floor<std::chrono::seconds>(os::now().mono - fetched);
    draw(context, listing, counted_on(page, passed));
    if (!news.wait(interval)) continue;
    page = GF_TRY(patience(fetch));
    fetched = os::now().mono;
  }
  return 0;
}

Result<int> watch_pipe(Context& context, const Listing& listing, const Fetch& fetch) {
  Patience patience(context);
  const bool block = listing.format != Format::Json && listing.format != Format::JsonLines;
  std::uint64_t revision = 0;
  const std::function<Result<std::uint64_t>()> next = [&] {
    return context.daemon().wait_change(revision, std::nullopt);
  };
  std::string before;
  while (context.out) {
    const api::JobPage page = GF_TRY(patience(fetch));
    std::string text = listing_text(listing, page, context.paint);
    if (text != before) context.out << text << (block ? "\n" : "") << std::flush;
    before = std::move(text);
    revision = page.revision;
    revision = GF_TRY(patience(next));
  }
  return 0;
}

}  // namespace

Result<int> watch(Context& context,
                  const Listing& listing,
                  const Fetch& fetch,
                  std::chrono::seconds interval) {
  const bool in_place = context.out_is_terminal && listing.format == Format::Table;
  return in_place ? watch_terminal(context, listing, fetch, interval)
                  : watch_pipe(context, listing, fetch);
}

}  // namespace gflow::cli

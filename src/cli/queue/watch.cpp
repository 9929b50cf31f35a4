// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/watch.h"

#include <fmt/format.h>
#include <poll.h>

#include <csignal>
#include <ostream>

#include "base/text.h"
#include "base/translate.h"
#include "cli/queue/screen.h"
#include "os/clock.h"
#include "os/signals.h"
#include "os/terminal.h"
#include "os/user.h"

namespace gflow::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPatience{60};

/// What came while nobody looked.
struct Ready {
  bool key = false;
  bool signal = false;
  bool news = false;
  bool nobody_reads = false;
};

Ready wait_for_any(int keys, int signals, int feed, milliseconds most) {
  // Nothing is asked of the output but that it has gone, which is always told.
  std::array<pollfd, 4> all = {
      {{keys, POLLIN, 0}, {signals, POLLIN, 0}, {feed, POLLIN, 0}, {STDOUT_FILENO, 0, 0}}};
  if (::poll(all.data(), all.size(), static_cast<int>(most.count())) < 0) return {};
  constexpr int kGone = POLLERR | POLLHUP | POLLNVAL;
  return {.key = all[0].revents != 0,
          .signal = all[1].revents != 0,
          .news = all[2].revents != 0,
          .nobody_reads = (all[3].revents & kGone) != 0};
}

/// Says once that the daemon does not answer, and for how long it has not.
class Silence {
 public:
  /// Whether this error can be waited out.
  bool waits(const Error& error, MonoTime now) {
    if (error.code != Code::Unreachable) return false;
    if (!since_) since_ = now;
    return now - *since_ < kPatience;
  }
  void over() { since_.reset(); }
  [[nodiscard]] bool is_new(MonoTime now) const { return since_ == now; }
  [[nodiscard]] std::string text(MonoTime now) const {
    if (!since_) return "";
    return tr_format("no answer from gflowd for {}; jobs go on",
                     duration_text(std::chrono::floor<seconds>(now - *since_)));
  }

 private:
  std::optional<MonoTime> since_;
};

/// The other screen of the terminal, without cursor, while it lives: what was there comes back.
class Screen {
 public:
  explicit Screen(std::ostream& out) : out_(out) { enter(); }
  ~Screen() { leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void enter() { out_ << "\x1b[?1049h\x1b[?25l" << std::flush; }
  void leave() { out_ << "\x1b[?25h\x1b[?1049l" << std::flush; }
  /// Draws over what is there, so that nothing flickers; the last line ends without a line end,
  /// which would scroll the first one away.
  void draw(std::string_view text) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    std::string all = "\x1b[H";
    bool first = true;
    for (const std::string_view line : split(text, '\n')) {
      all += first ? "" : "\r\n";
      all.append(line).append("\x1b[K");
      first = false;
    }
    out_ << all << "\x1b[J" << std::flush;
  }

 private:
  std::ostream& out_;
};

/// The page with running times counted on to now.
api::JobPage counted_on(api::JobPage page, seconds passed) {
  for (api::JobView& job : page.jobs) {
    if (counts_run_time(job.status)) job.run_time += passed;
  }
  return page;
}

/// The live view. What it draws is in screen.h.
class LiveView {
 public:
  LiveView(Context& context, const Listing& listing, api::JobPage page, os::SignalWatch signals)
      : context_(context),
        listing_(listing),
        page_(std::move(page)),
        fetched_(os::now().mono),
        signals_(std::move(signals)),
        screen_(context.out) {}

  /// The exit code.
  Result<int> run(JobFeed& feed, seconds interval) {
    while (context_.out && !code_) {
      draw();
      const Ready ready = wait_for_any(keys_.fd(), signals_.fd(), feed.fd(), interval);
      if (ready.nobody_reads) break;
      if (ready.key) take_key();
      if (ready.signal) take_signal();
      if (ready.news) GF_CHECK(take_news(feed));
    }
    return code_.value_or(0);
  }

 private:
  void draw() {
    const Now now = os::now();
    const os::TerminalSize size = os::terminal_size(STDOUT_FILENO);
    const Viewer viewer{user_,
                        now.wall,
                        os::utc_offset,
                        static_cast<std::size_t>(size.columns),
                        static_cast<std::size_t>(size.rows)};
    const api::JobPage page = counted_on(page_, std::chrono::floor<seconds>(now.mono - fetched_));
    screen_.draw(watch_screen(listing_, page, viewer, silence_.text(now.mono), context_.paint));
  }

  void take_key() {
    const auto key = os::Keys::next();
    if (!key || *key == 'q' || *key == 'Q') code_ = 0;
  }

  void take_signal() {
    while (const auto signal = signals_.next()) {
      if (*signal == SIGTSTP) {
        suspend();
      } else if (*signal != SIGWINCH) {
        code_ = 128 + *signal;
      }
    }
  }

  /// Ctrl-Z: the shell gets its terminal back as it was, and so do we afterwards.
  void suspend() {
    screen_.leave();
    keys_.release();
    (void)::raise(SIGSTOP);
    keys_.take();
    screen_.enter();
  }

  Result<void> take_news(JobFeed& feed) {
    auto news = feed.take();
    if (!news) return {};
    const Now now = os::now();
    if (*news) {
      page_ = std::move(**news);
      fetched_ = now.mono;
      silence_.over();
    } else if (!silence_.waits(news->error(), now.mono)) {
      return std::unexpected(news->error());
    }
    return {};
  }

  Context& context_;
  const Listing& listing_;
  const std::string user_ = os::own_account().name;
  api::JobPage page_;
  MonoTime fetched_;
  Silence silence_;
  std::optional<int> code_;
  os::SignalWatch signals_;
  os::Keys keys_;
  Screen screen_;
};

Result<int> watch_terminal(Context& context,
                           const Listing& listing,
                           const Fetch& fetch,
                           seconds interval) {
  api::JobPage page = GF_TRY(fetch(context.daemon()));
  // Before the feed: its thread must not be the one that signals interrupt.
  os::SignalWatch signals =
      GF_TRY(os::SignalWatch::open({SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH}));
  constexpr milliseconds kPause{200};  // faster than that nobody reads
  JobFeed feed = GF_TRY(JobFeed::start(fetch, context.another_daemon(), kPause));
  LiveView view(context, listing, std::move(page), std::move(signals));
  return view.run(feed, interval);
}

Result<int> watch_pipe(Context& context, const Listing& listing, const Fetch& fetch) {
  const bool block = listing.format != Format::Json && listing.format != Format::JsonLines;
  JobFeed feed = GF_TRY(JobFeed::start(fetch, context.another_daemon(), milliseconds(0)));
  Silence silence;
  std::string before;
  bool answered = false;
  while (context.out) {
    const Ready ready = wait_for_any(-1, -1, feed.fd(), milliseconds(-1));
    if (ready.nobody_reads) return 0;
    const auto page = feed.take();
    if (!page) continue;
    const MonoTime now = os::now().mono;
    if (!*page) {
      if (!answered || !silence.waits(page->error(), now)) return std::unexpected(page->error());
      if (silence.is_new(now)) {
        context.note(tr("the daemon does not answer; jobs go on, waiting for it to come back"));
      }
      continue;
    }
    answered = true;
    silence.over();
    std::string text =
        context.listing([&] { return listing_text(listing, **page, context.paint); });
    if (text != before) context.out << text << (block ? "\n" : "") << std::flush;
    before = std::move(text);
  }
  return 0;
}

}  // namespace

Result<int> watch(Context& context, const Listing& listing, const Fetch& fetch, seconds interval) {
  const bool in_place =
      context.out_is_terminal && context.can_move_cursor && listing.format == Format::Table;
  return in_place ? watch_terminal(context, listing, fetch, interval)
                  : watch_pipe(context, listing, fetch);
}

}  // namespace gflow::cli

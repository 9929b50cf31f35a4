// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/watch.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <csignal>
#include <optional>
#include <ostream>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "cli/caller.h"
#include "cli/patience.h"
#include "cli/queue/screen.h"
#include "os/clock.h"
#include "os/signals.h"
#include "os/terminal.h"

namespace gflow::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPatience{60};

/// Those that would end or stop this process, with the terminal as it then is; of faults
/// os::FaultRescue knows.
std::vector<int> terminal_signals() {
  std::vector<int> all = {SIGHUP,  SIGINT,  SIGQUIT, SIGPIPE, SIGALRM,   SIGTERM,   SIGUSR1,
                          SIGUSR2, SIGXCPU, SIGXFSZ, SIGPROF, SIGVTALRM, SIGSTKFLT, SIGPOLL,
                          SIGPWR,  SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT,   SIGWINCH};
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) all.push_back(number);
  return all;
}

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

/// What a view says while the daemon is silent, and below it why.
std::string silence_text(const JobFeed& feed, MonoTime now) {
  const auto silent = feed.silence();
  if (!silent) return "";
  return tr_format("no answer from gflowd for {}; jobs keep running",
                   duration_text(std::chrono::floor<seconds>(now - silent->since))) +
         '\n' + printable(silent->why);
}

/// Whether one waits on after this error: a daemon that is there and says nothing may go on at any
/// time, one that is not there is waited for as long as a restart takes.
bool is_waited_out(const Error& error, const JobFeed& feed) {
  if (error.code == Code::Timeout) return true;
  if (error.code != Code::Unreachable) return false;
  const auto silent = feed.silence();
  return !silent || os::now().mono - silent->since < kPatience;
}

/// The other screen of the terminal, without cursor, while it lives: what was there comes back.
class Screen {
 public:
  explicit Screen(std::ostream& out) : out_(out) {}
  ~Screen() { leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void show() {
    // Also where it is shown already: who stopped us may have taken the terminal meanwhile.
    os::FaultRescue::set_farewell(kLeave);
    out_ << "\x1b[?1049h\x1b[?25l" << std::flush;
    shown_ = true;
  }
  void leave() {
    if (!std::exchange(shown_, false)) return;
    os::FaultRescue::set_farewell(nullptr);
    out_ << kLeave << std::flush;
  }
  [[nodiscard]] bool is_shown() const { return shown_; }
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
  static constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";
  std::ostream& out_;
  bool shown_ = false;
};

/// The page with running times counted on to now.
ListedJobs counted_on(ListedJobs listed, seconds passed) {
  for (api::JobView& job : listed.page.jobs) {
    if (counts_run_time(job.status)) job.run_time += passed;
  }
  return listed;
}

/// The live view. What it draws is in screen.h.
class LiveView {
 public:
  LiveView(Context& context,
           const Listing& listing,
           const View& view,
           JobFeed feed,
           os::SignalWatch signals)
      : context_(context),
        listing_(listing),
        view_(view),
        feed_(std::move(feed)),
        signals_(std::move(signals)),
        screen_(context.out) {}

  /// The exit code.
  Result<int> run() {
    resume();
    while (context_.out && !code_) {
      if (!screen_.is_shown() && has_something_to_show()) resume();
      if (screen_.is_shown()) draw();
      const Ready ready = wait_for_any(keys_.fd(), signals_.fd(), feed_.fd(), view_.interval);
      if (ready.nobody_reads) break;
      if (ready.signal) take_signal();
      if (ready.key) take_key();
      if (ready.news) GF_CHECK(take_news());
    }
    return code_.value_or(0);
  }

 private:
  /// A daemon that is not there has nothing to show, and leaves no other screen behind.
  [[nodiscard]] bool has_something_to_show() const { return listed_ || feed_.silence(); }

  void draw() {
    if (!os::is_in_foreground(STDOUT_FILENO)) return suspend();
    const Now now = os::now();
    const os::TerminalSize size = os::terminal_size(STDOUT_FILENO);
    const Viewer viewer{user_,
                        now.wall,
                        os::utc_offset,
                        static_cast<std::size_t>(size.columns),
                        static_cast<std::size_t>(size.rows)};
    const ListedJobs listed = counted_on(listed_.value_or(ListedJobs{}),
                                         std::chrono::floor<seconds>(now.mono - fetched_));
    const WatchHead head{silence_text(feed_, now.mono),
                         view_.panel ? view_.panel(listed, viewer) : std::string()};
    screen_.draw(watch_screen(listing_, listed, viewer, head, context_.paint));
  }

  void take_key() {
    if (keys_.fd() < 0) return;  // given back meanwhile
    const auto key = os::Keys::next();
    if (!key && !os::is_in_foreground(STDIN_FILENO)) return suspend();
    if (!key || *key == 'q' || *key == 'Q') code_ = 0;
  }

  void take_signal() {
    while (const auto signal = signals_.next()) {
      if (code_) return;
      if (*signal == SIGTSTP || *signal == SIGTTIN || *signal == SIGTTOU) {
        suspend();
      } else if (*signal == SIGCONT) {
        resume();
      } else if (*signal != SIGWINCH) {
        code_ = 128 + *signal;
      }
    }
  }

  /// Ctrl-Z: the shell gets its terminal back as it was.
  void suspend() {
    screen_.leave();
    keys_.release();
    (void)::raise(SIGSTOP);
  }
  /// We begin, or go on, whoever stopped us: with the terminal if it is ours.
  void resume() {
    if (!os::is_in_foreground(STDOUT_FILENO)) return suspend();
    keys_.take();
    if (has_something_to_show()) screen_.show();
  }

  Result<void> take_news() {
    auto news = feed_.take();
    if (!news) return {};
    if (*news) {
      listed_ = std::move(**news);
      fetched_ = os::now().mono;
    } else if (!(listed_ || news->error().code == Code::Timeout) ||
               !is_waited_out(news->error(), feed_)) {
      return std::unexpected(news->error());
    }
    return {};
  }

  Context& context_;
  const Listing& listing_;
  const View& view_;
  JobFeed feed_;
  const std::string user_ = viewer_name(context_);
  std::optional<ListedJobs> listed_;  ///< once the daemon has answered
  MonoTime fetched_ = os::now().mono;
  std::optional<int> code_;
  os::SignalWatch signals_;
  os::FaultRescue rescue_;
  os::Keys keys_;
  Screen screen_;
};

Result<int> watch_terminal(Context& context,
                           const Listing& listing,
                           const Fetch& fetch,
                           const View& view) {
  // Before the feed: its threads must not be the ones that signals interrupt.
  os::SignalWatch signals = GF_TRY(os::SignalWatch::open(terminal_signals()));
  constexpr milliseconds kPause{200};  // faster than that nobody reads
  // One that is sent is for the thread that draws; abort() of another unblocks it first.
  const auto start = [&] {
    const os::SignalsBlocked blocked(std::array{SIGABRT});
    const std::optional<milliseconds> interval =
        view.panel ? view.interval : std::optional<milliseconds>();
    return JobFeed::start(fetch, context, {kPause, interval});
  };
  JobFeed feed = GF_TRY(start());
  LiveView live(context, listing, view, std::move(feed), std::move(signals));
  return live.run();
}

/// A listing written anew with every change, below the one before.
class WrittenListings {
 public:
  WrittenListings(Context& context, const Listing& listing)
      : context_(context), listing_(listing) {}

  void write(const ListedJobs& listed) {
    std::string text =
        is_screen(listing_)
            ? screen(standing_still(listed), WallTime{})
            : context_.listing([&] { return listing_text(listing_, listed.page, context_.paint); });
    if (text == before_) return;
    before_ = std::move(text);
    if (is_screen(listing_)) {
      const WallTime now = os::now().wall;
      context_.out << clock_text(now, os::utc_offset) << '\n' << screen(listed, now);
    } else {
      context_.out << before_;
    }
    const bool block = listing_.format != Format::Json && listing_.format != Format::JsonLines;
    context_.out << (block ? "\n" : "") << std::flush;
  }

 private:
  /// For a terminal that cannot be drawn on.
  [[nodiscard]] std::string screen(const ListedJobs& listed, WallTime now) const {
    const int columns = os::terminal_size(STDOUT_FILENO).columns;
    return queue_screen(listing_,
                        listed,
                        {user_, now, os::utc_offset, static_cast<std::size_t>(columns)},
                        context_.paint);
  }
  /// That a job ran on is no change.
  static ListedJobs standing_still(ListedJobs listed) {
    for (api::JobView& job : listed.page.jobs) job.run_time = {};
    return listed;
  }

  Context& context_;
  const Listing& listing_;
  const std::string user_ = viewer_name(context_);
  std::string before_;
};

Result<int> watch_pipe(Context& context, const Listing& listing, const Fetch& fetch) {
  JobFeed feed = GF_TRY(JobFeed::start(fetch, context, {}));
  WrittenListings written(context, listing);
  bool answered = false;
  bool said = false;
  while (context.out) {
    const Ready ready = wait_for_any(-1, -1, feed.fd(), milliseconds(-1));
    if (ready.nobody_reads) return 0;
    const auto listed = feed.take();
    if (listed && *listed) {
      answered = true;
      written.write(**listed);
    } else if (listed && !(answered && is_waited_out(listed->error(), feed))) {
      return std::unexpected(listed->error());
    }
    const auto silent = feed.silence();
    if (silent && !said) context.note(waits_for_it(silent->why));
    if (said && !silent) context.note(tr("the daemon answers again"));
    said = silent.has_value();
  }
  return 0;
}

}  // namespace

Result<seconds> interval_of(const Invocation& invocation) {
  const auto interval = parse_number(invocation.has("interval") ? invocation.get("interval") : "2");
  if (!interval || *interval == 0 || *interval > 86'400) {
    return fail(Code::Usage, tr("--interval needs a number of seconds, such as 2"));
  }
  return seconds(*interval);
}

Result<int> watch(Context& context, const Listing& listing, const Fetch& fetch, const View& view) {
  const bool in_place =
      context.out_is_terminal && context.can_move_cursor && listing.format == Format::Table;
  return in_place ? watch_terminal(context, listing, fetch, view)
                  : watch_pipe(context, listing, fetch);
}

}  // namespace gflow::cli

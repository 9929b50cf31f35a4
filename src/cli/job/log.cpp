// SPDX-License-Identifier: Apache-2.0
#include "cli/job/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ostream>
#include <thread>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "cli/job/subcommands.h"
#include "cli/job/wait.h"
#include "cli/job_reason.h"
#include "cli/selection.h"
#include "command/context.h"
#include "os/file.h"
#include "os/file_watch.h"
#include "os/terminal.h"

namespace gflow::cli {

namespace {

constexpr std::size_t kBlock = 64 * 1024;

/// One block of a file; empty at its end.
Result<std::string> read_block(const os::Fd& file, std::size_t at, std::size_t most = kBlock) {
  std::string block(most, '\0');
  const ssize_t got = ::pread(file.get(), block.data(), most, static_cast<off_t>(at));
  if (got < 0) return os::errno_error("read");
  block.resize(static_cast<std::size_t>(got));
  return block;
}

/// Copies from `at` to the end as it is now; where that was.
Result<std::size_t> copy_rest(const os::Fd& file, std::size_t at, std::ostream& out) {
  while (out) {
    const std::string block = GF_TRY(read_block(file, at));
    if (block.empty()) break;
    out << block;
    at += block.size();
  }
  out.flush();
  return at;
}

Result<void> copy_first_lines(const os::Fd& file, std::size_t lines, std::ostream& out) {
  for (std::size_t at = 0; lines > 0 && out;) {
    const std::string block = GF_TRY(read_block(file, at));
    if (block.empty()) break;
    std::size_t end = 0;
    while (lines > 0 && end < block.size()) {
      const std::size_t line_end = block.find('\n', end);
      if (line_end == std::string::npos) {
        end = block.size();
      } else {
        end = line_end + 1;
        --lines;
      }
    }
    out << std::string_view(block).substr(0, end);
    at += block.size();
  }
  return {};
}

Result<std::optional<std::size_t>> line_count(const Invocation& invocation,
                                              std::string_view option) {
  if (!invocation.has(option)) return std::nullopt;
  const auto number = parse_number(invocation.get(option));
  if (!number) {
    return fail(
        Code::Usage,
        tr_format(
            "--{}: '{}' is not a number of lines", option, printable(invocation.get(option))));
  }
  return static_cast<std::size_t>(*number);
}

/// The log of a job that has not started yet comes into being when it starts.
Result<api::JobView> started_job(Context& context, JobId id) {
  bool told = false;
  while (true) {
    const api::JobView job = GF_TRY(context.daemon().job(id));
    if (os::exists(job.log_path) || job.ended || job.log_path.empty()) return job;
    JobQuery query;
    query.jobs = {id};
    const api::JobPage page = GF_TRY(context.daemon().jobs(query));
    if (page.jobs.empty() || page.jobs.front().status != job.status) continue;
    if (os::exists(job.log_path)) return job;
    GF_TRY(context.daemon().wait_change(page.revision, id, [&] {
      if (!std::exchange(told, true)) {
        context.hint(waits_to_start(job));
      }
    }));
  }
}

/// Copies what the job writes until it has ended.
Result<void> follow(Context& context, const api::JobView& job, std::size_t at) {
  os::end_with_reader(1);
  const os::Fd file = GF_TRY(os::open_file(job.log_path, O_RDONLY | O_CLOEXEC));
  os::FileWatch file_watch = GF_TRY(os::FileWatch::open(job.log_path));
  Context apart(context.out, context.err);
  apart.set_socket(context.socket());
  std::atomic<bool> ended = false;
  std::jthread until_end([&] {
    // If the daemon cannot be asked any more, what is there is shown and following ends.
    (void)wait_for(apart, {job.id}, std::nullopt);
    ended = true;
    file_watch.interrupt();
  });
  while (context.out) {
    const bool last_round = ended;
    at = GF_TRY(copy_rest(file, at, context.out));
    if (last_round) break;
    GF_CHECK(file_watch.wait());
  }
  return {};
}

/// The daemon says where a log is to whom it belongs.
Result<void> may_read_log(const api::JobView& job) {
  if (!job.log_path.empty()) return {};
  return fail(
      Code::Permission,
      tr_format(
          "the log of job {} can be read by {} only", job.id.value, printable(job.spec.user.name)));
}

Result<LogWish> read_wish(const Invocation& invocation) {
  return LogWish{GF_TRY(line_count(invocation, "first")),
                 GF_TRY(line_count(invocation, "last")),
                 invocation.has("follow") ? client::Follow::Yes : client::Follow::No};
}

Result<void> print_log(Context& context, const api::JobView& job, const LogWish& wanted) {
  GF_CHECK(may_read_log(job));
  if (!os::exists(job.log_path)) {
    return fail(Code::NotFound,
                job.started ? tr_format("the log {} no longer exists", printable(job.log_path))
                            : tr_format("job {} never started and has no log", job.id.value));
  }
  const os::Fd file = GF_TRY(os::open_file(job.log_path, O_RDONLY | O_CLOEXEC));
  if (wanted.first) return copy_first_lines(file, *wanted.first, context.out);
  const std::size_t at =
      wanted.last ? GF_TRY(start_of_last_lines(job.log_path, *wanted.last)) : std::size_t{0};
  if (wanted.follow == client::Follow::Yes) return follow(context, job, at);
  GF_TRY(copy_rest(file, at, context.out));
  return {};
}

Result<int> run_log(const Invocation& invocation, Context& context) {
  const LogWish wish = GF_TRY(read_wish(invocation));
  const JobId id = GF_TRY(resolve_job(invocation.words.front(), context.daemon()));
  if (context.is_remote() && !invocation.has("path")) {
    GF_CHECK(print_remote_log(context, id, wish));
    return 0;
  }
  const bool wait_for_start = invocation.has("follow") && !invocation.has("path");
  const api::JobView job =
      wait_for_start ? GF_TRY(started_job(context, id)) : GF_TRY(context.daemon().job(id));
  if (invocation.has("path")) {
    GF_CHECK(may_read_log(job));
    context.out << job.log_path << '\n';
  } else {
    GF_CHECK(print_log(context, job, wish));
  }
  return 0;
}

}  // namespace

Result<std::size_t> start_of_last_lines(const std::string& path, std::size_t lines) {
  const os::Fd file = GF_TRY(os::open_file(path, O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return os::errno_error("stat", path);
  const auto size = static_cast<std::size_t>(info.st_size);
  std::size_t end = size;
  while (end > 0) {
    const std::size_t begin = end > kBlock ? end - kBlock : 0;
    const std::string block = GF_TRY(read_block(file, begin, end - begin));
    const auto found = back_over_lines(block, end == size, lines);
    if (found) return begin + *found;
    end = begin;
  }
  return std::size_t{0};
}

std::optional<std::size_t> back_over_lines(std::string_view block,
                                           bool is_last,
                                           std::size_t& lines) {
  if (lines == 0) return block.size();
  for (std::size_t i = block.size(); i-- > 0;) {
    // The line end at the very end ends the last line, it does not begin one.
    if (block[i] != '\n' || (is_last && i + 1 == block.size())) continue;
    if (--lines == 0) return i + 1;
  }
  return std::nullopt;
}

std::string waits_to_start(const api::JobView& job) {
  return tr_format("Waiting for job {} to start: {}", job.id.value, printable(reason_of(job)));
}

Command job_log_command() {
  return {
      .name = "log",
      .summary = tr("print the output of a job"),
      .usage = {"[options] JOB"},
      .description =
          tr("Prints the log of a job: stdout and stderr, in the order they were written."),
      .options =
          {
              {.name = "follow",
               .letters = "fF",
               .help = tr(
                   "Follow the output until the job ends; wait for a job that has not started.")},
              {.name = "first",
               .value = "N",
               .help = tr("Print only the first N lines."),
               .excludes = {"last", "follow"}},
              {.name = "last",
               .letters = "ln",
               .value = "N",
               .help = tr("Print only the last N lines; with --follow, start there.")},
              {.name = "path",
               .help = tr("Print only the path of the log, where the job runs."),
               .excludes = {"follow", "first", "last"}},
          },
      .words = {.name = "JOB",
                .help = tr("Job id; @ is your newest job."),
                .least = 1,
                .most = 1,
                .complete = Complete::Job},
      .common = Common::Text,
      .aliases = {"l"},
      .run = run_log,
  };
}

}  // namespace gflow::cli

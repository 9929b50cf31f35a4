// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>
#include <ostream>
#include <string_view>

#include "base/text.h"
#include "base/translate.h"
#include "cli/job/log.h"
#include "cli/patience.h"
#include "os/terminal.h"

namespace gflow::cli {

namespace {

using client::Follow;

/// As many of these bytes as the lines still wanted take up.
std::string_view first_lines(std::string_view bytes, std::size_t& lines) {
  std::size_t end = 0;
  while (lines > 0 && end < bytes.size()) {
    const std::size_t line_end = bytes.find('\n', end);
    if (line_end == std::string_view::npos) return bytes;
    end = line_end + 1;
    --lines;
  }
  return bytes.substr(0, end);
}

/// Where the log ended then.
Result<std::uint64_t> print_last_lines(Context& context,
                                       JobId job,
                                       std::size_t lines,
                                       Follow follow) {
  constexpr std::uint64_t kFirst = 64 * 1024;
  constexpr std::uint64_t kMost = 64 * 1024 * 1024;  // as far back as gflowd itself looks
  for (std::uint64_t most = kFirst;; most *= 32) {
    const auto end = context.daemon().end_of_log(job, most);
    const bool is_to_come = !end && follow == Follow::Yes && end.error().code == Code::NotFound;
    if (is_to_come) return std::uint64_t{0};
    if (!end) return std::unexpected(end.error());
    std::size_t left = lines;
    const auto begin = back_over_lines(end->bytes, true, left);
    if (!begin && end->first > 0 && most < kMost) continue;
    context.out << std::string_view(end->bytes).substr(begin.value_or(0)) << std::flush;
    return end->first + end->bytes.size();
  }
}

/// Prints from `at` on. A connection that is cut is made anew, from the next byte on.
Result<void> print_from(
    Context& context, Patience& patience, JobId job, std::uint64_t at, const LogWish& wish) {
  std::size_t lines = wish.first.value_or(0);
  const auto take = [&](std::string_view bytes) {
    if (wish.first) bytes = first_lines(bytes, lines);
    context.out << bytes << std::flush;
    at += bytes.size();
    return context.out.good() && !(wish.first && lines == 0);
  };
  while (true) {
    const std::uint64_t before = at;
    const std::function<Result<bool>()> read = [&]() -> Result<bool> {
      const auto all = context.daemon().log(job, at, wish.follow, take);
      if (all) return true;
      const bool is_cut = all.error().code == Code::Unreachable && at > before;
      if (is_cut) return false;
      return std::unexpected(all.error());
    };
    if (GF_TRY(patience(read))) return {};
    context.note(tr_format("the connection was lost; continuing at byte {}", at));
  }
}

}  // namespace

Result<void> print_remote_log(Context& context, JobId id, const LogWish& wish) {
  Patience patience(context);
  const std::function<Result<api::JobView>()> show = [&] { return context.daemon().job(id); };
  const api::JobView job = GF_TRY(patience(show));
  if (wish.first == 0U) return {};
  if (wish.follow == Follow::Yes) {
    os::end_with_reader(1);
    if (!job.started && !job.ended) context.hint(waits_to_start(job));
  }
  std::uint64_t at = 0;
  if (wish.last) at = GF_TRY(print_last_lines(context, id, *wish.last, wish.follow));
  if (wish.last && wish.follow == Follow::No) return {};
  return print_from(context, patience, id, at, wish);
}

}  // namespace gflow::cli

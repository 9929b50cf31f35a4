// SPDX-License-Identifier: Apache-2.0
#include "cli/submit/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "base/translate.h"
#include "core/job_range.h"
#include "core/requests.h"

namespace gflow::cli {

namespace {

constexpr std::uint64_t kMaxTasks = 1'000'000;  // a daemon may take fewer: limits.max_submit

/// The jobs of one Slurm dependency, "afterok:1:2".
Result<std::vector<JobId>> read_afterok(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (kind != "afterok") {
    return fail(Code::Usage,
                tr_format("--dependency: '{}' is not available in this version; a job waits for "
                          "others to finish with exit code 0 (afterok)",
                          printable(kind)));
  }
  std::vector<JobId> jobs;
  for (const std::string_view piece : split(text.substr(colon + 1), ':')) {
    const std::vector<JobId> ids = GF_TRY(parse_job_ids(piece));
    jobs.insert(jobs.end(), ids.begin(), ids.end());
  }
  return jobs;
}

bool is_slurm(std::string_view text) {
  return !text.empty() && ((text.front() >= 'a' && text.front() <= 'z'));
}

/// The tasks of one piece of a list, "5-9:2", added to the others.
Result<void> add_tasks(std::string_view piece, std::vector<std::uint64_t>& tasks) {
  const std::size_t dash = piece.find('-');
  const std::size_t colon = piece.find(':');
  const auto first = parse_number(piece.substr(0, std::min(dash, colon)));
  auto last = first;
  if (dash != std::string_view::npos) {
    last = parse_number(piece.substr(
        dash + 1, colon == std::string_view::npos ? std::string_view::npos : colon - dash - 1));
  }
  const auto step = colon == std::string_view::npos ? std::optional<std::uint64_t>(1)
                                                    : parse_number(piece.substr(colon + 1));
  if (!first || !last || !step || *step == 0 || *last < *first ||
      (colon != std::string_view::npos && dash == std::string_view::npos)) {
    return fail(
        Code::Usage,
        tr_format("--array: '{}' is not valid; write 1-10, 0-100:10 or 1,3,7-9", printable(piece)));
  }
  if (*last > kMaxTaskNumber) {
    return fail(
        Code::Usage,
        tr_format("--array: {} is too high; tasks are numbered up to {}", *last, kMaxTaskNumber));
  }
  if ((*last - *first) / *step >= kMaxTasks - std::min(kMaxTasks, tasks.size())) {
    return fail(Code::Usage, tr_format("--array: more than {} tasks at once", kMaxTasks));
  }
  for (std::uint64_t task = *first; task <= *last; task += *step) tasks.push_back(task);
  return {};
}

bool is_variable_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::ranges::all_of(name, plain) && (name[0] < '0' || name[0] > '9');
}

}  // namespace

Result<int> read_count(std::string_view option, std::string_view text, Range range) {
  const std::string_view digits = trim(text);
  const char* const end = digits.data() + digits.size();
  int count = 0;
  const auto [stop, error] = std::from_chars(digits.data(), end, count);
  const bool is_signed = digits.starts_with('-') && range.least >= 0;  // "-0"
  if (error == std::errc() && stop == end && !is_signed && range.contains(count)) return count;
  return fail(Code::Usage,
              tr_format("{}: '{}' is not a number from {} to {}",
                        option,
                        printable(text),
                        range.least,
                        range.most));
}

Result<std::optional<std::chrono::seconds>> read_time_limit(std::string_view text) {
  const std::string lower = to_lower(trim(text));
  if (lower == "unlimited" || lower == "infinite" || lower == "0") return std::nullopt;
  auto limit = parse_duration(text);
  if (!limit) return with_context(limit.error(), "--time");
  return *limit;
}

Result<std::chrono::seconds> read_grace(std::string_view text) {
  if (const auto seconds = parse_number(trim(text)); seconds && *seconds <= 86'400) {
    return std::chrono::seconds(*seconds);
  }
  auto grace = parse_duration(text);
  if (!grace) return with_context(grace.error(), "--grace");
  return *grace;
}

Result<Dependencies> read_dependency(std::string_view text,
                                     DependencyMode mode,
                                     const Newest& newest) {
  Dependencies wanted;
  wanted.mode = mode;
  const std::string_view body = trim(text);
  if (is_slurm(body)) {
    const bool any = body.find('?') != std::string_view::npos;
    if (any && body.find(',') != std::string_view::npos) {
      return fail(Code::Usage, tr("--dependency: ',' (all of) and '?' (any of) cannot be mixed"));
    }
    if (any) wanted.mode = DependencyMode::Any;
    for (const std::string_view piece : split(body, any ? '?' : ',')) {
      const std::vector<JobId> jobs = GF_TRY(read_afterok(trim(piece)));
      wanted.jobs.insert(wanted.jobs.end(), jobs.begin(), jobs.end());
    }
  } else {
    const std::vector<std::string> words = {std::string(body)};
    wanted.jobs = GF_TRY(resolve_jobs(words, newest));
  }
  std::ranges::sort(wanted.jobs);
  const auto repeated = std::ranges::unique(wanted.jobs);
  wanted.jobs.erase(repeated.begin(), repeated.end());
  return wanted;
}

Result<int> lower_priority(int priority, std::string_view nice) {
  int value = 0;
  const std::string_view body = trim(nice);
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), value);
  if (error != std::errc{} || end != body.data() + body.size() || value < -1'000'000'000 ||
      value > 1'000'000'000) {
    return fail(
        Code::Usage,
        tr_format("--nice: '{}' is not a number; positive is less urgent", printable(nice)));
  }
  return std::clamp(priority - value, 0, kMaxPriority);
}

Result<Array> read_array(std::string_view text) {
  Array array;
  std::string_view body = trim(text);
  if (const std::size_t percent = body.find('%'); percent != std::string_view::npos) {
    const int limit = GF_TRY(read_count("--array", body.substr(percent + 1)));
    if (limit == 0) return fail(Code::Usage, tr("--array: %0 would let no task run"));
    array.max_concurrent = limit;
    body = body.substr(0, percent);
  }
  for (const std::string_view piece : split(body, ',')) {
    GF_CHECK(add_tasks(trim(piece), array.tasks));
  }
  std::ranges::sort(array.tasks);
  const auto repeated = std::ranges::unique(array.tasks);
  array.tasks.erase(repeated.begin(), repeated.end());
  return array;
}

Result<Export> read_export(std::string_view text) {
  Export wanted;
  wanted.base = Export::Base::None;
  for (const std::string_view piece : split(text, ',')) {
    const std::size_t equals = piece.find('=');
    const std::string_view name = piece.substr(0, equals);
    if (piece == "ALL") {
      wanted.base = Export::Base::All;
    } else if (piece == "NONE" || piece == "NIL") {
      wanted.base = Export::Base::None;
    } else if (!is_variable_name(name)) {
      return fail(
          Code::Usage,
          tr_format("--export: '{}' is not ALL, NONE, NAME or NAME=value", printable(piece)));
    } else if (equals == std::string_view::npos) {
      wanted.names.emplace_back(name);
    } else {
      wanted.set.emplace_back(piece);
    }
  }
  return wanted;
}

}  // namespace gflow::cli

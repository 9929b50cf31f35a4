// SPDX-License-Identifier: Apache-2.0
#include "store/event_rows.h"

#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "base/text.h"
#include "store/columns.h"

namespace gflow::store {
namespace {

/// Of an event: its numbers, user, name, node, GPUs.
constexpr std::size_t kTexts = 5;
constexpr std::size_t kNumbers = 12;
constexpr std::size_t kNumbersOfOne = 9;  ///< where it happened to one job
constexpr std::size_t kMostRemoved = 8;   ///< with one transaction

void add_texts(std::vector<std::string>& texts, const JobEvent& event) {
  std::string numbers = fmt::format("{} {} {} {} {} {} {} {} {}",
                                    static_cast<int>(event.what),
                                    event.job.value,
                                    event.user.uid,
                                    event.allocation ? 1 : 0,
                                    static_cast<int>(event.status),
                                    event.attempt,
                                    static_cast<int>(event.reason),
                                    event.exit_code,
                                    event.signal);
  if (event.count > 1) {
    numbers += fmt::format(" {} {} {}", event.count, event.naming.by_id ? 1 : 0, event.naming.step);
  }
  texts.push_back(std::move(numbers));
  texts.push_back(event.user.name);
  texts.push_back(event.name);
  texts.push_back(event.node);
  texts.push_back(ranges_text(std::span<const int>(event.gpus)));
}

[[noreturn]] void refuse() { throw SQLite::Exception("an event that is none", SQLITE_CORRUPT); }

std::vector<int> gpus_of(const std::string& text) {
  std::vector<int> gpus;
  if (text.empty()) return gpus;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = parse_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(part.substr(dash + 1));
    if (!first || !last || *first > *last || *last > INT32_MAX || *last - *first > INT16_MAX) {
      refuse();
    }
    for (auto gpu = *first; gpu <= *last; ++gpu) gpus.push_back(static_cast<int>(gpu));
  }
  return gpus;
}

JobEvent read_event(std::span<const std::string> texts) {
  std::array<std::int64_t, kNumbers> numbers{};
  const auto words = split(texts[0], ' ');
  if (words.size() != kNumbers && words.size() != kNumbersOfOne) refuse();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_negative = words[i].starts_with('-');
    const auto number = parse_number(words[i].substr(is_negative ? 1 : 0));
    if (!number || *number > static_cast<std::uint64_t>(INT64_MAX)) refuse();
    numbers.at(i) =
        is_negative ? -static_cast<std::int64_t>(*number) : static_cast<std::int64_t>(*number);
  }
  JobEvent event;
  event.what = static_cast<Happening>(numbers[0]);
  event.job = JobId(static_cast<std::uint64_t>(numbers[1]));
  event.user = {static_cast<std::uint32_t>(numbers[2]), texts[1]};
  event.allocation = numbers[3] != 0;
  event.status = static_cast<Status>(numbers[4]);
  event.attempt = static_cast<int>(numbers[5]);
  event.reason = static_cast<EndReason>(numbers[6]);
  event.exit_code = static_cast<int>(numbers[7]);
  event.signal = static_cast<int>(numbers[8]);
  if (words.size() == kNumbers) {
    event.count = static_cast<std::uint64_t>(numbers[9]);
    event.naming = {.by_id = numbers[10] != 0, .step = static_cast<std::uint32_t>(numbers[11])};
    if (numbers[9] < 2 || numbers[11] < 0 || numbers[11] > UINT32_MAX) refuse();
  }
  event.name = texts[2];
  event.node = texts[3];
  event.gpus = gpus_of(texts[4]);
  return event;
}

}  // namespace

EventRows::EventRows(SQLite::Database& database)
    : database_(database),
      add_(database, "INSERT INTO events (first, at_ms, count, list) VALUES (?, ?, ?, ?)"),
      remove_(database, "DELETE FROM events WHERE first = ?") {
  Statement all(database, "SELECT first, count, at_ms FROM events ORDER BY first");
  Query query(all);
  while (query.step()) {
    const auto first = query.as<std::uint64_t>();
    const auto count = query.as<std::size_t>();
    rows_.push_back({first, count, query.time()});
    count_ += count;
  }
}

std::vector<JobEvents> EventRows::load() {
  std::vector<JobEvents> all;
  Statement select(database_, "SELECT first, at_ms, count, list FROM events ORDER BY first");
  Query query(select);
  while (query.step()) {
    JobEvents& row = all.emplace_back();
    row.first = query.as<std::uint64_t>();
    row.at = query.time();
    const auto count = query.as<std::size_t>();
    std::vector<std::string> texts;
    get(query, texts);
    if (texts.size() % kTexts != 0) refuse();
    for (std::size_t i = 0; i < texts.size(); i += kTexts) {
      row.events.push_back(read_event(std::span(texts).subspan(i, kTexts)));
    }
    if (row.count() != count) refuse();
  }
  return all;
}

void EventRows::add(const JobEvents& what) {
  pending_ = {};
  std::uint64_t first = what.first;
  for (std::size_t at = 0; at < what.events.size(); at += kMaxEventsTogether) {
    const std::size_t entries = std::min(kMaxEventsTogether, what.events.size() - at);
    std::size_t count = 0;  // of jobs these happened to
    std::vector<std::string> texts;
    texts.reserve(entries * kTexts);
    for (std::size_t i = 0; i < entries; ++i) {
      add_texts(texts, what.events[at + i]);
      count += what.events[at + i].count;
    }
    Query query(add_);
    query.integer(static_cast<std::int64_t>(first));
    query.time(what.at).integer(static_cast<std::int64_t>(count));
    put(query, texts);
    query.run();
    pending_.added.push_back({first, count, what.at});
    first += count;
  }
  trim(what.at);
}

void EventRows::trim(WallTime now) {
  std::size_t count = count_;
  for (const Row& row : pending_.added) count += row.count;
  const auto is_too_much = [&](const Row& row) {
    return count > kMaxEventsKept || now - row.at > kEventsKeptFor;
  };
  // The newest stays: by it the next number is known.
  const std::size_t old = rows_.size() - (pending_.added.empty() && !rows_.empty() ? 1 : 0);
  std::size_t& removed = pending_.removed;
  for (; removed < std::min(old, kMostRemoved) && is_too_much(rows_[removed]); ++removed) {
    Query(remove_).integer(static_cast<std::int64_t>(rows_[removed].first)).run();
    count -= rows_[removed].count;
  }
}

void EventRows::added() {
  for (; pending_.removed > 0; --pending_.removed) {
    count_ -= rows_.front().count;
    rows_.pop_front();
  }
  for (const Row& row : pending_.added) {
    count_ += row.count;
    rows_.push_back(row);
  }
  pending_ = {};
}

std::uint64_t EventRows::next(WallTime now) {
  if (!rows_.empty()) return rows_.back().first + rows_.back().count;
  if (base_ == 0) {
    const std::chrono::microseconds since_1970 = now.time_since_epoch();
    base_ = static_cast<std::uint64_t>(std::max<std::int64_t>(since_1970.count(), 1));
  }
  return base_;
}

}  // namespace gflow::store

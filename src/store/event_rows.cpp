// SPDX-License-Identifier: Apache-2.0
#include "store/event_rows.h"

#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "store/columns.h"

namespace gflow::store {
namespace {

/// Of an event: its numbers, user, name, node, GPUs.
constexpr std::size_t kTexts = 5;
constexpr std::size_t kMostRemoved = 8;  ///< with one transaction

/// The numbers of an event, in the order of its row: `visit` is called with each. What is new goes
/// to the end, with how many there were before: rows of a day ago are read by the program of today.
template <class Event, class Visit>
void each_number(Event& event, Visit& visit) {
  visit(event.what);
  visit(event.job.value);
  visit(event.user.uid);
  visit(event.allocation);
  visit(event.status);
  visit(event.attempt);
  visit(event.reason);
  visit(event.exit_code);
  visit(event.signal);
}
/// Behind these, where it happened to more than one job.
template <class Event, class Visit>
void each_number_of_many(Event& event, Visit& visit) {
  visit(event.count);
  visit(event.naming.by_id);
  visit(event.naming.step);
}

[[noreturn]] void refuse() { throw SQLite::Exception("an event that is none", SQLITE_CORRUPT); }

/// "11 7 1000 0 ...": as each_number() goes through them.
class NumbersWriter {
 public:
  template <class T>
  void operator()(const T& number) {
    if (!text_.empty()) text_ += ' ';
    if constexpr (std::is_enum_v<T>) {
      text_ += fmt::to_string(std::to_underlying(number));
    } else if constexpr (std::is_same_v<T, bool>) {
      text_ += number ? '1' : '0';
    } else {
      text_ += fmt::to_string(number);
    }
  }
  [[nodiscard]] std::string take() && { return std::move(text_); }

 private:
  std::string text_;
};
/// The other way; refuses what does not fit.
class NumbersReader {
 public:
  explicit NumbersReader(std::string_view text) : words_(split(text, ' ')) {}

  template <class T>
  void operator()(T& number) {
    const std::int64_t value = next();
    if constexpr (std::is_enum_v<T>) {
      number = static_cast<T>(fitting<std::underlying_type_t<T>>(value));
    } else {
      number = fitting<T>(value);
    }
  }
  [[nodiscard]] bool is_at_end() const { return at_ == words_.size(); }

 private:
  std::int64_t next() {
    if (is_at_end()) refuse();
    std::string_view word = words_[at_++];
    const bool is_negative = word.starts_with('-');
    if (is_negative) word.remove_prefix(1);
    const auto number = parse_number(word);
    if (!number || *number > static_cast<std::uint64_t>(INT64_MAX)) refuse();
    const auto value = static_cast<std::int64_t>(*number);
    return is_negative ? -value : value;
  }
  template <class T>
  static T fitting(std::int64_t value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (value != 0 && value != 1) refuse();
    } else if (!std::in_range<T>(value)) {
      refuse();
    }
    return static_cast<T>(value);
  }

  std::vector<std::string_view> words_;
  std::size_t at_ = 0;
};

void add_texts(std::vector<std::string>& texts, const JobEvent& event) {
  NumbersWriter numbers;
  each_number(event, numbers);
  if (event.count > 1) each_number_of_many(event, numbers);
  texts.push_back(std::move(numbers).take());
  texts.push_back(event.user.name);
  texts.push_back(event.name);
  texts.push_back(event.node);
  texts.push_back(ranges_text(std::span<const int>(event.gpus)));
}

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
  JobEvent event;
  NumbersReader numbers(texts[0]);
  each_number(event, numbers);
  if (!numbers.is_at_end()) {
    each_number_of_many(event, numbers);
    if (event.count < 2 || !numbers.is_at_end()) refuse();
  }
  event.user.name = texts[1];
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
  if (base_ == 0) base_ = begin(now);
  return base_;
}

/// Written down, so that who listened before there was any event goes on behind a restart. Where
/// that fails, the number is known as long as this lives.
std::uint64_t EventRows::begin(WallTime now) {
  const std::chrono::microseconds since_1970 = now.time_since_epoch();
  const auto first = std::max<std::int64_t>(since_1970.count(), 1);
  try {
    Statement update(database_, "UPDATE meta SET first_event = coalesce(first_event, ?)");
    Query(update).integer(first).run();
    return static_cast<std::uint64_t>(
        database_.execAndGet("SELECT first_event FROM meta").getInt64());
  } catch (const SQLite::Exception&) {
    return static_cast<std::uint64_t>(first);
  }
}

}  // namespace gflow::store

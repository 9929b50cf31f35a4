// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"

namespace gflow::store {

/// One use of a prepared statement: binds and reads in order, left to right, and leaves the
/// statement reset, on an exception too. Text is borrowed until then. Throws SQLite::Exception.
class Query {
 public:
  explicit Query(SQLite::Statement& statement) : statement_(statement) {}
  ~Query() { (void)statement_.tryReset(); }  // what it says was thrown by step() already
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  Query& integer(std::int64_t value) {
    statement_.bind(++bound_, value);
    return *this;
  }
  Query& text(const std::string& value) {
    statement_.bindNoCopy(++bound_, value);
    return *this;
  }
  /// Text that does not live until the statement has run.
  Query& copied(const std::string& value) {
    statement_.bind(++bound_, value);
    return *this;
  }
  Query& blob(const std::string& value) {
    if (value.size() > kBlobMost) throw SQLite::Exception("a value is larger than the store takes");
    statement_.bindNoCopy(++bound_, value.data(), static_cast<int>(value.size()));
    return *this;
  }
  Query& null() {
    statement_.bind(++bound_);
    return *this;
  }
  Query& nulls(int count) {
    for (int i = 0; i < count; ++i) null();
    return *this;
  }
  Query& time(WallTime value) { return integer(value.time_since_epoch().count()); }

  /// On to the next row; false after the last.
  bool step() {
    read_ = 0;
    return statement_.executeStep();
  }
  /// Runs a statement that gives no rows.
  void run() { statement_.exec(); }

  /// The next column is NULL. Does not go past it.
  [[nodiscard]] bool is_null() const { return statement_.isColumnNull(read_); }
  void skip(int columns) { read_ += columns; }
  [[nodiscard]] std::int64_t integer() { return statement_.getColumn(read_++).getInt64(); }
  template <typename Int>
  [[nodiscard]] Int as() {
    return static_cast<Int>(integer());
  }
  /// Text or blob, all its bytes.
  [[nodiscard]] std::string text() { return statement_.getColumn(read_++).getString(); }
  [[nodiscard]] std::optional<std::string> optional_text() {
    if (!is_null()) return text();
    skip(1);
    return std::nullopt;
  }
  [[nodiscard]] WallTime time() { return WallTime(std::chrono::milliseconds(integer())); }

 private:
  static constexpr std::size_t kBlobMost = 500'000'000;  // SQLite's own limit on a row is 10^9

  SQLite::Statement& statement_;
  int bound_ = 0;
  int read_ = 0;
};

}  // namespace gflow::store

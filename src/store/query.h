// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

struct sqlite3;
struct sqlite3_stmt;
struct sqlite3_value;

namespace gflow::store {

/// A prepared statement. SQLiteCpp's own counts a reference for each column it reads, an eighth of
/// the time load() takes. Throws SQLite::Exception.
class Statement {
 public:
  Statement(SQLite::Database& database, std::string_view sql);

 private:
  friend class Query;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// One use of a statement: binds and reads in order, left to right, and leaves the statement reset,
/// on an exception too. What is bound is borrowed until then. Throws SQLite::Exception.
class Query {
 public:
  explicit Query(Statement& statement);
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  Query& integer(std::int64_t value);
  Query& text(const std::string& value);
  Query& blob(const std::string& value);
  Query& null();
  Query& nulls(int count);
  Query& time(WallTime value) { return integer(value.time_since_epoch().count()); }
  /// Text or blob that does not live until the statement has run.
  Query& copied(const std::string& value);
  Query& copied_blob(const std::string& value);

  /// On to the next row; false after the last.
  bool step();
  /// Runs a statement that gives no rows.
  void run() { (void)step(); }

  /// The next column is NULL. Does not go past it.
  [[nodiscard]] bool is_null() const;
  void skip(int columns) { read_ += columns; }
  [[nodiscard]] std::int64_t integer();  ///< 0 for NULL
  template <typename Int>
  [[nodiscard]] Int as() {
    return static_cast<Int>(integer());
  }
  /// Empty for NULL.
  template <typename Int>
  [[nodiscard]] std::optional<Int> optional() {
    if (!is_null()) return as<Int>();
    skip(1);
    return std::nullopt;
  }
  /// Text or blob, all its bytes; "" for NULL.
  [[nodiscard]] std::string text();
  [[nodiscard]] std::optional<std::string> optional_text();
  [[nodiscard]] WallTime time() { return WallTime(std::chrono::milliseconds(integer())); }

 private:
  void check(int code) const;
  /// The next column, which is looked up once for all that is asked of it.
  [[nodiscard]] sqlite3_value* value() const;

  sqlite3* database_;
  sqlite3_stmt* statement_;
  int bound_ = 0;
  int read_ = 0;
  mutable sqlite3_value* value_ = nullptr;
  mutable int value_of_ = -1;  ///< the column that is
};

}  // namespace gflow::store

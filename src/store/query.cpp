// SPDX-License-Identifier: Apache-2.0
#include "store/query.h"

#include <SQLiteCpp/Exception.h>
#include <sqlite3.h>

namespace gflow::store {
namespace {

/// SQLITE_TRANSIENT, which is an old-style cast.
sqlite3_destructor_type copying() {
  constexpr auto kCopy = static_cast<std::intptr_t>(-1);
  return reinterpret_cast<sqlite3_destructor_type>(kCopy);  // NOLINT: as SQLite defines it
}

}  // namespace

Statement::Statement(SQLite::Database& database, std::string_view sql)
    : database_(database.getHandle()) {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v3(database_,
                                      sql.data(),
                                      static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT,
                                      &prepared,
                                      nullptr);
  statement_.reset(prepared);
  if (code != SQLITE_OK) throw SQLite::Exception(database_, code);
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  (void)sqlite3_finalize(statement);  // repeats what its last step said
}

Query::Query(Statement& statement)
    : database_(statement.database_), statement_(statement.statement_.get()) {}

Query::~Query() {
  (void)sqlite3_reset(statement_);  // repeats what its last step said
}

void Query::check(int code) const {
  if (code != SQLITE_OK) throw SQLite::Exception(database_, code);
}

Query& Query::integer(std::int64_t value) {
  check(sqlite3_bind_int64(statement_, ++bound_, value));
  return *this;
}

Query& Query::text(const std::string& value) {
  check(sqlite3_bind_text64(
      statement_, ++bound_, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8));
  return *this;
}

Query& Query::copied(const std::string& value) {
  check(sqlite3_bind_text64(
      statement_, ++bound_, value.data(), value.size(), copying(), SQLITE_UTF8));
  return *this;
}

Query& Query::copied_blob(const std::string& value) {
  check(sqlite3_bind_blob64(statement_, ++bound_, value.data(), value.size(), copying()));
  return *this;
}

Query& Query::blob(const std::string& value) {
  check(sqlite3_bind_blob64(statement_, ++bound_, value.data(), value.size(), SQLITE_STATIC));
  return *this;
}

Query& Query::null() {
  check(sqlite3_bind_null(statement_, ++bound_));
  return *this;
}

Query& Query::nulls(int count) {
  for (int i = 0; i < count; ++i) null();
  return *this;
}

bool Query::step() {
  read_ = 0;
  value_of_ = -1;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) throw SQLite::Exception(database_, code);
  return false;
}

/// Unprotected, which is enough for a connection of one thread: sqlite3_column_value().
sqlite3_value* Query::value() const {
  if (value_of_ != read_) {
    value_ = sqlite3_column_value(statement_, read_);
    value_of_ = read_;
  }
  return value_;
}

bool Query::is_null() const { return sqlite3_value_type(value()) == SQLITE_NULL; }

std::int64_t Query::integer() {
  const std::int64_t number = sqlite3_value_int64(value());
  ++read_;
  return number;
}

std::string Query::text() {
  // Bytes after the pointer: asking for them first could convert the value.
  const void* bytes = sqlite3_value_blob(value());
  const int size = sqlite3_value_bytes(value());
  ++read_;
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

std::optional<std::string> Query::optional_text() {
  if (!is_null()) return text();
  skip(1);
  return std::nullopt;
}

}  // namespace gflow::store

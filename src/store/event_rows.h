// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/job_event.h"
#include "store/query.h"

namespace gflow::store {

/// The table of events: what is added at its end goes at its beginning once it is too much or too
/// old, a few rows with each transaction. Throws SQLite::Exception.
class EventRows {
 public:
  explicit EventRows(SQLite::Database& database);

  /// All there are, by number.
  [[nodiscard]] std::vector<JobEvents> load();
  /// Within a transaction; added() once it is on disk.
  void add(const JobEvents& what);
  void added();
  /// It was rolled back.
  void withdrawn() { pending_ = {}; }
  /// The number of the next event. They only go up, also in a database that was made anew: the
  /// first is that of the microsecond since 1970 in which this is asked first, and no machine has a
  /// million events a second.
  [[nodiscard]] std::uint64_t next(WallTime now);

 private:
  struct Row {
    std::uint64_t first;
    std::size_t count;
    WallTime at;
  };
  struct Pending {
    std::deque<Row> added{};
    std::size_t removed = 0;
  };
  [[nodiscard]] std::uint64_t begin(WallTime now);
  void trim(WallTime now);

  SQLite::Database& database_;
  Statement add_;
  Statement remove_;
  std::deque<Row> rows_;
  std::size_t count_ = 0;
  std::uint64_t base_ = 0;  ///< number of the first event of an empty table, once asked for
  Pending pending_;
};

}  // namespace gflow::store

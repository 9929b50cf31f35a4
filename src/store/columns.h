// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/job_description.h"
#include "store/query.h"

/// Entities as columns: their names, and their values in the same order, from their description.
namespace gflow::store {

void put(Query& query, const std::string& text);
void put(Query& query, const std::vector<int>& numbers);
void put(Query& query, const std::vector<std::string>& strings);
void put(Query& query, const std::vector<Label>& labels);
void put(Query& query, const std::vector<Allocation>& allocations);
inline void put(Query& query, Memory memory) { query.integer(memory.bytes); }
inline void put(Query& query, Share share) { query.integer(share.parts); }
inline void put(Query& query, WallTime time) { query.time(time); }
inline void put(Query& query, MonoTime time) { query.integer(time.time_since_epoch().count()); }
template <class Rep, class Period>
void put(Query& query, std::chrono::duration<Rep, Period> time) {
  query.integer(time.count());
}
template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
void put(Query& query, T number) {
  query.integer(static_cast<std::int64_t>(number));
}

/// Each throws SQLite::Exception for what cannot be.
void get(Query& query, std::string& text);
void get(Query& query, std::vector<int>& numbers);
void get(Query& query, std::vector<std::string>& strings);
void get(Query& query, std::vector<Label>& labels);
void get(Query& query, std::vector<Allocation>& allocations);
inline void get(Query& query, Memory& memory) { memory.bytes = query.integer(); }
inline void get(Query& query, Share& share) { share.parts = query.as<std::int32_t>(); }
inline void get(Query& query, WallTime& time) { time = query.time(); }
inline void get(Query& query, MonoTime& time) {
  time = MonoTime(std::chrono::milliseconds(query.integer()));
}
template <class Rep, class Period>
void get(Query& query, std::chrono::duration<Rep, Period>& time) {
  time = std::chrono::duration<Rep, Period>(query.integer());
}
template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
void get(Query& query, T& number) {
  number = static_cast<T>(query.integer());
}
template <class T>
void get(Query& query, std::optional<T>& value) {
  get(query, value.emplace());
}

/// Numbers of jobs as text: number_list.h. Reading throws SQLite::Exception.
[[nodiscard]] std::string jobs_text(const std::vector<JobId>& jobs);
[[nodiscard]] std::vector<JobId> read_jobs_text(const std::string& text);

/// Lists of jobs are tables of their own: Stored::Elsewhere.
template <class T>
inline constexpr bool kIsColumn = !std::is_same_v<std::remove_cvref_t<T>, std::vector<JobId>>;

/// The names, quoted.
template <Described T>
void add_columns(std::vector<std::string>& columns, std::string_view prefix = "") {
  each_field<T>([&](const auto& row) {
    using Value = typename std::remove_cvref_t<decltype(row)>::Value;
    if constexpr (Described<Value>) {
      add_columns<Value>(columns, row.prefix);
    } else if (row.stored != Stored::Elsewhere) {
      columns.push_back('"' + std::string(prefix) + std::string(row.column_name()) + '"');
    }
  });
}

template <Described T>
[[nodiscard]] consteval int column_count() {
  int count = 0;
  each_field<T>([&count](const auto& row) {
    using Value = typename std::remove_cvref_t<decltype(row)>::Value;
    if constexpr (Described<Value>) {
      count += column_count<Value>();
    } else if (row.stored != Stored::Elsewhere) {
      ++count;
    }
  });
  return count;
}

template <Described T>
void bind_columns(Query& query, const T& entity) {
  static const T defaults{};
  each_leaf(
      [&query](const auto& row, const auto& value, const auto& plain) {
        if (row.stored == Stored::Elsewhere) return;
        if (row.stored == Stored::UnlessDefault && value == plain) {
          query.null();
          return;
        }
        if constexpr (requires { value.has_value(); }) {
          put(query, *value);  // not the default, which is empty
        } else if constexpr (kIsColumn<decltype(value)>) {
          put(query, value);
        }
      },
      entity,
      defaults);
}
/// NULL for each column of an entity that is not there.
template <Described T>
void bind_columns(Query& query, const T* entity) {
  if (entity != nullptr) return bind_columns(query, *entity);
  query.nulls(column_count<T>());
}

/// NULL leaves the default.
template <Described T>
void read_columns(Query& query, T& entity) {
  each_leaf(
      [&query](const auto& row, auto& value) {
        if (row.stored == Stored::Elsewhere) return;
        if (query.is_null()) {
          query.skip(1);
        } else if constexpr (kIsColumn<decltype(value)>) {
          get(query, value);
        }
      },
      entity);
}
/// Empty if its first column is NULL.
template <Described T>
[[nodiscard]] std::optional<T> read_optional(Query& query) {
  const bool there = !query.is_null();
  T entity{};
  read_columns(query, entity);
  return there ? std::optional(std::move(entity)) : std::nullopt;
}

}  // namespace gflow::store

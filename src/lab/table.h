// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace gflow::lab {

/// How the numbers of a column are shown to people. JSON and CSV always have the plain number.
enum class Shown {
  Plain,
  Duration,  ///< seconds, as "3h12m"
  Percent,   ///< a number of percent, as "95.4 %"
};

struct TableColumn {
  std::string key;     ///< in JSON and CSV, with its unit: "mean_wait_seconds"
  std::string header;  ///< in text: "MEAN WAIT"
  Shown shown = Shown::Plain;
  int decimals = 0;  ///< of numbers that are not whole by nature
};

/// Empty where there is no value, which is not 0.
using TableValue = std::variant<std::monostate, std::string, std::int64_t, double>;

/// Rows of named columns; what an experiment gives.
struct Table {
  std::string key;    ///< in JSON: "users"
  std::string title;  ///< a line above it in text; "" is none
  std::vector<TableColumn> columns;
  std::vector<std::vector<TableValue>> rows;
};

/// For people: columns two spaces apart, numbers to the right.
[[nodiscard]] std::string table_text(const Table& table);
/// RFC 4180, lines ending in \n, keys in the first.
[[nodiscard]] std::string table_csv(const Table& table);
/// A number as people see it: "3h12m", "95.4 %"; "-" for one that is none.
[[nodiscard]] std::string shown_number(const TableColumn& column, double number);
/// Numbers as JSON and CSV write them: with the column's decimals, and always with a point.
[[nodiscard]] std::string number_text(double number, int decimals);

}  // namespace gflow::lab

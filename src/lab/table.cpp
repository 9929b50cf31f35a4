// SPDX-License-Identifier: Apache-2.0
#include "lab/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/text.h"
#include "base/time.h"

namespace gflow::lab {
namespace {

/// Short enough for a column: seconds are lost in what takes days.
std::string rough_duration(double seconds) {
  if (seconds < 0) return "-" + rough_duration(-seconds);
  auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole >= 86'400) {
    whole = (whole + 1800) / 3600 * 3600;
  } else if (whole >= 3600) {
    whole = (whole + 30) / 60 * 60;
  }
  return duration_text(std::chrono::seconds(whole));
}

}  // namespace

std::string shown_number(const TableColumn& column, double number) {
  if (!std::isfinite(number)) return "-";
  if (column.shown == Shown::Duration) return rough_duration(number);
  const std::string plain = number_text(number, column.decimals);
  return column.shown == Shown::Percent ? plain + " %" : plain;
}

namespace {

std::string shown(const TableColumn& column, const TableValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return printable(*text);
  if (const auto* number = std::get_if<double>(&value)) return shown_number(column, *number);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    if (column.shown == Shown::Plain) return fmt::format("{}", *whole);
    return shown_number(column, static_cast<double>(*whole));
  }
  return "-";
}

bool is_number(const TableValue& value) {
  return std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value);
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of("\",\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string csv_value(const TableColumn& column, const TableValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return csv_field(*text);
  if (const auto* number = std::get_if<double>(&value)) {
    return number_text(*number, column.decimals);
  }
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *whole);
  return "";
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::size_t used = display_width(text);
  const std::string gap(used < width ? width - used : 0, ' ');
  return right ? gap + text : text + gap;
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

}  // namespace

std::string number_text(double number, int decimals) {
  if (!std::isfinite(number)) return "";
  const std::string text = fmt::format("{:.{}f}", number, decimals);
  const bool nothing = text.find_first_not_of("-0.") == std::string::npos;
  return nothing && text.starts_with('-') ? text.substr(1) : text;
}

std::string table_text(const Table& table) {
  const std::size_t count = table.columns.size();
  std::vector<std::size_t> widths(count);
  std::vector<bool> right(count, false);
  for (std::size_t i = 0; i < count; ++i) {
    widths[i] = display_width(table.columns[i].header);
    for (const auto& row : table.rows) {
      widths[i] = std::max(widths[i], display_width(shown(table.columns[i], row[i])));
      if (is_number(row[i])) right[i] = true;
    }
  }
  std::string out;
  if (!table.title.empty()) append_line(out, table.title);
  std::string line;
  for (std::size_t i = 0; i < count; ++i) {
    line += (i == 0 ? "" : "  ") + padded(table.columns[i].header, widths[i], right[i]);
  }
  append_line(out, line);
  for (const auto& row : table.rows) {
    line.clear();
    for (std::size_t i = 0; i < count; ++i) {
      line += (i == 0 ? "" : "  ") + padded(shown(table.columns[i], row[i]), widths[i], right[i]);
    }
    append_line(out, line);
  }
  return out;
}

std::string table_csv(const Table& table) {
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    out += (i == 0 ? "" : ",") + csv_field(table.columns[i].key);
  }
  out += '\n';
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      out += (i == 0 ? "" : ",") + csv_value(table.columns[i], row[i]);
    }
    out += '\n';
  }
  return out;
}

}  // namespace gflow::lab

// SPDX-License-Identifier: Apache-2.0
#include "command/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gflow::cli {

namespace {

constexpr std::size_t kGap = 4;

std::vector<std::size_t> widths_of(const std::vector<Column>& columns,
                                   const std::vector<Row>& rows,
                                   Header header) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = columns[i].least_width;
    if (header == Header::Shown) width = std::max(width, display_width(columns[i].header));
    for (const Row& row : rows) width = std::max(width, display_width(row[i].text));
    widths.push_back(width);
  }
  return widths;
}

Row header_row(const std::vector<Column>& columns, Style style) {
  Row row;
  for (const Column& column : columns) row.push_back({column.header, style});
  return row;
}

std::string line_of(const Row& row, const std::vector<std::size_t>& widths, const Painter& paint) {
  std::size_t last = row.size();
  while (last > 0 && row[last - 1].text.empty()) --last;
  std::string line;
  for (std::size_t i = 0; i < last; ++i) {
    line += paint(row[i].style, row[i].text);
    if (i + 1 < last) line += std::string(widths[i] - display_width(row[i].text) + kGap, ' ');
  }
  return line + '\n';
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

/// A double-quoted scalar; the text has no control characters left in it.
std::string yaml_scalar(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

template <typename Write>
std::string separated(const std::vector<Column>& columns,
                      const std::vector<Row>& rows,
                      Header header,
                      std::string_view separator,
                      Write write) {
  std::string out;
  const auto append = [&](const Row& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) out += separator;
      out += write(row[i].text);
    }
    out += '\n';
  };
  if (header == Header::Shown) append(header_row(columns, Style::Plain));
  for (const Row& row : rows) append(row);
  return out;
}

}  // namespace

std::string table_text(const std::vector<Column>& columns,
                       const std::vector<Row>& rows,
                       Header header,
                       const Painter& paint) {
  const std::vector<std::size_t> widths = widths_of(columns, rows, header);
  std::string out;
  if (header == Header::Shown) out += line_of(header_row(columns, Style::Bold), widths, paint);
  for (const Row& row : rows) out += line_of(row, widths, paint);
  return out;
}

std::string csv_text(const std::vector<Column>& columns,
                     const std::vector<Row>& rows,
                     Header header) {
  return separated(columns, rows, header, ",", csv_field);
}

std::string tsv_text(const std::vector<Column>& columns,
                     const std::vector<Row>& rows,
                     Header header) {
  return separated(columns, rows, header, "\t", [](const std::string& text) { return text; });
}

std::string yaml_text(const std::vector<Column>& columns, const std::vector<Row>& rows) {
  if (rows.empty()) return "[]\n";
  std::string out;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += fmt::format("{} {}: {}\n",
                         i == 0 ? "-" : " ",
                         yaml_scalar(to_lower(columns[i].header)),
                         yaml_scalar(row[i].text));
    }
  }
  return out;
}

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#include "lab/report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace gflow::lab {
namespace {

using Json = nlohmann::ordered_json;

/// Rounded to what the column shows, so that no digit is there by chance.
Json value_of(const TableColumn& column, const TableValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr || !std::isfinite(*number)) return nullptr;
  return std::stod(number_text(*number, column.decimals));
}

Json rows_of(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      object[table.columns[i].key] = value_of(table.columns[i], row[i]);
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

}  // namespace

std::string report_json(const Report& report) {
  Json document = {{"apiVersion", "gflow/v1"}, {"kind", report.kind}};
  Json facts = Json::object();
  for (const auto& [key, value] : report.facts) facts[key] = value;
  document["facts"] = std::move(facts);
  document["notes"] = report.notes;
  for (const Table& table : report.tables) document[table.key] = rows_of(table);
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string report_text(const Report& report) {
  std::string out = printable(report.title) + '\n';
  for (const auto& [key, value] : report.facts) {
    out += fmt::format("  {:<12} {}\n", printable(key), printable(value));
  }
  for (const Table& table : report.tables) out += '\n' + table_text(table);
  if (!report.notes.empty()) out += '\n';
  for (const std::string& note : report.notes) out += printable(note) + '\n';
  return out;
}

std::string report_csv(const Report& report) {
  std::string out;
  for (const Table& table : report.tables) {
    if (!out.empty()) out += '\n';
    out += table_csv(table);
  }
  return out;
}

}  // namespace gflow::lab

// SPDX-License-Identifier: Apache-2.0
#include "cli/submit/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/text.h"
#include "base/translate.h"

namespace gflow::cli {

namespace {

constexpr std::size_t kMaxPoints = 10'000;

/// A decimal number without rounding: value times 10^-places.
struct Decimal {
  std::int64_t value = 0;
  int places = 0;
};

std::optional<Decimal> read_decimal(std::string_view text) {
  Decimal decimal;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t dot = text.find('.');
  const std::string_view fraction = dot == std::string_view::npos ? "" : text.substr(dot + 1);
  if (dot != std::string_view::npos && fraction.empty()) return std::nullopt;
  const std::string digits = std::string(text.substr(0, dot)) + std::string(fraction);
  const auto number = parse_number(digits);
  if (!number || digits.size() > 15 || text.starts_with('.')) return std::nullopt;
  decimal.value = static_cast<std::int64_t>(*number) * (negative ? -1 : 1);
  decimal.places = static_cast<int>(fraction.size());
  return decimal;
}

std::int64_t at_places(const Decimal& decimal, int places) {
  std::int64_t value = decimal.value;
  for (int i = decimal.places; i < places; ++i) value *= 10;
  return value;
}

std::string decimal_text(std::int64_t value, int places) {
  const bool negative = value < 0;
  std::string digits = fmt::format("{}", negative ? -value : value);
  const auto width = static_cast<std::size_t>(places) + 1;
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  if (places > 0) digits.insert(digits.size() - static_cast<std::size_t>(places), 1, '.');
  return negative ? "-" + digits : digits;
}

std::unexpected<Error> bad_range(std::string_view text) {
  return fail(Code::Usage,
              tr_format("--param: '{}' is not a range; write first:last or first:last:step, such "
                        "as 1:5 or 0:1:0.25",
                        printable(text)));
}

/// "0:1:0.25", both ends included, in the decimals that were written.
Result<std::vector<std::string>> range_values(std::string_view text) {
  const auto pieces = split(text, ':');
  if (pieces.size() < 2 || pieces.size() > 3) return bad_range(text);
  const auto first = read_decimal(trim(pieces[0]));
  const auto last = read_decimal(trim(pieces[1]));
  const auto step =
      pieces.size() == 3 ? read_decimal(trim(pieces[2])) : std::optional(Decimal{1, 0});
  if (!first || !last || !step || step->value == 0) return bad_range(text);
  const int places = std::max({first->places, last->places, step->places});
  const std::int64_t from = at_places(*first, places);
  const std::int64_t to = at_places(*last, places);
  const std::int64_t by = at_places(*step, places);
  if ((by > 0) != (to >= from) && to != from) return bad_range(text);
  if ((to - from) / by >= static_cast<std::int64_t>(kMaxPoints)) {
    return fail(Code::Usage,
                tr_format("--param: '{}' has more than {} values", printable(text), kMaxPoints));
  }
  std::vector<std::string> values;
  for (std::int64_t value = from; by > 0 ? value <= to : value >= to; value += by) {
    values.push_back(decimal_text(value, places));
  }
  return values;
}

bool is_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

struct Param {
  std::string name;
  std::vector<std::string> values;
};

Result<Param> read_param(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = trim(text.substr(0, equals));
  if (equals == std::string_view::npos || !is_name(name)) {
    return fail(
        Code::Usage,
        tr_format("--param: '{}' is not NAME=V1,V2 or NAME=FIRST:LAST[:STEP]", printable(text)));
  }
  const std::string_view values = text.substr(equals + 1);
  Param param{std::string(name), {}};
  const auto pieces = split(values, ':');
  const bool range = pieces.size() > 1 && values.find(',') == std::string_view::npos &&
                     read_decimal(trim(pieces[0])).has_value();
  if (range) {
    param.values = GF_TRY(range_values(values));
  } else {
    for (const std::string_view value : split(values, ',')) param.values.emplace_back(trim(value));
  }
  return param;
}

/// The points of a table: its header gives the names.
Result<std::vector<Point>> table_points(std::string_view csv) {
  if (trim(csv).empty()) return std::vector<Point>{{}};
  const auto rows = GF_TRY(read_csv(csv));
  std::vector<Point> points;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() != rows[0].size()) {
      return fail(Code::Usage,
                  tr_format("--param-file: row {} has {} fields, the header has {}",
                            i + 1,
                            rows[i].size(),
                            rows[0].size()));
    }
    Point point;
    for (std::size_t k = 0; k < rows[i].size(); ++k) {
      const std::string name(trim(rows[0][k]));
      if (!is_name(name)) {
        return fail(Code::Usage,
                    tr_format("--param-file: '{}' is not a valid parameter name", printable(name)));
      }
      point.emplace_back(name, rows[i][k]);
    }
    points.push_back(std::move(point));
  }
  if (points.empty()) return fail(Code::Usage, tr("--param-file has no rows below its header"));
  return points;
}

}  // namespace

Result<std::vector<Point>> sweep_points(std::span<const std::string> params, std::string_view csv) {
  std::vector<Point> points = GF_TRY(table_points(csv));
  for (const std::string& text : params) {
    const Param param = GF_TRY(read_param(text));
    if (std::ranges::find(points[0], param.name, &Point::value_type::first) != points[0].end()) {
      return fail(Code::Usage, tr_format("--param: {} is given twice", param.name));
    }
    if (points.size() * param.values.size() > kMaxPoints) {
      return fail(Code::Usage, tr_format("the parameters make more than {} jobs", kMaxPoints));
    }
    std::vector<Point> product;
    for (const Point& point : points) {
      for (const std::string& value : param.values) {
        product.push_back(point);
        product.back().emplace_back(param.name, value);
      }
    }
    points = std::move(product);
  }
  return points;
}

std::string substitute(std::string_view text, const Point& point) {
  std::string out;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    out += text.substr(0, open);
    if (open == std::string_view::npos) break;
    text.remove_prefix(open);
    const std::size_t close = text.find('}');
    const std::string_view name = close == std::string_view::npos ? "" : text.substr(1, close - 1);
    const auto known = std::ranges::find(point, name, &Point::value_type::first);
    if (name.empty() || known == point.end()) {
      out += text.front();
      text.remove_prefix(1);
    } else {
      out += known->second;
      text.remove_prefix(close + 1);
    }
  }
  return out;
}

Result<std::vector<std::vector<std::string>>> read_csv(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> row(1);
  bool quoted = false;
  const auto end_row = [&] {
    if (row.size() > 1 || !trim(row[0]).empty()) rows.push_back(row);
    row.assign(1, "");
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        row.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        row.back() += text[i++];
      } else {
        quoted = false;
      }
    } else if (c == '"' && row.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      row.emplace_back();
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      row.back() += c;
    }
  }
  if (quoted) return fail(Code::Usage, tr("--param-file: a quote is not closed"));
  end_row();
  return rows;
}

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#include "command/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "command/wrap.h"

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

constexpr std::size_t kScreenGap = 2;

std::size_t sum(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0});
}

/// The columns a screen shows, by their place in the row, and how wide they are there.
struct ScreenLayout {
  std::vector<std::size_t> shown;
  std::vector<std::size_t> widths;
};

enum class Least { Readable, OneCharacter };

/// Takes from the widest cells that may be cut until all has room, or nothing can be taken.
void narrow(const std::vector<Column>& columns,
            ScreenLayout& layout,
            std::size_t room,
            Least least) {
  for (std::size_t all = sum(layout.widths); all > room; --all) {
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < layout.shown.size(); ++i) {
      const Column& column = columns[layout.shown[i]];
      const std::size_t stays = least == Least::Readable ? column.narrowest : 1;
      const bool gives = column.cut != Cut::Never && layout.widths[i] > stays;
      if (gives && (widest == nullptr || layout.widths[i] > *widest)) widest = &layout.widths[i];
    }
    if (widest == nullptr) return;
    --*widest;
  }
}

/// The column that leaves next, by its place among those shown; none if all stay.
std::optional<std::size_t> next_to_leave(const std::vector<Column>& columns,
                                         const std::vector<std::size_t>& shown) {
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const int leaves = columns[shown[i]].leaves;
    if (leaves > 0 && (!next || leaves > columns[shown[*next]].leaves)) next = i;
  }
  return next;
}

ScreenLayout lay_out(const std::vector<Column>& columns,
                     const std::vector<std::size_t>& natural,
                     std::size_t width) {
  ScreenLayout layout;
  for (std::size_t i = 0; i < columns.size(); ++i) layout.shown.push_back(i);
  while (true) {
    layout.widths.clear();
    for (const std::size_t place : layout.shown) layout.widths.push_back(natural[place]);
    const std::size_t gaps = kScreenGap * (layout.shown.size() - 1);
    const std::size_t room = width > gaps ? width - gaps : 0;
    narrow(columns, layout, room, Least::Readable);
    if (sum(layout.widths) <= room) return layout;
    const auto leaving = next_to_leave(columns, layout.shown);
    if (!leaving) {
      narrow(columns, layout, room, Least::OneCharacter);
      return layout;
    }
    layout.shown.erase(layout.shown.begin() + static_cast<std::ptrdiff_t>(*leaving));
  }
}

/// The longest of its texts that has room, or the shortest.
const std::string& text_for(const Cell& cell, std::size_t room) {
  const std::string* text = &cell.text;
  for (const std::string& brief : cell.briefs) {
    if (display_width(*text) <= room) break;
    text = &brief;
  }
  return *text;
}

std::string cut_text(const std::string& text, Cut cut, std::size_t width) {
  if (cut == Cut::Words) return cut_words(text, width);
  const bool in_middle = cut == Cut::Middle || cut == Cut::Wrap;
  return in_middle ? cut_middle(text, width) : cut_end(text, width);
}

/// A row, and below it what of its cells goes on there.
std::vector<Row> wrapped(const std::vector<Column>& columns,
                         const Row& row,
                         const ScreenLayout& layout) {
  std::vector<Row> parts{row};
  for (std::size_t i = 0; i < layout.shown.size(); ++i) {
    const std::size_t place = layout.shown[i];
    if (columns[place].cut != Cut::Wrap) continue;
    const std::vector<std::string> lines = wrap(row[place].text, layout.widths[i]);
    parts.resize(std::max(parts.size(), lines.size()), Row(row.size()));
    for (std::size_t k = 0; k < lines.size(); ++k) parts[k][place] = {lines[k], row[place].style};
  }
  return parts;
}

std::string screen_line(const std::vector<Column>& columns,
                        const Row& row,
                        const ScreenLayout& layout,
                        std::size_t width,
                        const Painter& paint) {
  std::string line;
  std::size_t used = 0;  // columns of the terminal
  std::size_t spaces = 0;
  for (std::size_t i = 0; i < layout.shown.size(); ++i) {
    const Column& column = columns[layout.shown[i]];
    const Cell& cell = row[layout.shown[i]];
    const std::size_t left = width > used + spaces ? width - used - spaces : 0;
    const std::size_t room = std::min(layout.widths[i], left);
    const std::string text = cut_text(text_for(cell, room), column.cut, room);
    const std::size_t wide = display_width(text);
    const std::size_t before = column.align == Align::Right ? room - wide : 0;
    if (!text.empty()) {
      line += std::string(spaces + before, ' ') + paint(cell.style, text);
      used += spaces + before + wide;
      spaces = 0;
    }
    spaces += layout.widths[i] - (text.empty() ? 0 : before + wide) + kScreenGap;
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

std::string screen_table(const std::vector<Column>& columns,
                         const std::vector<Row>& rows,
                         std::size_t width,
                         Header header,
                         const Painter& paint) {
  if (width == 0) return table_text(columns, rows, header, paint);
  return ScreenTable(width, header, paint).text(columns, rows);
}

std::string ScreenTable::text(const std::vector<Column>& columns, const std::vector<Row>& rows) {
  std::vector<std::size_t> widths = widths_of(columns, rows, header_);
  for (std::size_t i = 0; i < widths_.size(); ++i) widths[i] = std::max(widths[i], widths_[i]);
  widths_ = widths;
  const ScreenLayout layout = lay_out(columns, widths_, width_);
  const auto line = [&](const Row& row) {
    return screen_line(columns, row, layout, width_, paint_);
  };
  std::string out;
  if (header_ == Header::Shown && !std::exchange(has_begun_, true)) {
    out += line(header_row(columns, Style::Bold));
  }
  for (const Row& row : rows) {
    for (const Row& part : wrapped(columns, row, layout)) out += line(part);
  }
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

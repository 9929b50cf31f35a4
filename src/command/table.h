// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command/terminal.h"

namespace gflow::cli {

/// Where a cell that is too wide for a screen gives way; Words: in its words, before a number is
/// left out; Wrap: it goes on below, between words.
enum class Cut { Never, Middle, End, Words, Wrap };
enum class Align { Left, Right };

struct Column {
  std::string header = {};
  std::size_t least_width = 0;
  /// On a screen: how its cells may be cut, and to how many columns of the terminal at least.
  Cut cut = Cut::Never;
  std::size_t narrowest = 0;
  /// On a screen that is too narrow even so: left out in this order, the highest first; 0 stays.
  int leaves = 0;
  Align align = Align::Left;
};

struct Cell {
  std::string text = {};  ///< already fit for one line: see printable()
  Style style = Style::Plain;
  /// On a screen in the place of a text that is too wide, the longest first.
  std::vector<std::string> briefs = {};
};
using Row = std::vector<Cell>;

enum class Header { Shown, Hidden };

/// Columns as wide as their widest cell, four spaces apart; nothing is ever cut off and no line
/// ends in spaces.
[[nodiscard]] std::string table_text(const std::vector<Column>& columns,
                                     const std::vector<Row>& rows,
                                     Header header,
                                     const Painter& paint);

/// The same on a screen of so many columns, two spaces apart. No line is wider: cells are cut
/// first, then columns are left out, as each column says. 0: no screen, as above.
[[nodiscard]] std::string screen_table(const std::vector<Column>& columns,
                                       const std::vector<Row>& rows,
                                       std::size_t width,
                                       Header header,
                                       const Painter& paint);

/// The same piece by piece: from one to the next columns become wider where they have to, and none
/// becomes narrower.
class ScreenTable {
 public:
  ScreenTable(std::size_t width, Header header, const Painter& paint)
      : width_(width), header_(header), paint_(paint) {}

  /// Some more rows, below the header if they are the first. The columns are those of the others.
  [[nodiscard]] std::string text(const std::vector<Column>& columns, const std::vector<Row>& rows);

 private:
  std::size_t width_;
  Header header_;
  Painter paint_;
  std::vector<std::size_t> widths_;
  bool has_begun_ = false;
};

/// RFC 4180, lines ending in \n.
[[nodiscard]] std::string csv_text(const std::vector<Column>& columns,
                                   const std::vector<Row>& rows,
                                   Header header);
/// Fields separated by tabs.
[[nodiscard]] std::string tsv_text(const std::vector<Column>& columns,
                                   const std::vector<Row>& rows,
                                   Header header);
/// A YAML sequence of mappings, keys in lower case, all values quoted strings.
[[nodiscard]] std::string yaml_text(const std::vector<Column>& columns,
                                    const std::vector<Row>& rows);

}  // namespace gflow::cli

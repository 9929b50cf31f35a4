// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command/terminal.h"

namespace gflow::cli {

struct Column {
  std::string header = {};
  std::size_t least_width = 0;
};

struct Cell {
  std::string text = {};  ///< already fit for one line: see printable()
  Style style = Style::Plain;
};
using Row = std::vector<Cell>;

enum class Header { Shown, Hidden };

/// Columns as wide as their widest cell, four spaces apart; nothing is ever cut off and no line
/// ends in spaces.
[[nodiscard]] std::string table_text(const std::vector<Column>& columns,
                                     const std::vector<Row>& rows,
                                     Header header,
                                     const Painter& paint);

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

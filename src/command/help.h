// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command/command.h"

/// Texts made from a command's table.
namespace gflow::cli {

/// What --help prints. `program` is the command as called: "gjob show". On a screen of fewer than
/// 80 columns it is as wide as that; 0: no screen.
[[nodiscard]] std::string help_text(const Command& command,
                                    const std::string& program,
                                    std::size_t screen = 0);
/// The man page as roff, with a part for each subcommand that has none of its own. `program` is as
/// above; "gflow lab" is on page gflow-lab.
[[nodiscard]] std::string man_page(const Command& command,
                                   const std::string& program,
                                   std::string_view version);

/// A configuration file, and what stands in it.
struct FileFormat {
  std::string name;                 ///< "gflow.toml"
  std::string summary;              ///< one line, without a full stop
  std::vector<std::string> places;  ///< where it is looked for
  std::string description;          ///< paragraphs separated by an empty line
  std::vector<Legend> parts;        ///< "[daemon]": its lines, and what each sets
  std::vector<std::string> others;  ///< commands that have to do with it
};
/// Its man page, of section 5.
[[nodiscard]] std::string man_page(const FileFormat& file, std::string_view version);

/// The option as help shows it: "-g, --gpus N".
[[nodiscard]] std::string option_head(const Option& option);
/// Its help with its other names behind.
[[nodiscard]] std::string option_help(const Option& option);

struct OptionGroup {
  std::string heading;
  std::vector<Option> options;
};
/// The options that are shown, under their headings, in the order of the table.
[[nodiscard]] std::vector<OptionGroup> option_groups(const Command& command);

struct ExitCode {
  int code;
  std::string_view meaning;
};
/// The exit codes all commands share.
[[nodiscard]] const std::vector<ExitCode>& exit_codes();

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// One table describes each command. Parsing, help, man pages and completion read that table and
/// nothing else, so they cannot disagree. Why not a library: docs/design/0003-command-table.md.
namespace gflow::cli {

class Context;
class Invocation;

/// What completion offers for a value or a word.
enum class Complete {
  Nothing,
  File,
  Directory,
  Command,  ///< a command line of its own: program, then its words
  Job,
  User,
  Gpu,         ///< one that is present, by its index
  DrainedGpu,  ///< by its index, and one that is not present by its UUID
  State,
  Choice,  ///< one of `choices`
};

/// A line as it is typed or printed, and what it is for.
struct Example {
  std::string line = {};
  std::string text = {};
};

struct Option {
  std::string name = {};     ///< long name without dashes; what Invocation is asked for
  std::string letters = {};  ///< one-letter names; the first is the one shown
  std::vector<std::string> aliases = {};  ///< further long names
  std::string value = {};                 ///< what its value is called in help; "" for a flag
  std::string help = {};
  std::string group = {};    ///< heading it stands under in help; "" is "Options"
  bool repeatable = false;   ///< all values are kept; else the last one wins
  std::string implied = {};  ///< the value if the option stands alone; "" requires one
  Complete complete = Complete::Nothing;
  std::vector<std::string> choices = {};   ///< the only values there are; empty for free text
  std::vector<Example> suggestions = {};   ///< values that completion offers; others are none less
  std::vector<std::string> excludes = {};  ///< options it cannot stand together with
  std::string needs = {};                  ///< the option without which it means nothing
  std::string refused = {};  ///< why this version does not have it; such an option is a usage error
  bool hidden = false;       ///< parsed, not shown
  std::string field = {};    ///< the field of a job it sets, if it was made from its description
};

/// --no-pager, of commands that show screens.
[[nodiscard]] Option no_pager_option();

/// What the first word may be, and what the words behind it are then.
struct FirstWord {
  std::string word = {};
  Complete then = Complete::Nothing;
};

struct Positional {
  std::string name = {};  ///< "JOB..." as shown
  std::string help = {};
  std::size_t least = 0;
  std::size_t most = 0;
  Complete complete = Complete::Nothing;
  std::vector<std::string> choices = {};
  std::vector<FirstWord> first = {};  ///< where completion depends on it; else empty
};
constexpr std::size_t kAnyNumber = static_cast<std::size_t>(-1);

/// What words of a command's output mean.
struct Legend {
  std::string heading = {};
  std::vector<Example> words = {};
};

/// Where options may stand.
enum class Order {
  Mixed,                 ///< before, between and after words
  FirstWordEndsOptions,  ///< what follows the first word belongs to the job
};

/// Options every command of a kind has besides its own.
enum class Common {
  Basic,   ///< --help, --version
  Text,    ///< and --color, --server, --gflow-config; --json is refused
  Client,  ///< and --json
};
[[nodiscard]] std::vector<Option> common_options(Common common);

struct Command {
  std::string name = {};                ///< "gbatch", or of a subcommand "show"
  std::string summary = {};             ///< one line, without a full stop
  std::vector<std::string> usage = {};  ///< after the name: "[options] script.sh [args...]"
  std::string description = {};         ///< paragraphs separated by an empty line
  std::vector<Option> options = {};
  Positional words = {};
  Order order = Order::Mixed;
  Common common = Common::Client;
  std::vector<Example> examples = {};
  std::vector<Example> notes = {};   ///< further sections: heading and text
  std::vector<Legend> legends = {};  ///< what stands last in help
  std::vector<std::string> aliases = {};
  std::vector<Command> subcommands = {};
  /// Subcommands that people try and that are elsewhere: the word, and what to type instead.
  std::vector<Example> elsewhere = {};
  bool hidden = false;
  std::string page = {};  ///< its own man page, if it has one beside that of its program
  std::function<Result<int>(const Invocation&, Context&)> run = {};  ///< the exit code

  /// Own options, then the common ones.
  [[nodiscard]] std::vector<Option> all_options() const;
  /// The subcommand of that name or alias; null if there is none.
  [[nodiscard]] const Command* subcommand(std::string_view called) const;
};

/// What was typed, understood by the table.
class Invocation {
 public:
  const Command* command = nullptr;
  std::string program;  ///< "gbatch", or "gjob show": what messages begin with
  std::map<std::string, std::vector<std::string>, std::less<>> options;
  std::vector<std::string> words;

  [[nodiscard]] bool has(std::string_view option) const { return options.contains(option); }
  /// The value, the last one if there are several; "" if it was not given.
  [[nodiscard]] std::string get(std::string_view option) const;
  [[nodiscard]] std::vector<std::string> all(std::string_view option) const;
};

/// Reads arguments by a command's table, without regard to how many words it wants.
/// Errors: Code::Usage with what is nearest to a name that is not there.
[[nodiscard]] Result<Invocation> parse_options(const Command& command,
                                               std::span<const std::string> arguments);
/// The same for a whole command line: chooses the subcommand, checks words and exclusions.
/// With `--help` or `--version` among the options, missing words and exclusions do not matter.
[[nodiscard]] Result<Invocation> parse(const Command& command,
                                       std::span<const std::string> arguments);

/// What messages about a command line begin with although it cannot be read: "gjob show".
[[nodiscard]] std::string program_of(const Command& command,
                                     std::span<const std::string> arguments);

}  // namespace gflow::cli

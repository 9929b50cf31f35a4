// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"
#include "command/command.h"

namespace gflow::cli {

namespace {

/// Walks one list of arguments by one table.
class Reader {
 public:
  Reader(const Command& command, std::span<const std::string> arguments)
      : command_(command), common_(common_options(command.common)), rest_(arguments) {}

  Result<Invocation> read() {
    found_.command = &command_;
    found_.program = command_.name;
    while (!rest_.empty()) {
      const std::string& argument = rest_.front();
      if (argument == "--") {
        rest_ = rest_.subspan(1);
        break;
      }
      if (argument.size() < 2 || argument.front() != '-' || is_number(argument)) {
        if (command_.order == Order::FirstWordEndsOptions || starts_subcommand()) break;
        found_.words.push_back(argument);
        rest_ = rest_.subspan(1);
        continue;
      }
      rest_ = rest_.subspan(1);
      if (argument.starts_with("--")) {
        GF_CHECK(read_long(std::string_view(argument).substr(2)));
      } else {
        GF_CHECK(read_letters(std::string_view(argument).substr(1)));
      }
    }
    found_.words.insert(found_.words.end(), rest_.begin(), rest_.end());
    return std::move(found_);
  }

 private:
  /// "-1", where no option has that digit for its letter.
  [[nodiscard]] bool is_number(std::string_view argument) const {
    const char first = argument[1];
    return first >= '0' && first <= '9' && by_letter(first) == nullptr && command_.words.most > 0;
  }

  /// Options after the name of a subcommand belong to it.
  [[nodiscard]] bool starts_subcommand() const {
    return found_.words.empty() && !command_.subcommands.empty();
  }

  /// The first that is so, of its own and then of the common ones; null if there is none.
  template <class IsSo>
  [[nodiscard]] const Option* option_that(IsSo is_so) const {
    for (const std::vector<Option>* table : {&command_.options, &common_}) {
      const auto at = std::ranges::find_if(*table, is_so);
      if (at != table->end()) return &*at;
    }
    return nullptr;
  }

  [[nodiscard]] const Option* by_name(std::string_view name) const {
    return option_that([&](const Option& option) {
      return option.name == name || std::ranges::find(option.aliases, name) != option.aliases.end();
    });
  }

  [[nodiscard]] const Option* by_letter(char letter) const {
    return option_that([&](const Option& option) { return option.letters.contains(letter); });
  }

  [[nodiscard]] std::unexpected<Error> unknown(const std::string& typed,
                                               std::string_view name) const {
    std::vector<std::string> names;
    for (const Option& option : command_.all_options()) {
      if (option.hidden) continue;
      names.push_back(option.name);
      names.insert(names.end(), option.aliases.begin(), option.aliases.end());
    }
    const auto near = nearest(name, names);
    return fail(Code::Usage,
                tr_format("unknown option '{}'{}",
                          printable(typed),
                          near ? tr_format("; did you mean --{}?", *near) : ""));
  }

  Result<void> read_long(std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const Option* option = by_name(name);
    if (option == nullptr) return unknown("--" + std::string(name), name);
    const std::string typed = "--" + std::string(name);
    if (equals != std::string_view::npos) {
      if (option->value.empty()) {
        return fail(Code::Usage, tr_format("{} takes no value", typed));
      }
      return store(*option, typed, std::string(text.substr(equals + 1)));
    }
    return store_next(*option, typed);
  }

  /// "-w", "-g2", "-aw", "-an 5"
  Result<void> read_letters(std::string_view letters) {
    while (!letters.empty()) {
      const std::string typed = fmt::format("-{}", letters.front());
      const Option* option = by_letter(letters.front());
      if (option == nullptr) return unknown(typed, letters);
      letters.remove_prefix(1);
      if (option->value.empty()) {
        GF_CHECK(store(*option, typed, ""));
      } else if (!letters.empty()) {
        if (letters.front() == '=') letters.remove_prefix(1);
        return store(*option, typed, std::string(letters));
      } else {
        return store_next(*option, typed);
      }
    }
    return {};
  }

  /// A flag, or an option whose value is the next argument.
  Result<void> store_next(const Option& option, const std::string& typed) {
    if (option.value.empty()) return store(option, typed, "");
    if (!option.implied.empty()) return store(option, typed, option.implied);
    if (rest_.empty()) {
      return fail(Code::Usage, tr_format("{} needs a value: {} {}", typed, typed, option.value));
    }
    const std::string value = rest_.front();
    rest_ = rest_.subspan(1);
    return store(option, typed, value);
  }

  Result<void> store(const Option& option, const std::string& typed, std::string value) {
    if (!option.refused.empty()) {
      return fail(Code::Usage, fmt::format("{} {}", typed, option.refused));
    }
    if (!option.choices.empty() &&
        std::ranges::find(option.choices, value) == option.choices.end()) {
      return fail(Code::Usage,
                  tr_format("{}: '{}' is not one of {}",
                            typed,
                            printable(value),
                            fmt::join(option.choices, ", ")));
    }
    auto& values = found_.options[option.name];
    if (!option.repeatable) values.clear();
    values.push_back(std::move(value));
    return {};
  }

  const Command& command_;
  std::vector<Option> common_;
  std::span<const std::string> rest_;
  Invocation found_;
};

/// Of options together: which exclude each other, and which need another.
Result<void> check_together(const Invocation& invocation) {
  for (const Option& option : invocation.command->options) {
    if (!invocation.has(option.name)) continue;
    for (const std::string& other : option.excludes) {
      if (invocation.has(other)) {
        return fail(Code::Usage,
                    tr_format("--{} and --{} are mutually exclusive", option.name, other));
      }
    }
    if (!option.needs.empty() && !invocation.has(option.needs)) {
      return fail(Code::Usage, tr_format("--{} requires --{}", option.name, option.needs));
    }
  }
  return {};
}

/// What was typed before the subcommand is its own, if it has such options.
Result<void> take_over(const Invocation& outer, Invocation& inner) {
  const std::vector<Option> known = inner.command->all_options();
  for (const auto& [name, values] : outer.options) {
    const auto option = std::ranges::find(known, name, &Option::name);
    if (option == known.end()) {
      return fail(Code::Usage, tr_format("unknown option '{}'{}", "--" + name, ""));
    }
    if (!option->refused.empty()) {
      return fail(Code::Usage, fmt::format("--{} {}", name, option->refused));
    }
    inner.options.try_emplace(name, values);
  }
  return {};
}

Result<void> check_words(const Invocation& invocation) {
  const Positional& words = invocation.command->words;
  if (invocation.words.size() < words.least) {
    return fail(Code::Usage, tr_format("missing argument: {}", words.name));
  }
  if (invocation.words.size() > words.most) {
    return fail(Code::Usage,
                tr_format("unexpected argument '{}'", printable(invocation.words[words.most])));
  }
  if (!words.choices.empty()) {
    for (const std::string& word : invocation.words) {
      if (std::ranges::find(words.choices, word) != words.choices.end()) continue;
      const auto near = nearest(word, words.choices);
      return fail(Code::Usage,
                  tr_format("'{}' is not one of {}{}",
                            printable(word),
                            fmt::join(words.choices, ", "),
                            near ? tr_format("; did you mean {}?", *near) : ""));
    }
  }
  return {};
}

std::unexpected<Error> no_subcommand(const Command& command, const std::string& word) {
  std::vector<std::string> names;
  std::vector<std::string> shown;
  for (const Command& sub : command.subcommands) {
    if (sub.hidden) continue;
    shown.push_back(sub.name);
    names.push_back(sub.name);
    names.insert(names.end(), sub.aliases.begin(), sub.aliases.end());
  }
  const auto elsewhere = std::ranges::find(command.elsewhere, word, &Example::line);
  if (elsewhere != command.elsewhere.end()) {
    return fail(Code::Usage,
                tr_format("unknown command '{}'; use '{}'", printable(word), elsewhere->text));
  }
  const auto near = nearest(word, names);
  return fail(Code::Usage,
              tr_format("unknown command '{}'; {}",
                        printable(word),
                        near ? tr_format("did you mean {} {}?", command.name, *near)
                             : tr_format("the commands are {}", fmt::join(shown, ", "))));
}

bool asks_for_itself(const Invocation& invocation) {
  return invocation.has("help") || invocation.has("version");
}

/// The subcommand the first word names, if words are not the command's own business.
const Command* chosen_subcommand(const Invocation& invocation) {
  const Command& command = *invocation.command;
  if (invocation.words.empty()) return nullptr;
  // "gbatch --gpus 1 new x" runs a program called new: there the name has to come first.
  if (command.words.most > 0 && !invocation.options.empty()) return nullptr;
  return command.subcommand(invocation.words.front());
}

/// As parse(), but for what options mean together.
Result<Invocation> parse_words(const Command& command, std::span<const std::string> arguments) {
  Invocation invocation = GF_TRY(parse_options(command, arguments));
  const bool escaped = !arguments.empty() && arguments.front() == "--";
  if (const Command* sub = escaped ? nullptr : chosen_subcommand(invocation)) {
    const std::vector<std::string> rest(invocation.words.begin() + 1, invocation.words.end());
    Invocation inner = GF_TRY(parse_words(*sub, rest));
    inner.program = command.name + " " + inner.program;
    if (!asks_for_itself(inner)) GF_CHECK(take_over(invocation, inner));
    return inner;
  }
  if (asks_for_itself(invocation)) return invocation;
  if (!command.subcommands.empty() && command.words.most == 0 && !command.run) {
    if (invocation.words.empty()) return fail(Code::Usage, tr("no command given"));
    return no_subcommand(command, invocation.words.front());
  }
  if (!invocation.words.empty() && command.words.most == 0 && !command.subcommands.empty()) {
    return no_subcommand(command, invocation.words.front());
  }
  GF_CHECK(check_words(invocation));
  return invocation;
}

}  // namespace

Result<Invocation> parse_options(const Command& command, std::span<const std::string> arguments) {
  return Reader(command, arguments).read();
}

Result<Invocation> parse(const Command& command, std::span<const std::string> arguments) {
  Invocation invocation = GF_TRY(parse_words(command, arguments));
  if (!asks_for_itself(invocation)) GF_CHECK(check_together(invocation));
  return invocation;
}

std::string program_of(const Command& command, std::span<const std::string> arguments) {
  const Result<Invocation> invocation = parse_options(command, arguments);
  const Command* sub = invocation ? chosen_subcommand(*invocation) : nullptr;
  if (sub == nullptr) return command.name;
  const std::vector<std::string> rest(invocation->words.begin() + 1, invocation->words.end());
  return command.name + " " + program_of(*sub, rest);
}

}  // namespace gflow::cli

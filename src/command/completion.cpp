// SPDX-License-Identifier: Apache-2.0
#include "command/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "core/job.h"

namespace gflow::cli {

namespace {

void keep_matching(Completion& completion, std::string_view typed) {
  std::erase_if(completion.candidates,
                [&](const Candidate& candidate) { return !candidate.word.starts_with(typed); });
}

std::vector<Candidate> status_candidates() {
  std::vector<Candidate> all;
  for (const StatusInfo& info : kStatuses) {
    all.push_back(
        {std::string(info.name), fmt::format("{}{}{}", info.code, tr(", "), tr(info.legend))});
  }
  return all;
}

std::vector<Candidate> candidates_of(const std::vector<std::string>& choices) {
  std::vector<Candidate> all;
  for (const std::string& choice : choices) all.push_back({choice, ""});
  return all;
}

/// What may stand for a value or word of that kind, or is one of `known`. A list is completed at
/// its last piece.
Completion values(Complete kind,
                  std::vector<Candidate> known,
                  std::string_view typed,
                  const Lookup& lookup) {
  Completion completion;
  if (kind == Complete::File) completion.kind = Completion::Kind::Files;
  if (kind == Complete::Directory) completion.kind = Completion::Kind::Directories;
  if (kind == Complete::State) completion.candidates = status_candidates();
  constexpr std::array kAsked = {
      Complete::Job, Complete::User, Complete::Gpu, Complete::DrainedGpu};
  if (std::ranges::find(kAsked, kind) != kAsked.end()) completion.candidates = lookup(kind);
  std::ranges::move(known, std::back_inserter(completion.candidates));
  const std::size_t comma = typed.rfind(',');
  if (comma != std::string_view::npos) {
    for (Candidate& candidate : completion.candidates) {
      candidate.word.insert(0, typed.substr(0, comma + 1));
    }
  }
  keep_matching(completion, typed);
  return completion;
}

Completion values_of(const Option& option, std::string_view typed, const Lookup& lookup) {
  std::vector<Candidate> known = candidates_of(option.choices);
  for (const Example& one : option.suggestions) known.push_back({one.line, one.text});
  return values(option.complete, std::move(known), typed, lookup);
}

const Option* option_called(const std::vector<Option>& table, std::string_view word) {
  const auto at = std::ranges::find_if(table, [&](const Option& option) {
    if (word.starts_with("--")) {
      const std::string_view name = word.substr(2);
      return option.name == name || std::ranges::find(option.aliases, name) != option.aliases.end();
    }
    return word.size() == 2 && word[0] == '-' && option.letters.find(word[1]) != std::string::npos;
  });
  return at == table.end() ? nullptr : &*at;
}

Completion option_names(const std::vector<Option>& table, std::string_view typed) {
  Completion completion;
  for (const Option& option : table) {
    if (option.hidden || !option.refused.empty()) continue;
    completion.candidates.push_back({"--" + option.name, option.help});
  }
  keep_matching(completion, typed);
  return completion;
}

/// "--states=R": the part behind the sign, with the option put back before every candidate.
std::optional<Completion> attached_value(const std::vector<Option>& table,
                                         std::string_view typed,
                                         const Lookup& lookup) {
  const std::size_t equals = typed.find('=');
  if (!typed.starts_with("--") || equals == std::string_view::npos) return std::nullopt;
  const Option* option = option_called(table, typed.substr(0, equals));
  if (option == nullptr) return Completion{};
  Completion completion = values_of(*option, typed.substr(equals + 1), lookup);
  for (Candidate& candidate : completion.candidates) {
    candidate.word.insert(0, typed.substr(0, equals + 1));
  }
  return completion;
}

/// What may stand for a word of the command; `before` are the ones typed before it.
Completion words(const Positional& known,
                 std::span<const std::string> before,
                 std::string_view typed,
                 const Lookup& lookup) {
  if (known.first.empty()) {
    return values(known.complete, candidates_of(known.choices), typed, lookup);
  }
  Completion completion;
  for (const FirstWord& first : known.first) {
    if (before.empty()) completion.candidates.push_back({first.word, ""});
    if (!before.empty() && before.front() == first.word) {
      return values(first.then, {}, typed, lookup);
    }
  }
  return completion;
}

Completion words_or_subcommands(const Command& command,
                                std::span<const std::string> before,
                                std::string_view typed,
                                const Lookup& lookup) {
  Completion completion;
  if (command.words.most > 0) {
    completion = words(command.words, before, typed, lookup);
  }
  if (before.empty()) {
    for (const Command& sub : command.subcommands) {
      if (!sub.hidden) completion.candidates.push_back({sub.name, sub.summary});
    }
  }
  keep_matching(completion, typed);
  return completion;
}

/// bash parts "--states=R" into three words; without the sign they read as "--states R".
std::vector<std::string> without_signs(std::span<const std::string> words) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool sign = words[i] == "=" && i > 0 && words[i - 1].starts_with("--");
    if (!sign) out.push_back(words[i]);
    if (sign && i + 1 == words.size()) out.emplace_back();
  }
  return out;
}

Completion complete_words(const Command& command,
                          std::span<const std::string> line,
                          const Lookup& lookup) {
  const std::vector<Option> table = command.all_options();
  const std::string& typed = line.back();
  const Option* wants_value = nullptr;
  std::vector<std::string> before;
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    if (wants_value != nullptr) {
      wants_value = nullptr;
      continue;
    }
    if (line[i].size() > 1 && line[i].front() == '-') {
      const Option* option = option_called(table, line[i]);
      if (option != nullptr && !option->value.empty() && option->implied.empty()) {
        wants_value = option;
      }
      continue;
    }
    if (const Command* sub = before.empty() ? command.subcommand(line[i]) : nullptr) {
      return complete_words(*sub, line.subspan(i + 1), lookup);
    }
    if (command.order == Order::FirstWordEndsOptions) {
      return {Completion::Kind::Command, i + 1, {}};
    }
    before.push_back(line[i]);
  }
  if (wants_value != nullptr) return values_of(*wants_value, typed, lookup);
  if (auto attached = attached_value(table, typed, lookup)) return *attached;
  if (typed.starts_with("-")) return option_names(table, typed);
  if (command.words.complete == Complete::Command && command.words.most > 0) {
    Completion completion = words_or_subcommands(command, before, typed, lookup);
    completion.kind = Completion::Kind::Command;
    completion.command_at = line.size();
    return completion;
  }
  return words_or_subcommands(command, before, typed, lookup);
}

}  // namespace

Completion complete(const Command& command,
                    std::span<const std::string> words,
                    const Lookup& lookup) {
  if (words.empty()) return {};
  return complete_words(command, without_signs(words), lookup);
}

std::string completion_answer(const Completion& completion) {
  std::string out;
  switch (completion.kind) {
    case Completion::Kind::Words:
      out = ":words\n";
      break;
    case Completion::Kind::Files:
      out = ":files\n";
      break;
    case Completion::Kind::Directories:
      out = ":directories\n";
      break;
    case Completion::Kind::Command:
      out = fmt::format(":command {}\n", completion.command_at);
      break;
  }
  for (const Candidate& candidate : completion.candidates) {
    const std::string text = printable(candidate.text);
    out += text.empty() ? candidate.word + "\n" : fmt::format("{}\t{}\n", candidate.word, text);
  }
  return out;
}

}  // namespace gflow::cli

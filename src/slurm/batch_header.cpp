// SPDX-License-Identifier: Apache-2.0
#include "slurm/batch_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace gflow::slurm {
namespace {

constexpr std::string_view kLine = "#SBATCH";
constexpr std::string_view kBlanks = " \t\r\v\f";

struct Known {
  std::string_view name;
  char letter;           ///< 0: none
  std::size_t shortest;  ///< of the abbreviations that sbatch takes for it
  bool takes_value;
};
constexpr auto kKnown = std::to_array<Known>({{"array", 'a', 2, true},
                                              {"wait", 'W', 4, false},
                                              {"quiet", 'Q', 2, false},
                                              {"test-only", 0, 2, false},
                                              {"output", 'o', 2, true},
                                              {"error", 'e', 2, true},
                                              {"input", 'i', 2, true},
                                              {"ntasks", 'n', 6, true},
                                              {"ntasks-per-node", 0, 11, true},
                                              {"comment", 0, 4, true},
                                              {"nice", 0, 2, true},
                                              {"gres", 0, 4, true},
                                              {"gpus", 'G', 4, true},
                                              {"gpus-per-node", 0, 10, true}});
/// What gbatch does, or asks of sbatch in words of its own.
constexpr auto kLeftOut =
    std::to_array<std::string_view>({"array", "wait", "quiet", "gres", "gpus", "gpus-per-node"});
/// Letters of sbatch without a value, which may stand together: "-HW".
constexpr std::string_view kAlone = "hHIkOQsvVW";

struct Word {
  std::string text;  ///< without quotes
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Where a word ends that begins at `at`; a '#' ends the line.
Word word_at(std::string_view script, std::size_t at, std::size_t end) {
  Word word{.text = {}, .begin = at, .end = at};
  char quote = 0;
  for (; word.end < end; ++word.end) {
    const char c = script[word.end];
    if (c == '\\' && word.end + 1 < end) {
      word.text += script[++word.end];
    } else if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote != 0 ? 0 : c;
    } else if (quote == 0 && (c == '#' || kBlanks.find(c) != std::string_view::npos)) {
      break;
    } else {
      word.text += c;
    }
  }
  return word;
}

std::vector<Word> words_of(std::string_view script, std::size_t begin, std::size_t end) {
  std::vector<Word> words;
  while (begin < end) {
    begin = std::min(script.find_first_not_of(kBlanks, begin), end);
    if (begin == end || script[begin] == '#') break;
    words.push_back(word_at(script, begin, end));
    begin = words.back().end;
  }
  return words;
}

const Known* named(std::string_view typed) {
  const auto at = std::ranges::find_if(kKnown, [typed](const Known& one) {
    return typed.size() >= one.shortest && one.name.starts_with(typed);
  });
  return at == kKnown.end() ? nullptr : &*at;
}

class HeaderReader {
 public:
  explicit HeaderReader(std::string_view script) : script_(script) {}

  std::vector<HeaderOption> read() {
    for (std::size_t at = 0; at < script_.size();) {
      const std::size_t end = std::min(script_.find('\n', at), script_.size());
      const std::string_view line = script_.substr(at, end - at);
      if (line.starts_with(kLine)) {
        take(words_of(script_, at + kLine.size(), end));
      } else if (const std::string_view text = trim(line); !text.empty() && text[0] != '#') {
        break;
      }
      at = end + 1;
    }
    return std::move(found_);
  }

 private:
  void take(const std::vector<Word>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const Word* next = i + 1 < words.size() ? &words[i + 1] : nullptr;
      const std::string& text = words[i].text;
      if (text.starts_with("--")) {
        take_long(words[i], next);
      } else if (text.size() > 1 && text[0] == '-') {
        take_letters(words[i], next);
      }
    }
  }

  void take_long(const Word& word, const Word* next) {
    const std::size_t equals = std::min(word.text.find('='), word.text.size());
    const Known* known = named(std::string_view(word.text).substr(2, equals - 2));
    if (known == nullptr) return;
    if (equals < word.text.size()) {
      const std::size_t written = script_.find('=', word.begin);
      add(*known, {word.text.substr(equals + 1), written + 1, word.end}, word.begin);
    } else if (known->takes_value && known->name != "nice" && next != nullptr) {
      add(*known, *next, word.begin);
    } else {
      add(*known, {"", word.begin, word.end}, word.begin);
    }
  }

  void take_letters(const Word& word, const Word* next) {
    const bool is_plain = word.text.size() == word.end - word.begin;
    for (std::size_t i = 1; i < word.text.size(); ++i) {
      const char letter = word.text[i];
      const bool is_alone = kAlone.find(letter) != std::string_view::npos;
      const auto known = std::ranges::find(kKnown, letter, &Known::letter);
      const bool is_whole = i == 1 && (!is_alone || word.text.size() == 2);
      // In what is quoted, a letter stands elsewhere than in its text.
      if (!is_whole && !is_plain) return;
      const std::size_t begin = is_whole ? word.begin : word.begin + i;
      if (known != kKnown.end() && is_alone) {
        add(*known, {"", begin, is_whole ? word.end : begin + 1}, begin);
      } else if (known != kKnown.end() && i + 1 < word.text.size()) {
        add(*known, {word.text.substr(i + 1), word.begin + i + 1, word.end}, begin);
      } else if (known != kKnown.end() && next != nullptr) {
        add(*known, *next, begin);
      }
      if (!is_alone) return;  // the rest is its value
    }
  }

  void add(const Known& known, const Word& value, std::size_t begin) {
    found_.push_back({known.name, value.text, begin, value.end, value.begin});
  }

  std::string_view script_;
  std::vector<HeaderOption> found_;
};

/// With the dash before it, if that is all that is left of the word.
void cut(std::string& script, const HeaderOption& option) {
  const bool is_end = option.end >= script.size() ||
                      kBlanks.find(script[option.end]) != std::string_view::npos ||
                      script[option.end] == '\n';
  const bool is_last_letter = is_end && script[option.begin - 1] == '-' &&
                              kBlanks.find(script[option.begin - 2]) != std::string_view::npos;
  const std::size_t begin = option.begin - (is_last_letter ? 1 : 0);
  script.erase(begin, option.end - begin);
}

bool is_of_files(std::string_view name) {
  return name == "output" || name == "error" || name == "input";
}

/// "%a", "%4a" and "%A"; all else stays, "%%", too.
std::string name_of_task(std::string_view pattern, std::string_view task) {
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    std::size_t letter = i + 1;
    while (letter < pattern.size() && pattern[letter] >= '0' && pattern[letter] <= '9') ++letter;
    const bool is_field = pattern[i] == '%' && letter < pattern.size();
    if (!is_field) {
      name += pattern[i];
      continue;
    }
    const std::string_view width = pattern.substr(i + 1, letter - i - 1);
    if (pattern[letter] == 'a') {
      const std::uint64_t least = std::min<std::uint64_t>(parse_number(width).value_or(0), 10);
      name += std::string(least > task.size() ? least - task.size() : 0, '0');
      name += task;
    } else {
      name += '%';
      name += width;
      name += pattern[letter] == 'A' ? 'j' : pattern[letter];
    }
    i = letter;
  }
  return name;
}

}  // namespace

std::vector<HeaderOption> header_options(std::string_view script) {
  return HeaderReader(script).read();
}

std::string without_what_gbatch_does(std::string script) {
  std::vector<HeaderOption> options = header_options(script);
  std::ranges::reverse(options);
  for (const HeaderOption& option : options) {
    if (std::ranges::find(kLeftOut, option.name) != kLeftOut.end()) cut(script, option);
  }
  return script;
}

std::string with_files_of_task(std::string script, std::string_view task) {
  std::vector<HeaderOption> options = header_options(script);
  std::ranges::reverse(options);
  for (const HeaderOption& option : options) {
    if (!is_of_files(option.name) || option.value.empty()) continue;
    const std::size_t size = option.end - option.value_begin;
    script.replace(option.value_begin,
                   size,
                   name_of_task(std::string_view(script).substr(option.value_begin, size), task));
  }
  return script;
}

}  // namespace gflow::slurm

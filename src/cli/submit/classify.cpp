// SPDX-License-Identifier: Apache-2.0
#include "cli/submit/classify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/translate.h"

namespace gflow::cli {

namespace {

bool has_shell_name(std::string_view path) {
  return path.ends_with(".sh") || path.ends_with(".bash");
}

std::string_view extension(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? "" : name.substr(dot + 1);
}

/// The program that runs a file of that kind; "" for one a shell may run.
std::string_view interpreter_of(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kInterpreters = {{
      {"py", "python"},
      {"r", "Rscript"},
      {"R", "Rscript"},
      {"jl", "julia"},
      {"pl", "perl"},
      {"rb", "ruby"},
      {"js", "node"},
      {"lua", "lua"},
      {"m", "matlab"},
      {"php", "php"},
      {"ipynb", "jupyter execute"},
  }};
  for (const auto& [ending, program] : kInterpreters) {
    if (extension(path) == ending) return program;
  }
  return "";
}

/// Endings people give to batch scripts besides .sh.
bool may_be_shell(std::string_view path) {
  constexpr std::array<std::string_view, 10> kEndings = {
      "", "job", "slurm", "sbatch", "gflow", "batch", "run", "cmd", "ksh", "dash"};
  return std::ranges::find(kEndings, extension(path)) != kEndings.end();
}

std::unexpected<Error> not_a_script(std::span<const std::string> words) {
  std::string_view interpreter = interpreter_of(words[0]);
  if (interpreter.empty()) interpreter = "bash";
  return fail(Code::Usage,
              tr_format("'{}' is a text file that names no interpreter; write 'gbatch {} {}', or "
                        "begin the file with #!",
                        printable(words[0]),
                        interpreter,
                        printable(shell_quote(words))));
}

Result<Work> classify_file(std::span<const std::string> words, const FileFacts& file) {
  const std::string& path = words[0];
  if (file.head.starts_with("#!") || has_shell_name(path)) return ScriptJob{path};
  const bool text = is_text(file.head);
  if (text && (file.executable || words.size() == 1) && may_be_shell(path)) return ScriptJob{path};
  if (file.executable && !text) {
    std::vector<std::string> argv(words.begin(), words.end());
    argv[0] = file.absolute;
    return CommandJob{std::move(argv)};
  }
  if (text) return not_a_script(words);
  return fail(Code::Usage,
              tr_format("'{}' is not executable; run 'chmod +x {}' if it is a program",
                        printable(path),
                        printable(path)));
}

/// The program of the suite that has a command of that name.
std::string_view program_with(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 24> kCommands = {{
      {"list", "gqueue"},      {"ls", "gqueue"},           {"queue", "gqueue"},
      {"status", "gqueue"},    {"jobs", "gqueue"},         {"ps", "gqueue"},
      {"log", "gjob log"},     {"logs", "gjob log"},       {"show", "gjob show"},
      {"why", "gjob why"},     {"hold", "gjob hold"},      {"release", "gjob release"},
      {"wait", "gjob wait"},   {"update", "gjob update"},  {"redo", "gjob"},
      {"attach", "gjob"},      {"cancel", "gcancel"},      {"kill", "gcancel"},
      {"info", "ginfo"},       {"gpus", "ginfo"},          {"up", "gflowd up"},
      {"down", "gflowd down"}, {"doctor", "gflow doctor"}, {"restart", "gflowd restart"},
  }};
  for (const auto& [name, program] : kCommands) {
    if (word == name) return program;
  }
  return "";
}

std::string_view nearly_program_with(const std::string& word) {
  static const std::vector<std::string> names = {"list",
                                                 "queue",
                                                 "status",
                                                 "jobs",
                                                 "logs",
                                                 "show",
                                                 "hold",
                                                 "release",
                                                 "update",
                                                 "cancel",
                                                 "info",
                                                 "doctor",
                                                 "restart"};
  const auto near = word.size() >= 4 ? nearest(word, names) : std::nullopt;
  return near ? program_with(*near) : "";
}

std::unexpected<Error> no_program(std::span<const std::string> words) {
  const std::string& word = words[0];
  std::string_view other = program_with(word);
  if (other.empty() && words.size() == 1) other = nearly_program_with(word);
  if (!other.empty()) {
    return fail(Code::Usage,
                tr_format("there is no program '{}'; did you mean {}?", printable(word), other));
  }
  constexpr std::array<std::string_view, 9> kBuiltIns = {
      "cd", "source", ".", "export", "exec", "eval", "ulimit", "module", "conda"};
  if (std::ranges::find(kBuiltIns, word) != kBuiltIns.end()) {
    return fail(Code::NotFound,
                tr_format("'{}' is a shell command, not a program; quote the whole line as one "
                          "argument: gbatch {}",
                          printable(word),
                          printable(shell_quote(std::array{shell_quote(words)}))));
  }
  if (word.find('=') != std::string::npos && word[0] != '=') {
    return fail(Code::NotFound,
                tr_format("'{}' is not a program; to set a variable write --export ALL,{}",
                          printable(word),
                          printable(word)));
  }
  return fail(Code::NotFound, tr_format("there is no program '{}' in PATH", printable(word)));
}

bool is_shell_line(std::string_view word) {
  return word.find_first_of(" \t\n;|&<>()$`\\\"'*?[]{}!#") != std::string_view::npos ||
         word.starts_with('~');
}

}  // namespace

bool is_text(std::string_view head) { return head.find('\0') == std::string_view::npos; }

Result<Work> classify(std::span<const std::string> words, const Surroundings& surroundings) {
  const std::string& word = words[0];
  if (word.empty()) return fail(Code::Usage, tr("the command is empty"));
  const FileFacts file = surroundings.look(word);
  const bool has_slash = word.find('/') != std::string::npos;
  const bool is_program = !has_slash && surroundings.on_path(word);
  if (file.kind == FileFacts::Kind::Regular &&
      (!is_program || file.head.starts_with("#!") || has_shell_name(word))) {
    return classify_file(words, file);
  }
  if (is_program) return CommandJob{{words.begin(), words.end()}};
  if (file.kind == FileFacts::Kind::Directory) {
    return fail(Code::Usage, tr_format("'{}' is a directory", printable(word)));
  }
  if (words.size() == 1 && is_shell_line(word)) return CommandJob{{"bash", "-c", word}};
  if ((has_slash && !surroundings.runs_elsewhere) || has_shell_name(word)) {
    return fail(Code::NotFound, tr_format("there is no file '{}'", printable(word)));
  }
  if (has_slash) return CommandJob{{words.begin(), words.end()}};
  auto none = no_program(words);
  const bool may_be_there = surroundings.runs_elsewhere && none.error().code == Code::NotFound;
  if (!may_be_there) return none;
  return CommandJob{{words.begin(), words.end()}};
}

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#include "attempt/program.h"

#include "base/text_fields.h"

namespace gflow::attempt {
namespace {

constexpr std::string_view kBlank = " \t";

std::string_view strip(std::string_view text) {
  const std::size_t from = text.find_first_not_of(kBlank);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kBlank) - from + 1);
}

std::string_view path_of(std::span<const std::string> environment) {
  constexpr std::string_view kName = "PATH=";
  std::string_view path = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string& variable : environment) {
    if (variable.starts_with(kName)) path = std::string_view(variable).substr(kName.size());
  }
  return path;
}

}  // namespace

std::optional<Shebang> parse_shebang(std::string_view start) {
  if (!start.starts_with("#!")) return std::nullopt;
  std::string_view line = strip(take_field(start, '\n').substr(2));
  const std::size_t end = line.find_first_of(kBlank);
  const std::string_view interpreter = line.substr(0, end);
  if (interpreter.empty() || line.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string_view rest = end == std::string_view::npos ? "" : strip(line.substr(end));
  return Shebang{std::string(interpreter), std::string(rest)};
}

std::vector<std::string> program_paths(std::string_view program,
                                       std::span<const std::string> environment) {
  if (program.find('/') != std::string_view::npos) return {std::string(program)};
  std::vector<std::string> paths;
  if (program.empty()) return paths;
  std::string_view path = path_of(environment);
  while (true) {
    const bool last = path.find(':') == std::string_view::npos;
    const std::string_view directory = take_field(path, ':');
    // POSIX: an empty directory in PATH is the current one.
    paths.push_back(std::string(directory.empty() ? "." : directory) + "/" + std::string(program));
    if (last) return paths;
  }
}

}  // namespace gflow::attempt

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "core/requests.h"

namespace gflow {
namespace {

/// What stands after a keyword of a comment line ("# GFLOW --gpus 2"), or nothing if it is another
/// comment: the keyword has to be a word of its own, in capitals.
std::optional<std::string_view> after_keyword(std::string_view comment, std::string_view keyword) {
  if (!comment.starts_with(keyword)) return std::nullopt;
  comment.remove_prefix(keyword.size());
  if (!comment.empty() && comment.front() != ' ' && comment.front() != '\t') return std::nullopt;
  return comment;
}

/// Adds the words of one directive line; a line without words says nothing.
Result<void> add(std::vector<Directive>& directives, int line, std::string_view options) {
  const std::string where = fmt::format("line {}", line);
  if (options.find('\0') != std::string_view::npos) {
    return with_context({Code::Usage, "a directive cannot hold a NUL byte"}, where);
  }
  auto words = shell_split(options);
  if (!words) return with_context(words.error(), where);
  if (!words->empty()) directives.push_back({line, *std::move(words)});
  return {};
}

}  // namespace

Result<Directives> read_directives(std::string_view script) {
  Directives directives;
  int number = 0;
  for (std::string_view rest = script; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = trim(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    ++number;
    if (line.empty()) continue;
    if (line.front() != '#') break;
    const std::string_view comment = line.substr(1);
    // Slurm takes "#SBATCH" only: "# SBATCH" is how its users switch a line off.
    if (const auto slurm = after_keyword(comment, "SBATCH")) {
      GF_CHECK(add(directives.slurm, number, *slurm));
    } else if (const auto gflow = after_keyword(trim(comment), "GFLOW")) {
      GF_CHECK(add(directives.gflow, number, *gflow));
    }
  }
  return directives;
}

}  // namespace gflow

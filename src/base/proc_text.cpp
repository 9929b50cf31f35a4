// SPDX-License-Identifier: Apache-2.0
#include "base/proc_text.h"

#include <algorithm>
#include <unordered_map>

#include "base/text_fields.h"

namespace gflow {

std::optional<ProcessFacts> parse_proc_stat(std::string_view text) {
  // The name in brackets may itself hold spaces and brackets: the last one closes it (proc(5)).
  const std::size_t open = text.find(" (");
  const std::size_t close = text.rfind(") ");
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  const auto pid = number_of<std::int32_t>(text.substr(0, open));
  std::string_view rest = text.substr(close + 2);
  const std::string_view state = take_field(rest, ' ');
  const auto parent = number_of<std::int32_t>(take_field(rest, ' '));
  constexpr int kFieldsToFlags = 4;  // from field 5 up to field 9
  for (int i = 0; i < kFieldsToFlags; ++i) (void)take_field(rest, ' ');
  const auto flags = number_of<std::uint64_t>(take_field(rest, ' '));
  constexpr int kFieldsToThreads = 10;  // from field 10 up to field 20
  for (int i = 0; i < kFieldsToThreads; ++i) (void)take_field(rest, ' ');
  const auto threads = number_of<std::int32_t>(take_field(rest, ' '));
  (void)take_field(rest, ' ');  // field 21
  const auto start_time = number_of<std::uint64_t>(take_field(rest, ' '));
  if (!pid || !parent || !start_time || state.size() != 1) return std::nullopt;
  constexpr std::uint64_t kForkedButNotExecuted = 0x40;  // PF_FORKNOEXEC in linux/sched.h
  constexpr std::uint64_t kExiting = 0x4;                // PF_EXITING
  const bool never_executed = (flags.value_or(0) & kForkedButNotExecuted) != 0;
  const bool exiting = (flags.value_or(0) & kExiting) != 0;
  return ProcessFacts{
      *pid, *parent, state[0], *start_time, never_executed, exiting, threads.value_or(1)};
}

std::vector<ProcessFacts> descendants_of(std::int32_t root, const std::vector<ProcessFacts>& all) {
  std::unordered_multimap<std::int32_t, const ProcessFacts*> children;
  for (const ProcessFacts& process : all) children.emplace(process.parent, &process);
  std::vector<ProcessFacts> found;
  std::int32_t parent = root;
  for (std::size_t next = 0;; ++next) {
    const auto [first, last] = children.equal_range(parent);
    for (auto at = first; at != last; ++at) found.push_back(*at->second);
    children.erase(first, last);  // a loop of parents, in a list read while it changed, ends here
    if (next == found.size()) return found;
    parent = found[next].pid;
  }
}

std::optional<std::uint64_t> keyed_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = take_field(text, '\n');
    if (take_field(line, ' ') == key) return number_of<std::uint64_t>(line);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> file_lock_limit(std::string_view text) {
  constexpr std::string_view kName = "Max file locks ";
  while (!text.empty()) {
    std::string_view line = take_field(text, '\n');
    if (!line.starts_with(kName)) continue;
    line.remove_prefix(std::min(line.find_first_not_of(' ', kName.size()), line.size()));
    return number_of<std::uint64_t>(take_field(line, ' '));
  }
  return std::nullopt;
}

bool is_in_inner_namespace(std::string_view text) {
  constexpr std::string_view kName = "NSpid:\t";
  while (!text.empty()) {
    const std::string_view line = take_field(text, '\n');
    if (line.starts_with(kName)) return line.find('\t', kName.size()) != std::string_view::npos;
  }
  return false;  // a kernel without them
}

std::optional<std::uint32_t> real_user(std::string_view text) {
  constexpr std::string_view kName = "Uid:\t";
  while (!text.empty()) {
    std::string_view line = take_field(text, '\n');
    if (!line.starts_with(kName)) continue;
    line.remove_prefix(kName.size());
    return number_of<std::uint32_t>(take_field(line, '\t'));
  }
  return std::nullopt;
}

std::vector<std::int32_t> parse_pids(std::string_view text) {
  std::vector<std::int32_t> pids;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const auto pid = number_of<std::int32_t>(text.substr(0, end));
    if (pid && *pid > 0) pids.push_back(*pid);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pids;
}

}  // namespace gflow

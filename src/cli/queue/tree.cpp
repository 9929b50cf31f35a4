// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/tree.h"

#include <algorithm>
#include <map>
#include <set>

namespace gflow::cli {

namespace {

/// Rows by the row they hang under, by position.
using Children = std::map<std::size_t, std::set<std::size_t>>;

// Levels shown by indentation: what hangs deeper stands one below the other, with a mark.
constexpr std::size_t kMaxLevels = 24;

struct Pending {
  std::size_t row = 0;
  std::string indent = {};  ///< of its children
  std::string prefix = {};
  std::size_t level = 0;
};

void push_children(std::vector<Pending>& stack, const Children& children, const Pending& parent) {
  const auto found = children.find(parent.row);
  if (found == children.end()) return;
  const std::set<std::size_t>& rows = found->second;
  // The stack is emptied from its end, so the last child goes in first.
  for (auto at = rows.rbegin(); at != rows.rend(); ++at) {
    const bool last = at == rows.rbegin();
    if (parent.level >= kMaxLevels) {
      stack.push_back({*at, parent.indent, parent.indent + "⋮ ", parent.level});
      continue;
    }
    stack.push_back({*at,
                     parent.indent + (last ? "  " : "│ "),
                     parent.indent + (last ? "╰─" : "├─"),
                     parent.level + 1});
  }
}

/// Rows by the rows they hang under, and those that hang under none.
struct Forest {
  Children children;
  std::vector<Pending> roots;
};

Forest plant(const std::vector<FoldedJobs>& rows) {
  std::map<JobId, std::size_t> row_of;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (const std::uint64_t id : rows[row].jobs()) row_of.emplace(JobId(id), row);
  }
  Forest forest;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    bool root = true;
    // Jobs that depend on others are folded only where all depend on the same.
    for (const JobId parent : rows[row].first().spec.dependencies.jobs) {
      const auto known = row_of.find(parent);
      if (known == row_of.end()) continue;
      forest.children[known->second].insert(row);
      root = false;
    }
    if (root) forest.roots.push_back({.row = row});
  }
  return forest;
}

}  // namespace

std::vector<TreeLine> dependency_tree(const std::vector<FoldedJobs>& rows) {
  const Forest forest = plant(rows);
  std::vector<Pending> stack(forest.roots.rbegin(), forest.roots.rend());
  std::vector<TreeLine> lines;
  std::set<std::size_t> shown;
  std::size_t rest = 0;
  while (true) {
    // Pages are read one after the other; should edges form a ring by that, no job may vanish.
    while (stack.empty() && rest < rows.size() && shown.contains(rest)) ++rest;
    if (stack.empty() && rest == rows.size()) return lines;
    if (stack.empty()) stack.push_back({.row = rest});
    const Pending next = std::move(stack.back());
    stack.pop_back();
    const bool elsewhere = !shown.insert(next.row).second;
    lines.push_back({next.prefix, rows[next.row], elsewhere});
    if (!elsewhere) push_children(stack, forest.children, next);
  }
}

}  // namespace gflow::cli

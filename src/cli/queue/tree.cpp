// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/tree.h"

#include <algorithm>
#include <map>
#include <set>

namespace gflow::cli {

namespace {

using Children = std::map<JobId, std::vector<const api::JobView*>>;

// Levels shown by indentation: what hangs deeper stands one below the other, with a mark.
constexpr std::size_t kMaxLevels = 24;

struct Pending {
  const api::JobView* job;
  std::string indent;  ///< of its children
  std::string prefix;
  std::size_t level = 0;
};

void push_children(std::vector<Pending>& stack, const Children& children, const Pending& parent) {
  const auto found = children.find(parent.job->id);
  if (found == children.end()) return;
  const auto& list = found->second;
  // The stack is emptied from its end, so the last child goes in first.
  for (std::size_t i = list.size(); i-- > 0;) {
    const bool last = i + 1 == list.size();
    if (parent.level >= kMaxLevels) {
      stack.push_back({list[i], parent.indent, parent.indent + "⋮ ", parent.level});
      continue;
    }
    stack.push_back({list[i],
                     parent.indent + (last ? "  " : "│ "),
                     parent.indent + (last ? "╰─" : "├─"),
                     parent.level + 1});
  }
}

/// Jobs by the parents they hang under, and those that hang under none.
struct Forest {
  Children children;
  std::vector<Pending> roots;
};

Forest plant(const std::vector<api::JobView>& jobs) {
  std::set<JobId> known;
  for (const api::JobView& job : jobs) known.insert(job.id);
  Forest forest;
  for (const api::JobView& job : jobs) {
    bool root = true;
    for (const JobId parent : job.spec.dependencies.jobs) {
      if (!known.contains(parent)) continue;
      forest.children[parent].push_back(&job);
      root = false;
    }
    if (root) forest.roots.push_back({&job, "", "", 0});
  }
  for (auto& [parent, list] : forest.children) std::ranges::sort(list, {}, &api::JobView::id);
  return forest;
}

}  // namespace

std::vector<TreeLine> dependency_tree(const std::vector<api::JobView>& jobs) {
  const Forest forest = plant(jobs);
  std::vector<Pending> stack(forest.roots.rbegin(), forest.roots.rend());
  std::vector<TreeLine> lines;
  std::set<JobId> shown;
  auto rest = jobs.begin();
  while (true) {
    // Pages are read one after the other; should edges form a ring by that, no job may vanish.
    while (stack.empty() && rest != jobs.end() && shown.contains(rest->id)) ++rest;
    if (stack.empty() && rest == jobs.end()) return lines;
    if (stack.empty()) stack.push_back({&*rest, "", "", 0});
    const Pending next = std::move(stack.back());
    stack.pop_back();
    const bool elsewhere = !shown.insert(next.job->id).second;
    lines.push_back({next.prefix, next.job, elsewhere});
    if (!elsewhere) push_children(stack, forest.children, next);
  }
}

}  // namespace gflow::cli

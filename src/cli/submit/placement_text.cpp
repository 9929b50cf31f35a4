// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"
#include "cli/submit/request.h"

namespace gflow::cli {

namespace {

constexpr std::size_t kMaxCandidates = 3;

/// Where it could run: GPUs of a node.
struct Candidate {
  const api::RankedNode& node;
  const api::GpuSet& set;
};

/// The best of each node, then other sets of the first one where links tell them apart, as many as
/// are worth reading. A job for several nodes gets the best of each.
std::vector<Candidate> candidates(const api::PlacementView& view, Terms terms) {
  std::vector<Candidate> all;
  const std::size_t wanted = terms == Terms::Shown
                                 ? view.ranked.size()
                                 : std::max(kMaxCandidates, static_cast<std::size_t>(view.nodes));
  for (const api::RankedNode& ranked : view.ranked) {
    if (all.size() < wanted) all.push_back({ranked, ranked.best});
  }
  if (view.nodes > 1 || view.ranked.empty()) return all;
  for (const api::GpuSet& other : view.ranked.front().others) {
    const bool says_more = !other.because.empty();
    if (says_more && all.size() < kMaxCandidates) all.push_back({view.ranked.front(), other});
  }
  return all;
}

std::string place(const Candidate& candidate, const api::PlacementView& view) {
  const std::vector<int>& indices = candidate.set.gpus;
  const std::string gpus = indices.empty() ? "" : fmt::format("GPU {}", fmt::join(indices, ","));
  const bool only_node = view.ranked.size() == 1 && view.nodes == 1 && !gpus.empty();
  if (only_node) return gpus;
  const std::string node = tr_format("node {}", printable(candidate.node.node));
  return gpus.empty() ? node : node + ", " + gpus;
}

/// "links 92 of 100: ring of 44 GB/s, the best of the free GPUs".
std::string why_these(const api::GpuSet& set) {
  if (set.because.empty() || set.links_percent == 0) return printable(set.because);
  return tr_format("links {} of 100: {}", set.links_percent, printable(set.because));
}

/// "6 of 8 GPUs stay free"; "" for a node that is not known or has none.
std::string left_free(const Candidate& candidate, const api::MachineView& machine) {
  const auto node = std::ranges::find(machine.nodes, candidate.node.node, &api::NodeView::name);
  if (node == machine.nodes.end() || node->devices.empty()) return "";
  const std::vector<int>& gpus = candidate.set.gpus;
  const auto free = std::ranges::count_if(node->devices, [&](const api::DeviceView& view) {
    return view.available() && std::ranges::find(gpus, view.device.index) == gpus.end();
  });
  return tr_format("{} of {} GPUs stay free", free, node->devices.size());
}

std::string terms_text(const api::RankedNode& ranked) {
  std::string out = tr_format("       score {}\n", ranked.score);
  for (const api::ScoreTerm& term : ranked.terms) {
    out += fmt::format("       {:<24}  {:g} x {:.4g} = {:.4g}\n",
                       printable(term.name),
                       term.weight,
                       term.value,
                       term.weight * term.value + 0.0);  // no "-0"
  }
  return out;
}

std::string waiting_text(const api::PlacementView& view, const Clocks& clocks) {
  std::string out = view.ranked.empty()
                        ? tr("No node has room for it now: it would wait.\n")
                        : tr_format("Only {} of {} nodes have room for it now: it would wait.\n",
                                    view.ranked.size(),
                                    view.nodes);
  if (view.blockers.empty()) return out;
  api::JobView job;
  job.status = Status::Queued;
  job.blockers = view.blockers;
  return out + blocked_by_text(job.blockers, clocks) + expected_start_text(job, clocks);
}

}  // namespace

std::string placement_text(const api::PlacementView& view,
                           const api::MachineView& machine,
                           Terms terms,
                           const Clocks& clocks) {
  if (!view.fits) return waiting_text(view, clocks);
  const bool all = terms == Terms::Shown;
  std::string out = machine.queued == 0 ? tr("It would start now") : tr("There is room now");
  out += all ? tr_format("; policy {}:\n", printable(view.policy)) : ":\n";
  std::size_t number = 0;
  for (const Candidate& candidate : candidates(view, terms)) {
    out += fmt::format("  {:>2}.  {}\n", ++number, place(candidate, view));
    const std::string why = why_these(candidate.set);
    if (!why.empty()) out += fmt::format("       {}\n", why);
    const std::string free = left_free(candidate, machine);
    if (!free.empty()) out += fmt::format("       {}\n", free);
    if (all && &candidate.set == &candidate.node.best) out += terms_text(candidate.node);
  }
  if (machine.queued > 0) {
    out += tr_count(machine.queued,
                    "\n{} job is already waiting: those ahead of it start first.\n",
                    "\n{} jobs are already waiting: those ahead of it start first.\n",
                    machine.queued);
  }
  return out;
}

}  // namespace gflow::cli

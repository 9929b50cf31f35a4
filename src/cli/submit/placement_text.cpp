// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/submit/request.h"

namespace gflow::cli {

namespace {

constexpr std::size_t kMaxCandidates = 3;

std::string place(const api::RankedNode& ranked, const api::PlacementView& view) {
  const std::string gpus =
      ranked.gpus.empty() ? "" : fmt::format("GPU {}", fmt::join(ranked.gpus, ","));
  const bool only_node = view.ranked.size() == 1 && view.nodes == 1 && !gpus.empty();
  if (only_node) return gpus;
  return "node " + printable(ranked.node) + (gpus.empty() ? "" : ", " + gpus);
}

/// "6 of 8 GPUs stay free"; "" for a node that is not known or has none.
std::string left_free(const api::RankedNode& ranked, const api::MachineView& machine) {
  const auto node = std::ranges::find(machine.nodes, ranked.node, &api::NodeView::name);
  if (node == machine.nodes.end() || node->devices.empty()) return "";
  const auto free = std::ranges::count_if(node->devices, [&](const api::DeviceView& view) {
    return view.available() &&
           std::ranges::find(ranked.gpus, view.device.index) == ranked.gpus.end();
  });
  return fmt::format("{} of {} GPUs stay free", free, node->devices.size());
}

std::string terms_text(const api::RankedNode& ranked) {
  std::string out = fmt::format("       score {}\n", ranked.score);
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
                        ? "Nothing has room for it now: it would wait.\n"
                        : fmt::format("Only {} of {} nodes have room for it now: it would wait.\n",
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
  std::string out = machine.queued == 0 ? "It would start now" : "There is room now";
  out += all ? fmt::format("; policy {}:\n", printable(view.policy)) : ":\n";
  const std::size_t wanted =
      all ? view.ranked.size() : std::max(kMaxCandidates, static_cast<std::size_t>(view.nodes));
  const std::size_t shown = std::min(view.ranked.size(), wanted);
  for (std::size_t i = 0; i < shown; ++i) {
    const api::RankedNode& ranked = view.ranked[i];
    out += fmt::format("  {:>2}.  {}\n", i + 1, place(ranked, view));
    if (!ranked.because.empty()) out += fmt::format("       {}\n", printable(ranked.because));
    const std::string free = left_free(ranked, machine);
    if (!free.empty()) out += fmt::format("       {}\n", free);
    if (all) out += terms_text(ranked);
  }
  if (machine.queued > 0) {
    out += fmt::format("\n{} job{} wait{} already: those ahead of it go first.\n",
                       machine.queued,
                       machine.queued == 1 ? "" : "s",
                       machine.queued == 1 ? "s" : "");
  }
  return out;
}

}  // namespace gflow::cli

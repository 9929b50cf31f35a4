// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "cli/submit/request.h"

namespace gflow::cli {

namespace {

std::string place(const api::RankedNode& ranked) {
  const std::string node = "node " + printable(ranked.node);
  if (ranked.gpus.empty()) return node;
  return fmt::format("{}, GPU {}", node, fmt::join(ranked.gpus, ","));
}

}  // namespace

std::string placement_text(const api::PlacementView& view) {
  if (!view.fits) {
    return view.ranked.empty()
               ? "Nothing has room for it now: it would wait.\n"
               : fmt::format("Only {} of {} nodes have room for it now: it would wait.\n",
                             view.ranked.size(),
                             view.nodes);
  }
  std::string out = fmt::format("Has room now, best first (policy {}):\n", printable(view.policy));
  for (std::size_t i = 0; i < view.ranked.size(); ++i) {
    const api::RankedNode& ranked = view.ranked[i];
    out += fmt::format("  {:>2}.  {}  score {}\n", i + 1, place(ranked), ranked.score);
    if (!ranked.because.empty()) out += fmt::format("       {}\n", printable(ranked.because));
    for (const api::ScoreTerm& term : ranked.terms) {
      out += fmt::format("       {:<24}  {:g} x {:.4g} = {:.4g}\n",
                         printable(term.name),
                         term.weight,
                         term.value,
                         term.weight * term.value + 0.0);  // no "-0"
    }
  }
  return out;
}

}  // namespace gflow::cli

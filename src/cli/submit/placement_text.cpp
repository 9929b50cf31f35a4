// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "base/translate.h"
#include "cli/submit/request.h"
#include "command/wrap.h"

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
  return gpus.empty() ? node : node + tr(", ") + gpus;
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

/// Four digits that tell something, without an exponent.
std::string plain(double number) {
  constexpr int kDigits = 4;
  const double size = std::abs(number);
  if (size == 0) return "0";  // no "-0"
  if (size >= 1e4) return fmt::format("{:.0f}", number);
  if (size >= 1e-4) return fmt::format("{:.4g}", number);
  const int leading = static_cast<int>(std::ceil(-std::log10(size)));
  return fmt::format("{:.{}f}", number, leading + kDigits - 1);
}

std::string terms_text(const api::RankedNode& ranked) {
  std::string out = tr_format("       score {} (the highest is best)\n", ranked.score);
  for (const api::ScoreTerm& term : ranked.terms) {
    out += fmt::format("       {:<24}  {} x {} = {}\n",
                       printable(term.name),
                       plain(term.weight),
                       plain(term.value),
                       plain(term.weight * term.value));
  }
  return out;
}

std::string waiting_text(const api::PlacementView& view, std::size_t jobs, const Clocks& clocks) {
  std::string out;
  if (!view.ranked.empty()) {
    out = tr_format("Only {} of {} nodes have room for it now: it would wait.\n",
                    view.ranked.size(),
                    view.nodes);
  } else if (jobs > 1) {
    out = tr("No node has room for any of them now: they would wait.\n");
  } else {
    out = tr("No node has room for it now: it would wait.\n");
  }
  api::JobView job;
  job.status = Status::Queued;
  std::ranges::remove_copy_if(view.blockers, std::back_inserter(job.blockers), is_gate);
  if (job.blockers.empty()) return out;
  out += blocked_by_text(job.blockers, clocks);
  if (jobs == 1) out += expected_start_text(view.expected_start, clocks);
  return out;
}

/// The lines of a sentence below a place.
std::string below(const std::string& sentence, std::size_t columns) {
  constexpr std::size_t kMargin = 7;
  if (sentence.empty()) return "";
  const std::size_t room = columns > 2 * kMargin ? columns - kMargin : std::string::npos;
  std::string out;
  for (const std::string& line : wrap(sentence, room)) out += fmt::format("       {}\n", line);
  return out;
}

/// What a job could have instead, told in the same words: each is named, and these come once.
struct Alternatives {
  std::vector<std::string> places;
  std::string words;
};

/// What is said of a place, but for the terms of its score.
std::string words_of(const Candidate& candidate,
                     const api::MachineView& machine,
                     const DryRun& asked) {
  return below(why_these(candidate.set), asked.columns) +
         below(left_free(candidate, machine), asked.columns);
}

/// Of one that is told in the words of the first, how it stands to that.
std::string beside_first(const Candidate& candidate, const Candidate& first) {
  return candidate.node.score == first.node.score
             ? tr("equally good")
             : tr("the same, but ranked lower by the policy: -v shows the scores");
}

std::string alternatives_text(const std::vector<Alternatives>& all) {
  std::string out;
  for (const Alternatives& one : all) {
    out += fmt::format("   {}  {}\n{}", tr("or"), join(one.places, tr(" or ")), one.words);
  }
  return out;
}

/// Where one job would go, then what it could have instead, below "or". Of a job for several nodes
/// the first so many are its places together.
std::string candidates_text(const api::PlacementView& view,
                            const api::MachineView& machine,
                            const DryRun& asked) {
  std::string out;
  std::vector<Alternatives> instead;
  const std::vector<Candidate> all = candidates(view, asked.terms);
  for (const Candidate& candidate : all) {
    const auto number = static_cast<std::size_t>(&candidate - all.data()) + 1;
    const bool is_instead = number > static_cast<std::size_t>(view.nodes);
    std::string words = words_of(candidate, machine, asked);
    if (is_instead && words == words_of(all.front(), machine, asked)) {
      words = below(beside_first(candidate, all.front()), asked.columns);
    }
    const bool has_terms = asked.terms == Terms::Shown && &candidate.set == &candidate.node.best;
    if (has_terms) words += terms_text(candidate.node);
    if (!is_instead) {
      out += fmt::format("       {}\n{}", place(candidate, view), words);
    } else if (!instead.empty() && instead.back().words == words) {
      instead.back().places.push_back(place(candidate, view));
    } else {
      instead.push_back({{place(candidate, view)}, std::move(words)});
    }
  }
  return out + alternatives_text(instead);
}

std::string place(const api::StartPlace& one, const api::MachineView& machine) {
  const std::string gpus = one.gpus.empty() ? "" : fmt::format("GPU {}", fmt::join(one.gpus, ","));
  if (machine.nodes.size() == 1 && !gpus.empty()) return gpus;
  const std::string node = tr_format("node {}", printable(one.node));
  return gpus.empty() ? node : node + tr(", ") + gpus;
}

/// Nobody else waits, or it may pass those that do.
bool starts_at_once(const api::PlacementView& view,
                    const api::MachineView& machine,
                    const Clocks& clocks) {
  const bool passes = view.expected_start && view.expected_start->at <= clocks.now;
  return (machine.queued == 0 || passes) && std::ranges::none_of(view.blockers, is_gate);
}

/// How many of several jobs start now, and where each, by its number in the list above.
std::string starts_text(const api::PlacementView& view,
                        const api::MachineView& machine,
                        const DryRun& asked,
                        const Clocks& clocks) {
  constexpr std::size_t kMaxLines = 10;
  const std::size_t count = view.starts.size();
  if (count == 0) return "";  // a gate has said why
  std::string out = starts_at_once(view, machine, clocks)
                        ? tr_format("{} of {} would start now:\n", count, asked.jobs)
                        : tr_format("There is room now for {} of {}:\n", count, asked.jobs);
  for (std::size_t i = 0; i < std::min(count, kMaxLines); ++i) {
    std::vector<std::string> places;
    for (const api::StartPlace& one : view.starts[i].places) places.push_back(place(one, machine));
    out += fmt::format("  [{}] {}\n", i + 1, join(places, tr("; ")));
  }
  if (count > kMaxLines) out += tr_format("  ... {} more\n", count - kMaxLines);
  if (view.limit) out += tr_format("The others would wait: {}.\n", printable(view.limit->text));
  return out;
}

/// How many go first, of one that waits for room where that is known.
std::string queue_ahead_text(const api::PlacementView& view, const api::MachineView& machine) {
  if (machine.queued == 0) return "";
  if (view.jobs_ahead == 0U) return tr("\nNo waiting job is ahead of it.\n");
  if (view.jobs_ahead) {
    return tr_count(*view.jobs_ahead,
                    "\n{} waiting job is ahead of it.\n",
                    "\n{} waiting jobs are ahead of it.\n",
                    *view.jobs_ahead);
  }
  return tr_count(machine.queued,
                  "\n{} job is already waiting: those ahead of it start first.\n",
                  "\n{} jobs are already waiting: those ahead of it start first.\n",
                  machine.queued);
}

}  // namespace

std::string placement_text(const api::PlacementView& view,
                           const api::MachineView& machine,
                           const DryRun& asked,
                           const Clocks& clocks) {
  const std::string gates = gates_text(view, clocks);
  // Where there is room now is nothing to one that never starts.
  if (std::ranges::any_of(view.blockers, &api::BlockerView::never)) return gates;
  if (!view.fits) {
    return gates + waiting_text(view, asked.jobs, clocks) + queue_ahead_text(view, machine);
  }
  const bool all = asked.terms == Terms::Shown;
  std::string out = gates;
  const bool starts = starts_at_once(view, machine, clocks);
  if (asked.jobs > 1) out += starts_text(view, machine, asked, clocks);
  if (asked.jobs == 1 || all) {
    std::string head = starts ? tr("It would start now") : tr("There is room now");
    if (asked.jobs > 1) head = tr("One of them alone");
    out += all ? tr_format("{}; policy {}:\n", head, printable(view.policy))
               : tr_format("{}:\n", head);
    out += candidates_text(view, machine, asked);
  }
  if (starts) return out;
  if (asked.jobs == 1) out += expected_start_text(view.expected_start, clocks);
  return out + queue_ahead_text(view, machine);
}

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#include "placement/placer.h"

#include <algorithm>

#include "placement/draw.h"

namespace gflow::placement {
namespace {

constexpr std::size_t kMaxOthers = 2;  // sets of a node's devices beside the one it would give

template <typename Index>
std::size_t at(Index index) {
  return static_cast<std::size_t>(index);
}

/// Whether what the node has, not what is held of it, is the same.
bool has_shape_of(const NodeView& a, const NodeView& b) {
  return a.milli_cpus == b.milli_cpus && a.open == b.open && a.model == b.model &&
         a.free.size() == b.free.size();
}

/// Whether free compute alone tells which devices of the node fit: nothing else that the ledger
/// goes by (memory, modes, models, who is suspended there) tells them apart.
bool is_all_compute(const Demand& demand, const NodeView& view) {
  return view.model >= 0 && !view.time_sliced && !view.has_suspended &&
         demand.mode != GpuMode::TimeSlice && demand.gpu_memory == Memory{} &&
         (demand.mode == GpuMode::Whole || !view.knows_memory);
}

}  // namespace

Placer::Placer(std::unique_ptr<Policy> policy, std::uint64_t seed)
    : policy_(std::move(policy)), traits_(policy_->traits()), learns_(true), seed_(seed) {}

Placer::Placer(std::unique_ptr<Policy> policy, Profile profile, std::uint64_t seed)
    : policy_(std::move(policy)),
      traits_(policy_->traits()),
      profile_(std::move(profile)),
      seed_(seed) {}

void Placer::forget() {
  prepared_ = false;
  seen_ = 0;
  views_.clear();
  changes_.clear();
  kind_by_part_.clear();
  kind_by_demand_.clear();
  kinds_.clear();
}

void Placer::forget_last_demand(const Ledger& ledger) {
  const DemandIndex demand = ledger.demands() - 1;
  if (kind_by_demand_.size() <= at(demand)) return;
  const int index = kind_by_demand_[at(demand)];
  kind_by_demand_.resize(at(demand));
  if (index < 0 || kinds_[at(index)].demand != demand) return;
  // A kind made for the newest demand is the newest kind.
  kind_by_part_.erase(scored_part(ledger.demand(demand)));
  kinds_.pop_back();
}

/// New tables, and every score is to be worked out again.
void Placer::prepare(const Ledger& ledger) {
  policy_->prepare({.ledger = ledger, .profile = profile_, .traffic = traffic_});
  prepared_ = true;
  for (NodeView& view : views_) {
    view.worth = policy_->worth(ledger, view);
    ++changes_[at(view.index)];
  }
  for (Kind& kind : kinds_) kind.seen = 0;
}

NodeView Placer::valued_view(const Ledger& ledger, NodeIndex node) const {
  NodeView view = view_of(ledger, node);
  if (prepared_) view.worth = policy_->worth(ledger, view);
  return view;
}

void Placer::look_at(const Ledger& ledger, NodeIndex node) {
  NodeView view = valued_view(ledger, node);
  if (!has_shape_of(view, views_[at(node)])) prepared_ = false;
  views_[at(node)] = std::move(view);
  ++changes_[at(node)];
}

void Placer::catch_up(const Ledger& ledger) {
  const bool same_rules = rules_ == ledger.rules();
  if (seen_ == ledger.version() && prepared_ && same_rules) return;
  rules_ = ledger.rules();
  // A device of a kind that was not there before is one that the tables do not have.
  const bool same_models = models_ == ledger.models();
  models_ = ledger.models();
  if (!same_rules || !same_models || views_.size() != at(ledger.size())) prepared_ = false;
  views_.resize(at(ledger.size()));
  changes_.resize(views_.size(), 1);
  const auto changed = ledger.changed_since(seen_);
  if (changed && same_rules) {
    for (const NodeIndex node : *changed) look_at(ledger, node);
  } else {
    for (NodeIndex node = 0; node < ledger.size(); ++node) look_at(ledger, node);
  }
  seen_ = ledger.version();
  if (!prepared_) prepare(ledger);
}

Placer::Kind& Placer::kind_of(const Ledger& ledger, DemandIndex demand) {
  if (kind_by_demand_.size() <= at(demand)) kind_by_demand_.resize(at(ledger.demands()), -1);
  int& index = kind_by_demand_[at(demand)];
  if (index < 0) {
    const auto [entry, added] =
        kind_by_part_.emplace(scored_part(ledger.demand(demand)), static_cast<int>(kinds_.size()));
    index = entry->second;
    if (added) kinds_.push_back({.demand = demand});
  }
  return kinds_[at(index)];
}

bool Placer::fits(const Ledger& ledger, DemandIndex demand, const NodeView& view) {
  const Demand& wanted = ledger.demand(demand);
  const bool open =
      view.open && view.milli_cpus_free >= wanted.milli_cpus && ledger.selects(demand, view.index);
  fits_.assign(view.free.size(), 0);
  if (!open || wanted.gpus == 0) return open;
  if (wanted.mode == GpuMode::Whole
          ? view.idle < wanted.gpus
          : wanted.mode == GpuMode::Fraction && view.max_free < wanted.share.parts) {
    return false;
  }
  int found = 0;
  if (is_all_compute(wanted, view)) {
    if (!ledger.accepts(demand, view.model)) return false;
    for (std::size_t i = 0; i < fits_.size(); ++i) {
      fits_[i] = view.free[i] >= wanted.share.parts ? 1 : 0;
      found += fits_[i];
    }
    return found >= wanted.gpus;
  }
  const std::vector<DeviceState>& devices = ledger.state(view.index).devices;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!ledger.device_fits(demand, devices[i])) continue;
    fits_[i] = 1;
    ++found;
  }
  return found >= wanted.gpus;
}

Score Placer::score(const Ledger& ledger, DemandIndex demand, const NodeView& view) {
  if (!fits(ledger, demand, view)) return kNoScore;
  return policy_->score({.ledger = ledger,
                         .index = demand,
                         .demand = ledger.demand(demand),
                         .node = view,
                         .fits = fits_});
}

void Placer::score_node(const Ledger& ledger, Kind& kind, NodeIndex node) {
  std::uint32_t& scored = kind.scored[at(node)];
  if (scored == changes_[at(node)]) return;
  scored = changes_[at(node)];
  kind.board.set(node, score(ledger, kind.demand, views_[at(node)]));
}

void Placer::score_changed(const Ledger& ledger, Kind& kind) {
  if (kind.scored.size() < views_.size()) {
    kind.board.resize(views_.size());
    kind.scored.resize(views_.size(), 0);
  }
  if (kind.seen == ledger.version()) return;
  const auto changed = ledger.changed_since(kind.seen);
  if (kind.seen > 0 && changed && changed->size() < views_.size()) {
    for (const NodeIndex node : *changed) score_node(ledger, kind, node);
  } else {
    for (NodeIndex node = 0; node < ledger.size(); ++node) score_node(ledger, kind, node);
  }
  kind.seen = ledger.version();
}

/// The node with the best score that also has the host memory.
std::optional<NodeIndex> Placer::best_node(const Ledger& ledger,
                                           ScoreBoard& board,
                                           const Demand& demand) const {
  const auto best =
      traits_.draws ? board.best(drawn_number(seed_, ledger.version())) : board.best();
  if (!best || ledger.state(*best).memory_free >= demand.memory) return best;
  // Rare: host memory is what is scarce there.
  std::optional<NodeIndex> found;
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    const Score score = board.at(node);
    if (score == kNoScore || ledger.state(node).memory_free < demand.memory) continue;
    if (!found || score > board.at(*found)) found = node;
  }
  return found;
}

/// Of what is lent no more than it needs.
void Placer::prefer_own(const Ledger& ledger, DemandIndex demand, NodeIndex node) {
  const std::vector<DeviceState>& devices = ledger.state(node).devices;
  auto missing = static_cast<std::ptrdiff_t>(ledger.demand(demand).gpus);
  for (std::size_t i = 0; i < fits_.size(); ++i) {
    if (fits_[i] != 0 && devices[i].lent == 0) --missing;
  }
  for (std::size_t i = 0; i < fits_.size(); ++i) {
    if (fits_[i] != 0 && devices[i].lent > 0 && missing-- <= 0) fits_[i] = 0;
  }
}

/// REQUIRES: the demand fits but for host memory.
Question Placer::question(const Ledger& ledger, DemandIndex demand, const NodeView& view) {
  (void)fits(ledger, demand, view);  // it does; this is for fits_
  if (ledger.demand(demand).borrows) prefer_own(ledger, demand, view.index);
  return {.ledger = ledger,
          .index = demand,
          .demand = ledger.demand(demand),
          .node = view,
          .fits = fits_};
}

DeviceChoice Placer::devices_among(const Question& asked) {
  const Demand& wanted = asked.demand;
  const Node& node = asked.ledger.node(asked.node.index);
  const DeviceTable* table = wanted.mode == GpuMode::Whole ? tables_.of(node) : nullptr;
  if (table == nullptr || asked.fits.size() > node.devices.size()) {
    return {.devices = policy_->devices(asked), .reason = {}};
  }
  return choose_devices(*table, asked.ledger, asked.node.index, asked.fits, wanted.gpus);
}

DeviceChoice Placer::devices(const Ledger& ledger, DemandIndex demand, const NodeView& view) {
  if (ledger.demand(demand).gpus == 0) return {};
  return devices_among(question(ledger, demand, view));
}

std::vector<DeviceChoice> Placer::other_devices(const Ledger& ledger,
                                                DemandIndex demand,
                                                const NodeView& view,
                                                const DeviceChoice& chosen) {
  const Question asked = question(ledger, demand, view);
  std::vector<DeviceChoice> others;
  if (std::ranges::count(asked.fits, 1) <= asked.demand.gpus) return others;
  for (const int device : chosen.devices) {
    std::vector<std::uint8_t> without(asked.fits.begin(), asked.fits.end());
    without[at(device)] = 0;
    DeviceChoice other = devices_among(
        {.ledger = ledger, .index = demand, .demand = asked.demand, .node = view, .fits = without});
    other.reason.best_of_free = chosen.reason.best_of_free;
    if (std::ranges::find(others, other.devices, &DeviceChoice::devices) != others.end()) continue;
    others.push_back(std::move(other));
  }
  const auto better = [](const DeviceChoice& a, const DeviceChoice& b) {
    if (a.reason.mb_per_second != b.reason.mb_per_second) {
      return a.reason.mb_per_second > b.reason.mb_per_second;
    }
    return a.reason.numa_nodes < b.reason.numa_nodes;
  };
  std::ranges::stable_sort(others, better);
  others.resize(std::min(others.size(), kMaxOthers));
  return others;
}

std::optional<Choice> Placer::choose_on(const Ledger& ledger,
                                        DemandIndex demand,
                                        ScoreBoard& board,
                                        std::span<const NodeIndex> excluded) {
  std::vector<std::pair<NodeIndex, Score>> hidden;
  const auto hide = [&board, &hidden](NodeIndex node) {
    hidden.emplace_back(node, board.at(node));
    board.set(node, kNoScore);
  };
  for (const NodeIndex node : excluded) hide(node);
  const Demand& wanted = ledger.demand(demand);
  Choice choice;
  std::vector<NodeIndex> nodes;
  while (std::ssize(nodes) < wanted.nodes) {
    const auto node = best_node(ledger, board, wanted);
    if (!node) break;
    if (nodes.empty()) choice.score = board.at(*node);
    nodes.push_back(*node);
    if (std::ssize(nodes) < wanted.nodes) hide(*node);
  }
  for (; !hidden.empty(); hidden.pop_back()) board.set(hidden.back().first, hidden.back().second);
  if (std::ssize(nodes) < wanted.nodes) return std::nullopt;
  for (const NodeIndex node : nodes) choice.placements.push_back({.node = node, .devices = {}});
  return choice;
}

std::optional<Choice> Placer::choose(const Ledger& ledger,
                                     DemandIndex demand,
                                     std::span<const NodeIndex> excluded) {
  catch_up(ledger);
  Kind& kind = kind_of(ledger, demand);
  score_changed(ledger, kind);
  auto choice = choose_on(ledger, demand, kind.board, excluded);
  if (!choice) return std::nullopt;
  return with_devices(ledger, demand, *std::move(choice));
}

Choice Placer::with_devices(const Ledger& ledger, DemandIndex demand, Choice choice) {
  for (Placement& placement : choice.placements) {
    auto [devices, reason] = this->devices(ledger, demand, views_[at(placement.node)]);
    placement.devices = std::move(devices);
    choice.reasons.push_back(reason);
  }
  return choice;
}

std::optional<Choice> Placer::choose_among(const Ledger& ledger,
                                           DemandIndex demand,
                                           std::span<const NodeIndex> nodes,
                                           std::span<const NodeIndex> excluded) {
  const Kind& kind = scored_kind(ledger, demand);
  const Demand& wanted = ledger.demand(demand);
  Choice choice;
  std::vector<NodeIndex> best;
  const auto is_taken = [&choice](NodeIndex node) {
    return std::ranges::find(choice.placements, node, &Placement::node) != choice.placements.end();
  };
  while (std::ssize(choice.placements) < wanted.nodes) {
    best.clear();
    for (const NodeIndex node : nodes) {
      const Score score = kind.board.at(node);
      if (score == kNoScore || ledger.state(node).memory_free < wanted.memory) continue;
      if (!best.empty() && score < kind.board.at(best.front())) continue;
      if (std::ranges::find(excluded, node) != excluded.end() || is_taken(node)) continue;
      if (!best.empty() && score > kind.board.at(best.front())) best.clear();
      best.push_back(node);
    }
    if (best.empty()) return std::nullopt;
    const auto drawn = traits_.draws ? drawn_number(seed_, ledger.version()) % best.size() : 0;
    if (choice.placements.empty()) choice.score = kind.board.at(best[drawn]);
    choice.placements.push_back({.node = best[drawn], .devices = {}});
  }
  return with_devices(ledger, demand, std::move(choice));
}

std::optional<Choice> Placer::choose_by_scan(const Ledger& ledger,
                                             DemandIndex demand,
                                             std::span<const NodeIndex> excluded) {
  if (!prepared_) catch_up(ledger);
  ScoreBoard board;
  board.resize(at(ledger.size()));
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    board.set(node, score(ledger, demand, valued_view(ledger, node)));
  }
  auto choice = choose_on(ledger, demand, board, excluded);
  if (!choice) return std::nullopt;
  for (Placement& placement : choice->placements) {
    auto [devices, reason] = this->devices(ledger, demand, valued_view(ledger, placement.node));
    placement.devices = std::move(devices);
    choice->reasons.push_back(reason);
  }
  return choice;
}

Placer::Kind& Placer::scored_kind(const Ledger& ledger, DemandIndex demand) {
  catch_up(ledger);
  Kind& kind = kind_of(ledger, demand);
  score_changed(ledger, kind);
  return kind;
}

std::optional<Score> Placer::score_on(const Ledger& ledger, DemandIndex demand, NodeIndex node) {
  const Score score = scored_kind(ledger, demand).board.at(node);
  const bool fits = score != kNoScore && ledger.fits(demand, node);
  return fits ? std::optional(score) : std::nullopt;
}

std::vector<int> Placer::devices_on(const Ledger& ledger, DemandIndex demand, NodeIndex node) {
  catch_up(ledger);
  return devices(ledger, demand, views_[at(node)]).devices;
}

std::vector<Ranked> Placer::rank(const Ledger& ledger, DemandIndex demand, std::size_t most) {
  Kind& kind = scored_kind(ledger, demand);
  const Demand& wanted = ledger.demand(demand);
  std::vector<NodeIndex> nodes;
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    const bool fits =
        kind.board.at(node) != kNoScore && ledger.state(node).memory_free >= wanted.memory;
    if (fits) nodes.push_back(node);
  }
  std::ranges::stable_sort(
      nodes, std::greater{}, [&kind](NodeIndex node) { return kind.board.at(node); });
  nodes.resize(std::min(nodes.size(), most));
  std::vector<Ranked> ranking;
  for (const NodeIndex node : nodes) {
    const NodeView& view = views_[at(node)];
    DeviceChoice chosen = devices(ledger, demand, view);
    std::vector<DeviceChoice> others;
    if (ranking.empty()) others = other_devices(ledger, demand, view, chosen);
    ranking.push_back({.node = node,
                       .score = kind.board.at(node),
                       .devices = std::move(chosen.devices),
                       .reason = chosen.reason,
                       .terms = policy_->explain(question(ledger, demand, view)),
                       .others = std::move(others)});
  }
  return ranking;
}

void Placer::arrived(const Ledger& ledger, DemandIndex demand, std::uint64_t count) {
  traffic_.arrivals += static_cast<std::int64_t>(count);
  if (learns_) learn(ledger.demand(demand), static_cast<std::int64_t>(count));
  observe(ledger);
}

void Placer::learn(const Demand& demand, std::int64_t count) {
  while (count > 0) {
    const std::int64_t taken = std::clamp<std::int64_t>(counter_.until_due(), 1, count);
    counter_.add(demand, taken);
    count -= taken;
    if (counter_.until_due() > 0) continue;
    profile_ = counter_.profile();
    prepared_ = false;
  }
}

void Placer::departed(const Ledger& ledger) {
  ++traffic_.departures;
  observe(ledger);
}

void Placer::observe(const Ledger& ledger) {
  if (policy_->observe({.ledger = ledger, .profile = profile_, .traffic = traffic_})) {
    prepared_ = false;
  }
}

}  // namespace gflow::placement

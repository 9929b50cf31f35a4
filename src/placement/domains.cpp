// SPDX-License-Identifier: Apache-2.0
#include "placement/domains.h"

#include <algorithm>
#include <map>
#include <utility>

namespace gflow::placement {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// The node's values of the levels, up to the first that it lacks. Labels are sorted.
std::vector<std::string> path_of(const std::vector<Label>& labels,
                                 const std::vector<std::string>& levels) {
  std::vector<std::string> path;
  for (const std::string& level : levels) {
    const auto label = std::ranges::lower_bound(labels, level, {}, &Label::key);
    if (label == labels.end() || label->key != level) break;
    path.push_back(label->value);
  }
  return path;
}

/// Of whole devices, and of none: what is left is divided, as one that is given out changes nothing
/// of the others.
std::size_t divided(const Ledger& ledger,
                    DemandIndex index,
                    const NodeState& state,
                    std::size_t most) {
  const Demand& demand = ledger.demand(index);
  const auto parts = [&most](std::int64_t left, std::int64_t each) {
    if (each > 0)
      most = std::min(most, static_cast<std::size_t>(std::max(left / each, std::int64_t{0})));
  };
  parts(state.milli_cpus_free, demand.milli_cpus);
  parts(state.memory_free.bytes, demand.memory.bytes);
  const auto suits = [&](const DeviceState& device) { return ledger.device_fits(index, device); };
  if (demand.gpus > 0) parts(std::ranges::count_if(state.devices, suits), demand.gpus);
  return most;
}

}  // namespace

Domains::Domains(const Ledger& ledger, std::vector<std::string> levels)
    : levels_(std::move(levels)), of_level_(levels_.size()) {
  std::map<std::pair<DomainIndex, std::string>, DomainIndex> known;
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    paths_.push_back(path_of(ledger.node(node).labels, levels_));
    std::vector<DomainIndex>& place = places_.emplace_back();
    DomainIndex within = kNoDomain;
    for (std::size_t level = 0; level < paths_.back().size(); ++level) {
      const auto [entry, is_new] = known.try_emplace({within, paths_.back()[level]}, size());
      const DomainIndex domain = entry->second;
      if (is_new) {
        domains_.push_back({.within = within, .parts = {}, .nodes = {}});
        of_level_[level].push_back(domain);
        if (within != kNoDomain) domains_[at(within)].parts.push_back(domain);
      }
      domains_[at(domain)].nodes.push_back(node);
      place.push_back(domain);
      within = domain;
    }
  }
}

DomainIndex Domains::of(NodeIndex node, std::size_t level) const {
  if (at(node) >= places_.size()) return kNoDomain;
  const std::vector<DomainIndex>& place = places_[at(node)];
  return level < place.size() ? place[level] : kNoDomain;
}

DomainIndex Domains::at_level(DomainIndex domain, std::size_t level, std::size_t wider) const {
  for (; level > wider; --level) domain = domains_[at(domain)].within;
  return domain;
}

bool Domains::stands(NodeIndex node, const std::vector<Label>& labels) const {
  return at(node) < paths_.size() && paths_[at(node)] == path_of(labels, levels_);
}

std::size_t count_that_fit(const Ledger& ledger,
                           DemandIndex demand,
                           NodeIndex node,
                           std::size_t most) {
  if (!ledger.fits(demand, node)) return 0;
  const Demand& wanted = ledger.demand(demand);
  if (wanted.gpus == 0 || (wanted.mode == GpuMode::Whole && !wanted.borrows)) {
    return divided(ledger, demand, ledger.state(node), most);
  }
  NodeState state = ledger.state(node);
  std::size_t count = 0;
  for (; count < most && ledger.fits_state(demand, node, state); ++count) {
    ledger.take_on(state, demand, ledger.first_devices(demand, state));
  }
  return count;
}

}  // namespace gflow::placement

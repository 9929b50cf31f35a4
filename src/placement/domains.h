// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "placement/ledger.h"

/// Where nodes stand in a network: in which block, which rack.
namespace gflow::placement {

using DomainIndex = std::int32_t;
constexpr DomainIndex kNoDomain = -1;

/// Nodes that are near each other.
struct Domain {
  DomainIndex within = kNoDomain;  ///< of the level before
  std::vector<DomainIndex> parts;  ///< domains of the next level, in the order of their first nodes
  std::vector<NodeIndex> nodes;    ///< all of it, ascending
};

/// The nodes of a ledger by labels that are levels, the widest first. Nodes are in one domain of a
/// level where they have the same values of its label and of those of all wider levels: rack 1 of
/// one block is not rack 1 of another. A node that lacks one of these labels is in no domain of the
/// level. Good as long as nodes have these labels, and none comes, goes or has another index.
class Domains {
 public:
  Domains(const Ledger& ledger, std::vector<std::string> levels);

  [[nodiscard]] const std::vector<std::string>& levels() const { return levels_; }
  /// Those of a level, in the order of their first nodes. REQUIRES: level < levels().size()
  [[nodiscard]] const std::vector<DomainIndex>& of_level(std::size_t level) const {
    return of_level_[level];
  }
  [[nodiscard]] const Domain& domain(DomainIndex index) const {
    return domains_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] DomainIndex size() const { return static_cast<DomainIndex>(domains_.size()); }
  /// kNoDomain where it is in none.
  [[nodiscard]] DomainIndex of(NodeIndex node, std::size_t level) const;
  /// The one of a wider or the same level that a domain of `level` is in.
  [[nodiscard]] DomainIndex at_level(DomainIndex domain,
                                     std::size_t level,
                                     std::size_t wider) const;
  /// Whether a node stands where it stood, with these labels. False of one that was not there.
  [[nodiscard]] bool stands(NodeIndex node, const std::vector<Label>& labels) const;

 private:
  std::vector<std::string> levels_;
  std::vector<Domain> domains_;
  std::vector<std::vector<DomainIndex>> of_level_;
  std::vector<std::vector<std::string>> paths_;   ///< by node: its values of the levels it has
  std::vector<std::vector<DomainIndex>> places_;  ///< by node: the domains that these are
};

/// How many of the demand's parts for one node fit there now, one beside the other; no more than
/// `most` are counted.
[[nodiscard]] std::size_t count_that_fit(const Ledger& ledger,
                                         DemandIndex demand,
                                         NodeIndex node,
                                         std::size_t most);

}  // namespace gflow::placement

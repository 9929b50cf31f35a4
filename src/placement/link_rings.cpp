// SPDX-License-Identifier: Apache-2.0
#include "placement/link_rings.h"
#include "base/at.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

namespace gflow::placement {
namespace {

using Mask = std::uint32_t;

constexpr Mask bit(int vertex) { return Mask{1} << static_cast<unsigned>(vertex); }

int least_degree(const LinkGraph& graph) {
  int least = std::numeric_limits<int>::max();
  for (int a = 0; a < graph.size; ++a) {
    int degree = 0;
    for (int b = 0; b < graph.size; ++b) degree += graph.links[at(a)][at(b)];
    least = std::min(least, degree);
  }
  return least;
}

using Weights = std::array<std::array<int, LinkGraph::kMax>, LinkGraph::kMax>;

/// The vertices that remain, each after those it is tied to most: the last two of that order.
std::pair<int, int> last_two(const Weights& weight, Mask left, int size) {
  std::array<int, LinkGraph::kMax> tie{};
  std::pair<int, int> last{0, 0};
  for (Mask open = left; open != 0;) {
    int next = std::countr_zero(open);
    for (Mask rest = open; rest != 0; rest &= rest - 1) {
      if (tie[at(std::countr_zero(rest))] > tie[at(next)]) next = std::countr_zero(rest);
    }
    open &= ~bit(next);
    last = {last.second, next};
    for (int b = 0; b < size; ++b) tie[at(b)] += weight[at(next)][at(b)];
  }
  return last;
}

/// The fewest links whose loss parts the graph (Stoer and Wagner).
int least_cut(const LinkGraph& graph) {
  Weights weight{};
  for (int a = 0; a < graph.size; ++a) {
    for (int b = 0; b < graph.size; ++b) weight[at(a)][at(b)] = graph.links[at(a)][at(b)];
  }
  int least = std::numeric_limits<int>::max();
  Mask left = bit(graph.size) - 1;
  while (std::popcount(left) > 1) {
    const auto [before, last] = last_two(weight, left, graph.size);
    int cut = 0;
    for (Mask rest = left & ~bit(last); rest != 0; rest &= rest - 1) {
      cut += weight[at(last)][at(std::countr_zero(rest))];
    }
    least = std::min(least, cut);
    for (int b = 0; b < graph.size; ++b) {
      if (b == before || b == last) continue;
      weight[at(before)][at(b)] += weight[at(last)][at(b)];
      weight[at(b)][at(before)] = weight[at(before)][at(b)];
    }
    left &= ~bit(last);
  }
  return least;
}

/// Lays rings one after the other and takes back what leads nowhere.
class Search {
 public:
  Search(const LinkGraph& graph, int steps) : graph_(graph), steps_left_(steps) {
    for (int a = 0; a < graph.size; ++a) {
      for (int b = 0; b < graph.size; ++b) {
        if (graph.links[at(a)][at(b)] > 0) near_[at(a)] |= bit(b);
      }
    }
  }

  /// Whether so many further rings can be laid. The two neighbours of vertex 0 name a ring: the
  /// lower one comes first, and rings come in its order, so that no set of rings is tried twice
  /// in another order.
  bool lay(int rings, int first_from) {
    if (rings == 0) return true;
    if (least_degree(graph_) < 2 * rings) return false;
    Mask firsts = near_[0] & ~(bit(first_from) - 1);
    for (; firsts != 0; firsts &= firsts - 1) {
      const int first = std::countr_zero(firsts);
      use(0, first, -1);
      const bool laid = go_on({rings, first, first, bit(0) | bit(first)});
      use(0, first, +1);
      if (laid) return true;
      if (steps_left_ <= 0) return false;
    }
    return false;
  }

 private:
  struct Path {
    int rings;  ///< to lay, with this one
    int first;  ///< the vertex after 0
    int end;
    Mask passed;
  };

  void use(int a, int b, int sign) {
    for (const auto& [x, y] : {std::pair{a, b}, std::pair{b, a}}) {
      auto& links = graph_.links[at(x)][at(y)];
      links = static_cast<std::uint8_t>(links + sign);
      near_[at(x)] = links > 0 ? near_[at(x)] | bit(y) : near_[at(x)] & ~bit(y);
    }
  }

  /// A vertex not passed yet has to be entered and left.
  [[nodiscard]] bool dead_end(const Path& path) const {
    const Mask open = (bit(graph_.size) - 1) & ~path.passed;
    const Mask reach = open | bit(path.end) | bit(0);
    for (Mask rest = open; rest != 0; rest &= rest - 1) {
      if (std::popcount(near_[at(std::countr_zero(rest))] & reach) < 2) return true;
    }
    return false;
  }

  bool go_on(const Path& path) {
    if (--steps_left_ <= 0) return false;
    if (std::popcount(path.passed) == graph_.size) {
      if (path.end < path.first || (near_[at(path.end)] & 1U) == 0) return false;
      use(path.end, 0, -1);
      const bool laid = lay(path.rings - 1, path.first);
      use(path.end, 0, +1);
      return laid;
    }
    if (dead_end(path)) return false;
    Mask open = near_[at(path.end)] & ~path.passed;
    while (open != 0) {
      int next = std::countr_zero(open);  // where most links are left: they run out last
      for (Mask rest = open; rest != 0; rest &= rest - 1) {
        const int other = std::countr_zero(rest);
        if (graph_.links[at(path.end)][at(other)] > graph_.links[at(path.end)][at(next)]) {
          next = other;
        }
      }
      open &= ~bit(next);
      use(path.end, next, -1);
      const bool laid = go_on({path.rings, path.first, next, path.passed | bit(next)});
      use(path.end, next, +1);
      if (laid) return true;
    }
    return false;
  }

  LinkGraph graph_;
  std::array<Mask, LinkGraph::kMax> near_{};
  int steps_left_;
};

/// What all numbers of links can be divided by.
int common_part(const LinkGraph& graph) {
  int part = 0;
  for (int a = 0; a < graph.size; ++a) {
    for (int b = 0; b < a; ++b) part = std::gcd(part, int{graph.links[at(a)][at(b)]});
  }
  return part;
}

}  // namespace

int count_link_rings(const LinkGraph& graph, int steps) {
  const int most = std::min(least_degree(graph), least_cut(graph)) / 2;
  const int part = common_part(graph);
  int known = 0;  // rings of the divided graph count that often in this one
  if (part > 1 && most > 0) {
    LinkGraph divided = graph;
    for (auto& row : divided.links) {
      for (auto& links : row) links = static_cast<std::uint8_t>(links / part);
    }
    known = part * count_link_rings(divided, steps);
  }
  int rings = most;
  while (rings > known && !Search(graph, steps).lay(rings, 1)) --rings;
  return rings;
}

}  // namespace gflow::placement

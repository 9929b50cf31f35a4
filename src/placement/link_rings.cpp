// SPDX-License-Identifier: Apache-2.0
#include "placement/link_rings.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/at.h"

namespace gflow::placement {
namespace {

using Mask = std::uint32_t;

constexpr Mask bit(int vertex) { return Mask{1} << static_cast<unsigned>(vertex); }

/// A ring through a set of vertices: of each of them the next one, 4 bits each.
using Ring = std::uint64_t;

int after(Ring ring, int vertex) {
  return static_cast<int>((ring >> (4 * static_cast<unsigned>(vertex))) & 15U);
}

Ring joined(Ring ring, int vertex, int next) {
  const unsigned shift = 4 * static_cast<unsigned>(vertex);
  return (ring & ~(Ring{15} << shift)) | (static_cast<Ring>(next) << shift);
}

/// The links within a set of vertices that no ring uses yet.
class Links {
 public:
  explicit Links(const LinkGraph& graph) : set_(bit(graph.size) - 1), links_(graph.links) {
    for (int a = 0; a < graph.size; ++a) {
      for (int b = 0; b < graph.size; ++b) {
        if (between(a, b) > 0) near_[at(a)] |= bit(b);
      }
    }
  }
  /// Those within a part of the set.
  Links(const Links& whole, Mask part) : set_(part), links_(whole.links_) {
    for (Mask rest = part; rest != 0; rest &= rest - 1) {
      const int a = std::countr_zero(rest);
      near_[at(a)] = whole.near_[at(a)] & part;
    }
  }

  [[nodiscard]] Mask set() const { return set_; }
  [[nodiscard]] int between(int a, int b) const { return links_[at(a)][at(b)]; }
  [[nodiscard]] Mask near(int a) const { return near_[at(a)]; }
  [[nodiscard]] int least_degree() const {
    int least = std::numeric_limits<int>::max();
    for (Mask rest = set_; rest != 0; rest &= rest - 1) {
      const int a = std::countr_zero(rest);
      int degree = 0;
      for (Mask others = near(a); others != 0; others &= others - 1) {
        degree += between(a, std::countr_zero(others));
      }
      least = std::min(least, degree);
    }
    return least;
  }

  void use(int a, int b) { change(a, b, -1); }
  void give_back(int a, int b) { change(a, b, +1); }
  void use(Ring ring) { change(ring, -1); }
  void give_back(Ring ring) { change(ring, +1); }

 private:
  void change(int a, int b, int by) {
    for (const auto& [x, y] : {std::pair{a, b}, std::pair{b, a}}) {
      auto& links = links_[at(x)][at(y)];
      links = static_cast<std::uint8_t>(links + by);
      near_[at(x)] = links > 0 ? near_[at(x)] | bit(y) : near_[at(x)] & ~bit(y);
    }
  }
  void change(Ring ring, int by) {
    for (Mask rest = set_; rest != 0; rest &= rest - 1) {
      const int a = std::countr_zero(rest);
      change(a, after(ring, a), by);
    }
  }

  Mask set_;
  decltype(LinkGraph::links) links_;
  std::array<Mask, LinkGraph::kMax> near_{};
};

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
int least_cut(const Links& links) {
  Weights weight{};
  for (Mask rest = links.set(); rest != 0; rest &= rest - 1) {
    const int a = std::countr_zero(rest);
    for (int b = 0; b < LinkGraph::kMax; ++b) {
      weight[at(a)][at(b)] = (links.near(a) & bit(b)) != 0 ? links.between(a, b) : 0;
    }
  }
  int least = std::numeric_limits<int>::max();
  Mask left = links.set();
  while (std::popcount(left) > 1) {
    const auto [before, last] = last_two(weight, left, LinkGraph::kMax);
    int cut = 0;
    for (Mask rest = left & ~bit(last); rest != 0; rest &= rest - 1) {
      cut += weight[at(last)][at(std::countr_zero(rest))];
    }
    least = std::min(least, cut);
    for (int b = 0; b < LinkGraph::kMax; ++b) {
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
  Search(Links& links, std::int64_t steps)
      : links_(links), start_(std::countr_zero(links.set())), steps_left_(steps) {}

  /// Whether so many rings can be laid with what is left. The two neighbours of the first vertex
  /// name a ring: the lower one comes first, and rings come in its order, so that no set of rings
  /// is tried twice in another order.
  bool lay(int rings) { return lay(rings, 0); }
  /// The rings of the last lay() that could be laid.
  [[nodiscard]] const std::vector<Ring>& laid() const { return laid_; }
  [[nodiscard]] std::int64_t steps_left() const { return steps_left_; }

 private:
  struct Path {
    int rings;  ///< to lay, with this one
    int first;  ///< the vertex after the start
    int end;
    Mask passed;
    Ring way;
  };

  bool lay(int rings, int first_from) {
    if (rings == 0) {
      laid_.clear();
      return true;
    }
    if (links_.least_degree() < 2 * rings) return false;
    Mask firsts = links_.near(start_) & ~(bit(first_from) - 1);
    for (; firsts != 0; firsts &= firsts - 1) {
      const int first = std::countr_zero(firsts);
      links_.use(start_, first);
      const bool done =
          go_on({rings, first, first, bit(start_) | bit(first), joined(0, start_, first)});
      links_.give_back(start_, first);
      if (done) return true;
      if (steps_left_ <= 0) return false;
    }
    return false;
  }

  /// A vertex not passed yet has to be entered and left.
  [[nodiscard]] bool dead_end(const Path& path) const {
    const Mask open = links_.set() & ~path.passed;
    const Mask reach = open | bit(path.end) | bit(start_);
    for (Mask rest = open; rest != 0; rest &= rest - 1) {
      if (std::popcount(links_.near(std::countr_zero(rest)) & reach) < 2) return true;
    }
    return false;
  }

  bool close(const Path& path) {
    if (path.end < path.first || (links_.near(path.end) & bit(start_)) == 0) return false;
    links_.use(path.end, start_);
    const bool done = lay(path.rings - 1, path.first);
    links_.give_back(path.end, start_);
    if (done) laid_.push_back(joined(path.way, path.end, start_));
    return done;
  }

  bool go_on(const Path& path) {
    if (--steps_left_ <= 0) return false;
    if (path.passed == links_.set()) return close(path);
    if (dead_end(path)) return false;
    Mask open = links_.near(path.end) & ~path.passed;
    while (open != 0) {
      int next = std::countr_zero(open);  // where most links are left: they run out last
      for (Mask rest = open & (open - 1); rest != 0; rest &= rest - 1) {
        const int other = std::countr_zero(rest);
        if (links_.between(path.end, other) > links_.between(path.end, next)) next = other;
      }
      open &= ~bit(next);
      links_.use(path.end, next);
      const bool done = go_on({path.rings,
                               path.first,
                               next,
                               path.passed | bit(next),
                               joined(path.way, path.end, next)});
      links_.give_back(path.end, next);
      if (done) return true;
      if (steps_left_ <= 0) return false;
    }
    return false;
  }

  Links& links_;
  int start_;
  std::vector<Ring> laid_;
  std::int64_t steps_left_;
};

/// Counts the rings of many sets, each from those of its parts.
class Growth {
 public:
  Growth(const LinkGraph& graph, std::span<const Mask> sets, std::int64_t steps)
      : whole_(graph),
        sets_(sets),
        steps_left_(steps),
        rings_(std::size_t{1} << static_cast<unsigned>(graph.size)) {
    const std::int64_t kept = steps / 8;  // for those that are not known to be all
    steps_left_ = steps - kept;
    share_out([this](Mask set) { grow(set); });
    steps_left_ += kept;
    share_out([this](Mask set) { search(set); });
  }

  [[nodiscard]] int rings(Mask set) const { return static_cast<int>(rings_[set].size()); }
  [[nodiscard]] std::int64_t steps_left() const { return steps_left_; }

 private:
  /// Calls for every set; each may take as many steps as those before it left of their shares.
  template <typename Call>
  void share_out(const Call& call) {
    const std::int64_t all = steps_left_;
    for (std::size_t one = 0; one < sets_.size(); ++one) {
      const auto later = static_cast<std::int64_t>(sets_.size() - one - 1);
      kept_ = all * later / static_cast<std::int64_t>(sets_.size());
      call(sets_[one]);
    }
    kept_ = 0;
  }
  [[nodiscard]] std::int64_t allowed() const { return steps_left_ - kept_; }

  /// What a set has from its part with most rings, and from the others while it may have more.
  void grow(Mask set) {
    const Links all(whole_, set);
    const int most = all.least_degree() / 2;
    std::vector<Ring>& best = rings_[set];
    Mask untried = set;  // the vertices without which there is a part
    while (std::ssize(best) < most) {
      const Mask vertex = of_most_rings(set, untried);
      const bool is_first = untried == set;
      const std::vector<Ring>& rings = rings_[set & ~vertex];
      if (vertex == 0 || (!is_first && (rings.empty() || allowed() < std::ssize(rings)))) break;
      Links left = all;
      std::vector<Ring> laid = put_into(rings, std::countr_zero(vertex), most, left);
      if (!is_first) steps_left_ -= std::ssize(rings);
      if (std::ssize(laid) < most) add(laid, most, left);
      if (laid.size() > best.size()) best = std::move(laid);
      untried &= ~vertex;
    }
  }

  /// The vertex without which the set has most rings, of those to choose from; 0 if there is none.
  [[nodiscard]] Mask of_most_rings(Mask set, Mask from) const {
    Mask best = from & (0 - from);
    for (Mask rest = from & ~best; rest != 0; rest &= rest - 1) {
      const Mask vertex = rest & (0 - rest);
      if (rings(set & ~vertex) > rings(set & ~best)) best = vertex;
    }
    return best;
  }

  /// The rings of a part, each led through one vertex more, between two where it has most links
  /// left; one that cannot be is left out. `left` is what is left if there are less than `most`.
  static std::vector<Ring> put_into(const std::vector<Ring>& rings,
                                    int vertex,
                                    int most,
                                    Links& left) {
    std::vector<Ring> laid;
    for (const Ring ring : rings) {
      if (std::ssize(laid) == most) break;
      int before = -1;
      int best = 0;
      const Mask near = left.near(vertex);
      for (Mask rest = near; rest != 0; rest &= rest - 1) {
        const int a = std::countr_zero(rest);
        const int b = after(ring, a);
        const int links = left.between(vertex, a) + left.between(vertex, b);
        if ((near & bit(b)) != 0 && links > best) {
          before = a;
          best = links;
        }
      }
      if (before < 0) continue;
      const int next = after(ring, before);
      left.use(vertex, before);
      left.use(vertex, next);
      laid.push_back(joined(joined(ring, before, vertex), vertex, next));
    }
    if (std::ssize(laid) == most) return laid;
    for (const Ring ring : laid) {
      for (Mask rest = left.set() & ~bit(vertex); rest != 0; rest &= rest - 1) {
        const int a = std::countr_zero(rest);
        if (after(ring, a) != vertex) left.use(a, after(ring, a));
      }
    }
    return laid;
  }

  /// Further rings from what is left, and from what is left with one that is taken back.
  void add(std::vector<Ring>& laid, int most, Links& left) {
    constexpr std::int64_t kForOne = 60;
    constexpr std::int64_t kForTwo = 300;
    while (std::ssize(laid) < most && relay({}, laid, left, kForOne)) {
    }
    for (std::size_t one = 0; one < laid.size() && std::ssize(laid) < most && allowed() > 0;) {
      one = relay(one, laid, left, kForTwo) ? 0 : one + 1;
    }
  }

  /// One ring more, with this one taken back if one is named. False if none was found.
  bool relay(std::optional<std::size_t> again,
             std::vector<Ring>& laid,
             Links& left,
             std::int64_t steps) {
    if (allowed() <= 0) return false;
    steps = std::min(steps, allowed());
    if (again) left.give_back(laid[*again]);
    Search search(left, steps);
    const bool found = search.lay(again ? 2 : 1);
    steps_left_ -= steps - search.steps_left();
    if (found && again) laid.erase(laid.begin() + static_cast<std::ptrdiff_t>(*again));
    if (!found && again) left.use(laid[*again]);
    if (!found) return false;
    for (const Ring ring : search.laid()) {
      left.use(ring);
      laid.push_back(ring);
    }
    return true;
  }

  /// Tries whether there are more than were found, from all there can be downward.
  void search(Mask set) {
    constexpr std::int64_t kForAll = 200'000;
    if (allowed() <= 0) return;
    Links left(whole_, set);
    int most = left.least_degree() / 2;
    if (rings(set) >= most) return;
    for (most = std::min(most, least_cut(left) / 2); most > rings(set) && allowed() > 0; --most) {
      const std::int64_t steps = std::min(allowed(), kForAll);
      Search search(left, steps);
      const bool found = search.lay(most);
      steps_left_ -= steps - search.steps_left();
      if (found) rings_[set] = search.laid();
    }
  }

  Links whole_;
  std::span<const Mask> sets_;
  std::int64_t steps_left_;
  std::int64_t kept_ = 0;  ///< of them, for sets to come
  std::vector<std::vector<Ring>> rings_;
};

/// The fewest links of two vertices that have any; 0 where none have.
int fewest_links(const LinkGraph& graph) {
  int fewest = 0;
  for (int a = 0; a < graph.size; ++a) {
    for (int b = 0; b < a; ++b) {
      const int links = graph.links[at(a)][at(b)];
      if (links > 0 && (fewest == 0 || links < fewest)) fewest = links;
    }
  }
  return fewest;
}

int largest_degree(const LinkGraph& graph) {
  int largest = 0;
  for (int a = 0; a < graph.size; ++a) {
    largest =
        std::max(largest, std::reduce(graph.links[at(a)].begin(), graph.links[at(a)].end(), 0));
  }
  return largest;
}

/// Counts rings of so many links each, for what is more than was known.
void count_by(
    int part, LinkGraph graph, std::span<const Mask> sets, std::int64_t steps, RingCounts& counts) {
  for (auto& row : graph.links) {
    for (auto& links : row) links = static_cast<std::uint8_t>(links / part);
  }
  const Growth grown(graph, sets, steps);
  counts.steps += steps - grown.steps_left();
  for (std::size_t one = 0; one < sets.size(); ++one) {
    counts.rings[one] = std::max(counts.rings[one], part * grown.rings(sets[one]));
  }
}

}  // namespace

RingCounts count_link_rings(const LinkGraph& graph,
                            std::span<const std::uint32_t> sets,
                            std::int64_t steps) {
  constexpr int kMostKept = 1 << 21;  // rings, of all sets together
  RingCounts counts{.rings = std::vector<int>(sets.size())};
  const int most_links = 2 * std::max(kMostKept >> graph.size, 1);  // of a vertex
  const int degree = largest_degree(graph);
  // Where all have several links, so many rings lie beside each other.
  const int fewest = fewest_links(graph);
  if (fewest > 1 && degree / fewest <= most_links) count_by(fewest, graph, sets, steps, counts);
  // Where there are more links than rings can be kept of, several of them go as one.
  const int part = std::max((degree + most_links - 1) / most_links, 1);
  count_by(part, graph, sets, steps - counts.steps, counts);
  return counts;
}

}  // namespace gflow::placement

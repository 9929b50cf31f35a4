// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "engine/line.h"
#include "placement/ledger.h"

/// Inside of the engine: what a pass over the queue goes by. Not for other modules.
namespace gflow::engine {

/// The first job of a line: what its place in the queue hangs on.
struct Front {
  QueueKey first;
  std::chrono::seconds allowance{0};              ///< of the line
  const std::chrono::seconds* penalty = nullptr;  ///< how far its owner stands back
  Line* line = nullptr;
  std::uint32_t shape = 0;  ///< number in Fronts
  bool stoppable = false;
};

/// The first jobs of all lines in one array, and for which shapes there was no room when last
/// looked for. Room comes only where something was given back or a node changed, so that a pass has
/// to look for it only for the shapes that are not full.
///
/// Usage: add(), remove() and put() as lines come, go and have another first job; node_changed()
/// for whatever changes a node but what jobs hold of it; find_room() before a pass, set_full() in
/// it, pass_ended() after it.
class Fronts {
 public:
  using ShapeNumber = std::uint32_t;

  /// A line with its first job; `sibling` is another one of the same shape, null if there is none.
  void add(Line& line,
           const Shape& shape,
           const Line* sibling,
           const std::chrono::seconds* penalty);
  void remove(const Line& line);
  /// The line has another first job.
  void put(const Line& line) { all_[line.front].first = line.jobs.front(); }
  [[nodiscard]] const std::vector<Front>& all() const { return all_; }
  /// The same, for new allowances.
  [[nodiscard]] std::vector<Front>& all() { return all_; }
  [[nodiscard]] const Front& of(const Line& line) const { return all_[line.front]; }

  [[nodiscard]] const Shape& shape(ShapeNumber number) const { return shapes_[number].shape; }
  [[nodiscard]] bool is_full(ShapeNumber number) const { return shapes_[number].full; }
  void set_full(ShapeNumber number);
  /// The same of all shapes of a gang, and the contrary: its jobs start together.
  void set_gang_full(GangNumber gang);
  void open_gang(GangNumber gang);
  /// There may be room for any.
  void open_all();
  /// How many shapes there may be room for.
  [[nodiscard]] std::size_t open() const { return open_; }

  void node_changed(placement::NodeIndex node) { changed_.insert(node); }
  /// Opens the shapes that fit where more is left than after the last pass.
  void find_room(const placement::Ledger& ledger);
  void pass_ended(const placement::Ledger& ledger);

 private:
  struct Shaped {
    Shape shape;
    std::uint32_t lines = 0;  ///< 0: the number is free
    bool full = false;
  };
  void forget(GangNumber gang, ShapeNumber number);
  [[nodiscard]] std::vector<placement::NodeIndex> nodes_with_more(
      const placement::Ledger& ledger) const;

  std::vector<Front> all_;
  std::vector<Shaped> shapes_;
  std::vector<ShapeNumber> vacant_;
  std::map<GangNumber, std::vector<ShapeNumber>> gangs_;  ///< those of each that has some
  std::size_t open_ = 0;
  /// What was left of each node after the last pass, and the ledger's version then.
  std::vector<placement::NodeState> left_;
  std::uint64_t version_ = 0;
  std::set<placement::NodeIndex> changed_;
};

}  // namespace gflow::engine

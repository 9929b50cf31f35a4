// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "engine/index.h"
#include "placement/domains.h"

/// Inside of the engine: how near each other jobs of a gang go. Not for other modules.
namespace gflow::engine {

/// Nodes, ascending; null: all there are.
using Area = const std::vector<placement::NodeIndex>*;

/// One way to place jobs that start together.
struct Ground {
  /// So many of them go among these nodes.
  struct Part {
    Area nodes = nullptr;
    std::size_t jobs = 0;
  };
  Area nodes = nullptr;       ///< nobody goes elsewhere
  std::size_t level = 0;      ///< of the domain that they are
  std::vector<Part> parts{};  ///< one after the other; who has no room there goes anywhere in it
};

/// Where the jobs of a gang that start together are tried, one ground after the other.
///
/// Of a gang that has to be in one domain each domain of that level is a ground in which so many of
/// its jobs have room, as they are counted alone; first those that have room for all that wait, of
/// these the one with least room left, so that large ones stay whole, then the one with the fewest
/// GPUs free, then the first. Ahead of them come domains of narrower levels, down to the one that
/// is preferred, that have room for all. Where nothing is required the last ground is everywhere.
///
/// Within a ground the jobs go to as few domains of the next level as there can be: those with most
/// room, and the last to the one with least room that has enough; and so on down to the narrowest.
///
/// Rooms are counted, not searched: what places are kept for others, and what jobs of different
/// requests leave each other, is found out when they are placed.
class Gathering {
 public:
  /// REQUIRES: they start together, and the gang has levels. Good as long as nobody is placed.
  Gathering(Index& index, const Gang& gang);

  /// The next one to try; nothing when all were.
  [[nodiscard]] std::optional<Ground> next();
  /// Of the gang's jobs that wait, how many the domain with most room may have room for; all of
  /// them where they may be anywhere.
  [[nodiscard]] std::size_t most_room() const { return most_room_; }

 private:
  struct Target {
    placement::DomainIndex domain = placement::kNoDomain;  ///< none: everywhere
    std::size_t level = 0;
  };
  void count_rooms();
  void count_demand(placement::DemandIndex demand, std::size_t jobs, bool is_only);
  void add_targets(std::size_t level, std::size_t least, const Gang& gang);
  [[nodiscard]] bool is_smaller(placement::DomainIndex a, placement::DomainIndex b) const;
  [[nodiscard]] std::size_t divide(std::span<const placement::DomainIndex> among,
                                   std::size_t jobs,
                                   std::vector<Ground::Part>& parts) const;

  /// What a domain has for them.
  struct Room {
    std::size_t jobs = 0;    ///< of those that wait, no more than there are
    std::size_t in_all = 0;  ///< the same, however many there are
    std::int64_t parts = 0;  ///< of GPUs that are free
  };
  [[nodiscard]] const Room& room(placement::DomainIndex domain) const {
    return rooms_[static_cast<std::size_t>(domain)];
  }

  Index& index_;
  const placement::Domains& domains_;
  std::size_t waiting_ = 0;
  std::map<placement::DemandIndex, std::size_t> demands_;
  std::vector<Room> rooms_;  ///< by domain
  std::vector<Target> targets_;
  std::size_t next_ = 0;
  std::size_t most_room_ = 0;
};

/// The domain of this level in which most of the gang's jobs run that are not told to stop; none if
/// none runs in one. REQUIRES: the gang has levels.
[[nodiscard]] placement::DomainIndex home_of(Index& index, const Gang& gang, std::size_t level);

/// Where one more job of a gang may go, of which others run: for each level from the narrowest on,
/// down to the one that is required, the nodes of all domains in which they do. Of the one that is
/// required only that of home_of(); all of the level where there is none.
[[nodiscard]] std::vector<std::vector<placement::NodeIndex>> areas_near(Index& index,
                                                                        const Gang& gang);

/// The areas of which one has to take all that wait of the gang, or this job of it: those of the
/// level that is required and were not refused; everywhere where none is.
[[nodiscard]] std::vector<Area> areas_required(Index& index, const Gang* gang);

/// How many nodes on which nothing is held would be used.
[[nodiscard]] std::size_t idle_nodes(const Index& index, std::set<placement::NodeIndex> nodes);

}  // namespace gflow::engine

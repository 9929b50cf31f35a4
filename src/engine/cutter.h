// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/candidates.h"
#include "engine/cutting.h"
#include "engine/index.h"

/// Inside of the engine: for whom a slice of MIG is made, and where. Not for other modules.
namespace gflow::engine {

/// Looks, for one job after another in the order of the queue, for where a slice could be made.
class Cutter {
 public:
  explicit Cutter(Index& index) : index_(index) {}

  enum class Found {
    Nothing,   ///< there is no room, or it is being made
    Changed,   ///< somebody is to make or remove a slice
    MayStart,  ///< a slice that was kept for one behind it is kept for this one
  };
  Found look_for(const Candidate& first);
  [[nodiscard]] bool has_kept() const { return has_kept_; }

 private:
  /// A job for which no slice is free.
  struct Waiting {
    const Job& job;
    QueueKey place;
    placement::DemandIndex demand = 0;
    [[nodiscard]] const JobSpec& spec() const { return job.spec; }
  };
  [[nodiscard]] bool has_all_else(const Waiting& waits, placement::NodeIndex node) const;
  [[nodiscard]] int free_for(const Waiting& waits, placement::NodeIndex node) const;
  [[nodiscard]] int coming_for(const Waiting& waits, placement::NodeIndex node) const;
  [[nodiscard]] bool is_busy(placement::NodeIndex node) const;
  [[nodiscard]] bool is_stuck(placement::NodeIndex node, const MigGpu& gpu) const;
  [[nodiscard]] bool may_take(const Waiting& waits, const MadeSlice& slice) const;
  bool take_kept(const Waiting& waits, placement::NodeIndex node, int lacks);
  Found cut_on(const Waiting& waits, placement::NodeIndex node, int lacks);
  void make(const Waiting& waits,
            const MigGpu& gpu,
            const placement::Cut& cut,
            placement::NodeIndex node);
  void remove(const MadeSlice& slice);
  /// Memory slices of a GPU, and when they are free.
  struct Place {
    MonoTime free_at{};
    const MigGpu* gpu = nullptr;
    std::string profile;
    MigSlots slots = 0;
    std::vector<SliceRecord*> there{};
  };
  struct Places {
    placement::NodeIndex node = 0;
    std::vector<Place> all{};  ///< the last one is free last
  };
  [[nodiscard]] std::optional<Place> place_at(const Waiting& waits,
                                              placement::NodeIndex node,
                                              const MigGpu& gpu,
                                              MigSlots slots) const;
  [[nodiscard]] std::vector<Place> places_on(const Waiting& waits, placement::NodeIndex node);
  [[nodiscard]] bool could_have_all_else(const Waiting& waits, placement::NodeIndex node) const;
  [[nodiscard]] std::optional<Places> first_places_on(const Waiting& waits,
                                                      placement::NodeIndex node);
  [[nodiscard]] std::optional<Places> first_places(const Waiting& waits);
  [[nodiscard]] int lacks_places(const Waiting& waits, placement::NodeIndex node) const;
  void keep_places(const Waiting& waits);
  [[nodiscard]] std::vector<placement::Cuttable> cuttable(const Waiting& waits,
                                                          placement::NodeIndex node);
  [[nodiscard]] SliceRecord* record_of(placement::NodeIndex node,
                                       const MigGpu& gpu,
                                       int start) const;
  [[nodiscard]] std::vector<std::string> profiles(const Waiting& waits, placement::NodeIndex node);
  [[nodiscard]] bool was_refused(const Waiting& waits,
                                 placement::NodeIndex node,
                                 const MigGpu& gpu);

  /// What of a demand decides which slices it would have.
  struct Wanted {
    std::string vendor;
    std::vector<std::string> models;
    Memory memory;
    friend auto operator<=>(const Wanted&, const Wanted&) = default;
  };
  using WantedNumber = std::size_t;
  [[nodiscard]] WantedNumber number_of(const Waiting& waits);
  [[nodiscard]] const std::vector<const MigGpu*>& gpus_of(placement::NodeIndex node);
  [[nodiscard]] const std::vector<std::string>& profiles_of(const Waiting& waits,
                                                            const MigGpu& gpu);
  [[nodiscard]] const std::vector<placement::SliceWish>& wishes();

  Index& index_;
  std::map<std::pair<placement::NodeIndex, std::string>, MigSlots> places_;  ///< that are kept
  bool has_kept_ = false;  ///< for whom a slice is kept changed
  // What many that wait have in common, found once in a pass.
  std::map<Wanted, WantedNumber> wanted_;
  std::map<placement::NodeIndex, std::vector<const MigGpu*>> gpus_;
  std::map<std::pair<WantedNumber, const MigGpu*>, std::vector<std::string>> profiles_;
  std::optional<std::vector<placement::SliceWish>> wishes_;
  /// The fewest for which there was no room: for those behind there is not more.
  std::map<std::pair<WantedNumber, placement::NodeIndex>, int> no_room_;
};

}  // namespace gflow::engine

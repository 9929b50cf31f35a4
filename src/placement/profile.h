// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "placement/demand.h"

namespace gflow::placement {

/// One kind of job and how many of them there were.
struct DemandClass {
  Demand demand;  ///< for one node, without host memory: scores do not look at it
  std::int64_t count = 0;

  friend bool operator==(const DemandClass&, const DemandClass&) = default;
};

/// What is expected to be asked for: kinds of jobs by how popular they are.
struct Profile {
  std::vector<DemandClass> classes;  ///< most frequent first
  std::size_t typical = 0;           ///< so many of the first cover nearly all jobs (typical_of)

  [[nodiscard]] std::span<const DemandClass> typical_classes() const {
    return std::span(classes).first(typical);
  }
  /// Jobs in the typical classes.
  [[nodiscard]] std::int64_t typical_count() const;

  friend bool operator==(const Profile&, const Profile&) = default;
};

/// The profile of these demands: counted by scored_part(), sorted by count, then by CPUs, share,
/// number of devices and models, all descending. Typical are as many of the first as cover
/// `percent` of the jobs: the cut of Weng et al., USENIX ATC'23, which is 95.
[[nodiscard]] Profile profile_of(std::span<const DemandClass> demands, int percent = 95);

/// Counts demands as they are submitted. Old ones fade: at 2 * kMemory jobs all counts are halved.
class DemandCounter {
 public:
  static constexpr std::int64_t kMemory = 10'000;

  void add(const Demand& demand, std::int64_t count = 1);
  /// How many have to be added until it is worth asking for profile() again: it is after every
  /// doubling, later after every 1,024 jobs.
  [[nodiscard]] std::int64_t until_due() const { return std::max<std::int64_t>(due_ - added_, 0); }
  [[nodiscard]] Profile profile();

 private:
  /// What is known counts half.
  void fade();

  std::map<Demand, std::int64_t> counts_;
  std::int64_t total_ = 0;
  std::int64_t added_ = 0;
  std::int64_t due_ = 1;
};

}  // namespace gflow::placement

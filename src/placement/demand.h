// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"

namespace gflow::placement {

/// What a job asks of each node it runs on: all that placing looks at. One that takes no devices
/// but names a vendor or models wants to see such a device: its node has to have one.
struct Demand {
  int gpus = 0;
  Share share = Share::whole();  ///< of each device
  Memory gpu_memory{};           ///< of each device; 0: not declared
  GpuMode mode = GpuMode::Whole;
  std::string vendor;               ///< lower case; "" is any
  std::vector<std::string> models;  ///< short names of the catalogue, sorted; empty is any
  std::int64_t milli_cpus = 0;
  Memory memory{};  ///< of the host
  int nodes = 1;
  std::vector<Label> selector;  ///< sorted
  bool borrows = false;         ///< it may have a device that another job lends while it is idle

  friend auto operator<=>(const Demand&, const Demand&) = default;

  [[nodiscard]] bool is_whole() const { return gpus > 0 && mode == GpuMode::Whole; }
  [[nodiscard]] bool is_part_of_one() const { return gpus == 1 && mode == GpuMode::Fraction; }
  [[nodiscard]] bool only_sees() const { return gpus == 0 && (!vendor.empty() || !models.empty()); }
};
[[nodiscard]] Demand demand_of(const Request& request);
/// Of a job: one that is queued again when it has to make room gives back what it borrows, unless
/// it may take longer for that than kLongestGrace.
constexpr std::chrono::seconds kLongestGrace{300};
[[nodiscard]] Demand demand_of(const JobSpec& spec);

/// Whether a device of this vendor and model (as the catalogue names it, with or without its size)
/// is what the demand wants. A MIG device is only what names its profile and wants it whole.
[[nodiscard]] bool wants(const Demand& demand, std::string_view vendor, std::string_view model);
/// What scores look at: the part for one node, host memory left out.
[[nodiscard]] Demand scored_part(Demand demand);

}  // namespace gflow::placement

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/report.h"
#include "lab/wired_machine.h"

/// How well the GPUs a job gets within a machine suit each other, by who chooses them.
///
/// Many jobs share one machine: there is always one waiting, first come first served, its size
/// drawn from a mix, its run time from an exponential distribution. Of every job with two or more
/// GPUs: the ring bandwidth of its set as a share of the best of that size on the idle machine.
namespace gflow::lab {

enum class SizeMix {
  Even,  ///< A: 1 to 5 GPUs, each as often (MAPA, SC'21)
  Lab,   ///< B: 1: 50 %, 2: 25 %, 4: 20 %, 8: 5 %
};
[[nodiscard]] std::string_view mix_name(SizeMix mix);  ///< "A", "B"

enum class SetPolicy { LowestIndex, Random, SumOfPairs, GpuAllocator, Gflow };
inline constexpr std::array kSetPolicies = {SetPolicy::LowestIndex,
                                            SetPolicy::Random,
                                            SetPolicy::SumOfPairs,
                                            SetPolicy::GpuAllocator,
                                            SetPolicy::Gflow};
[[nodiscard]] std::string_view set_policy_name(SetPolicy policy);  ///< "go-gpuallocator"

struct SharingOptions {
  int jobs = 20'000;
  int seeds = 5;
  std::uint64_t first_seed = 42;
  /// go-gpuallocator is left out above: a choice takes seconds.
  int max_gpus_of_allocator = 8;
};

/// Mean over jobs and seeds; empty where a policy was left out.
struct SharingRow {
  std::string machine;
  SizeMix mix = SizeMix::Even;
  std::array<std::optional<double>, kSetPolicies.size()> shares;  ///< in the order of kSetPolicies
};
/// Both mixes of each machine of 2 to 16 GPUs, in their order; larger and smaller are left out.
[[nodiscard]] std::vector<SharingRow> share_machines(const std::vector<WiredMachine>& machines,
                                                     const SharingOptions& options,
                                                     const Progress& progress);

/// The rows as a table.
[[nodiscard]] Report topology_report(const std::vector<SharingRow>& rows,
                                     const SharingOptions& options);

}  // namespace gflow::lab

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "placement/ledger.h"
#include "placement/profile.h"

/// The trace "openb" of Alibaba's GPU cluster (2023), and what Weng et al. ("Beware of
/// Fragmentation", USENIX ATC'23) published about placing it.
namespace gflow::lab {

/// The 17 variants of the trace for which results were published.
inline constexpr std::array<std::string_view, 17> kOpenbTraces = {"default",
                                                                  "cpu050",
                                                                  "cpu100",
                                                                  "cpu200",
                                                                  "cpu250",
                                                                  "gpushare40",
                                                                  "gpushare60",
                                                                  "gpushare80",
                                                                  "gpushare100",
                                                                  "gpuspec10",
                                                                  "gpuspec20",
                                                                  "gpuspec25",
                                                                  "gpuspec33",
                                                                  "multigpu20",
                                                                  "multigpu30",
                                                                  "multigpu40",
                                                                  "multigpu50"};

/// Machines, and the tasks that are sent to them, by row of the file.
struct Openb {
  std::vector<placement::Node> nodes;
  std::vector<placement::Demand> tasks;

  [[nodiscard]] placement::Profile profile() const;
  [[nodiscard]] std::int64_t capacity() const;  ///< of all devices, in parts
};

/// Compute a demand asks for in all, in parts.
[[nodiscard]] std::int64_t parts_of(const placement::Demand& demand);

/// Reads the two tables. Errors: Usage with the line.
[[nodiscard]] Result<std::vector<placement::Node>> read_openb_nodes(std::string_view csv);
[[nodiscard]] Result<std::vector<placement::Demand>> read_openb_tasks(std::string_view csv);
/// The machines, and the tasks of a variant, from DIRECTORY/openb.
[[nodiscard]] Result<Openb> load_openb(const std::string& directory, std::string_view trace);

/// In which order tasks arrive, and in which order nodes are taken among equals.
struct ArrivalOrder {
  std::vector<std::int32_t> tasks;  ///< rows
  std::vector<std::int32_t> ranks;  ///< by row of the node: its place in the order
};
/// The orders of the published runs, seeds 42 to 46: from
/// DIRECTORY/openb/sequences_seed42-46.tar.gz. Errors: NotFound for others.
[[nodiscard]] Result<ArrivalOrder> load_arrival_order(const std::string& directory,
                                                      std::string_view trace,
                                                      int seed);
[[nodiscard]] Result<ArrivalOrder> read_arrival_order(std::string_view text);
/// An order drawn as those were: all tasks shuffled, then tasks drawn with replacement until the
/// next one would pass 1.3 times the capacity.
[[nodiscard]] ArrivalOrder draw_arrival_order(const Openb& openb, std::uint64_t seed);

constexpr int kMaxArrivedPercent = 130;
/// GPU allocation in percent, by how many percent of the capacity have arrived.
using AllocationCurve = std::array<double, kMaxArrivedPercent + 1>;

/// One run of the authors.
struct PublishedRun {
  std::string trace;   ///< "default"
  std::string policy;  ///< as gflow names it: "gpu-packing"
  int seed = 0;
  AllocationCurve curve{};
};
/// All 1,020 of DIRECTORY/openb/published_allo_discrete.csv.gz.
[[nodiscard]] Result<std::vector<PublishedRun>> load_published(const std::string& directory);
[[nodiscard]] Result<std::vector<PublishedRun>> read_published(std::string_view csv);

/// What those policies reach when tasks also leave (run_churn): allocation in percent, mean of
/// three seeds, measured with an independent program.
struct ChurnBaseline {
  std::string trace;
  std::string policy;
  double allocation = 0;
};
/// DIRECTORY/openb/churn_baselines.csv.
[[nodiscard]] Result<std::vector<ChurnBaseline>> load_churn_baselines(const std::string& directory);

}  // namespace gflow::lab

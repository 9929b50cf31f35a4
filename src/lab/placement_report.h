// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/churn.h"
#include "lab/report.h"

/// The placement experiments as tables and pictures: several traces, policies and seeds.
namespace gflow::lab {

struct PlacementStudy {
  std::string data;                   ///< the directory with openb/
  std::vector<std::string> traces;    ///< "default", "gpushare40", ...
  std::vector<std::string> policies;  ///< by name
  std::vector<std::uint64_t> seeds;
};
constexpr std::uint64_t kFirstOpenbSeed = 42;  ///< 42 to 46 are the orders of the published runs

/// Policies by name, in this order. Errors: Usage with the nearest name and those there are.
[[nodiscard]] Result<std::vector<const placement::PolicyEntry*>> policies_called(
    const std::vector<std::string>& names);

/// Tasks arrive and never leave: GPU allocation when 130 % have arrived, beside the published one.
/// Seeds 42 to 46 take the published orders of the 17 published traces, others are drawn alike.
[[nodiscard]] Result<Report> inflation_report(const PlacementStudy& study,
                                              const Progress& progress);
/// Tasks come and go: GPU allocation, mean over time.
[[nodiscard]] Result<Report> churn_report(const PlacementStudy& study,
                                          const ChurnProtocol& protocol,
                                          const Progress& progress);

}  // namespace gflow::lab

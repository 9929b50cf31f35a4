// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "placement/policy.h"

/// The makers of the table in table.cpp, one per file.
namespace gflow::placement {

[[nodiscard]] std::unique_ptr<Policy> make_balanced(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> make_best_fit(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> make_dot_prod(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> make_fgd(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> make_gflow(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> make_gpu_clustering(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> make_gpu_packing(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> make_pack(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> make_random(const PolicyOptions& options);
[[nodiscard]] std::unique_ptr<Policy> make_spread(const PolicyOptions& options);

}  // namespace gflow::placement

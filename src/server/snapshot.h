// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "api/snapshot.h"
#include "engine/state.h"

namespace gflow::server {

/// All that decisions depend on, with so many of the newest ended jobs and those that others wait
/// for: what GET /api/v1/snapshot answers.
[[nodiscard]] api::Snapshot snapshot_of(const engine::State& state, Now now, std::size_t history);

}  // namespace gflow::server

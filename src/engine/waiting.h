// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "engine/index.h"

/// Inside of the engine: the jobs that wait, for who looks ahead. Not for other modules.
namespace gflow::engine {

/// A job that may start as soon as there is room.
struct Waiting {
  JobId job;
  QueueKey key;  ///< its place among those of its kind
  Shape shape;
  Line* line = nullptr;     ///< where it stands; null of a job that nobody submitted yet
  MonoTime keeps_from{};    ///< from then on its place is kept also against its priority
  bool needs_more = false;  ///< than room: a gang, or a limit of jobs that hold nothing
};

/// The first of those jobs, at most so many, in the order in which they are considered.
[[nodiscard]] std::vector<Waiting> first_waiting(Index& index, std::size_t most);

/// When the place of a job that waits and has this key is kept also against its priority.
[[nodiscard]] MonoTime keeps_from(const Index& index, const QueueKey& key);

}  // namespace gflow::engine

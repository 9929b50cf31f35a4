// SPDX-License-Identifier: Apache-2.0
#include "core/stop.h"

namespace gflow {
namespace {

const Stop* given(const std::optional<Stop>& stop) { return stop ? &*stop : nullptr; }

}  // namespace

const Stop* stop_of(const Job& job) {
  if (const auto* starting = std::get_if<Starting>(&job.state)) return given(starting->stop);
  const auto* running = std::get_if<Running>(&job.state);
  return running == nullptr ? nullptr : given(running->stop);
}

}  // namespace gflow

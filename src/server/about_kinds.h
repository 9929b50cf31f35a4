// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/operation.h"

/// What routes of one kind have in common; each is told the rest of it.
namespace gflow::server::about {

/// Shows what the route names, if it is there, the same to all who ask at once.
[[nodiscard]] constexpr api::Operation shows_one(api::Operation told) {
  told.errors = {404};
  told.is_shared = true;
  return told;
}

/// Acts on the jobs that its body lists.
[[nodiscard]] constexpr api::Operation acts_on_jobs(api::Operation told) {
  told.body = "Jobs";
  told.answers = {{{200, "JobIds"}}};
  told.errors = {404, 409};
  return told;
}

/// Acts on the job that the route names, or the allocation, if it still is as it was seen.
[[nodiscard]] constexpr api::Operation acts_on_one(api::Operation told) {
  told.takes_match = true;
  told.answers = {{{200, "JobIds"}}};
  told.errors = {404, 409, 412};
  return told;
}

/// The same with a body, which may not fit.
[[nodiscard]] constexpr api::Operation moves_one(api::Operation told) {
  told = acts_on_one(told);
  told.errors = {404, 409, 412, 422};
  return told;
}

/// Where an allocation is shown.
inline constexpr std::string_view kAllocationPattern = "/api/v1/gpu/allocations/{id}";

/// Is answered once what it ends has ended; 202 where that takes longer than an answer may.
[[nodiscard]] constexpr api::Operation ends_later(api::Operation told) {
  told.answers[1] = told.answers[0];
  told.answers[1].status = 202;
  told.answers[1].location = kAllocationPattern;
  return told;
}

}  // namespace gflow::server::about

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "server/exchange.h"

namespace gflow::server {

/// The version of a job, or of the allocation it is, as this caller sees it: another one once what
/// was asked for or where it stands is changed, the same while only time passes.
[[nodiscard]] std::string version_of_job(const Principal& caller,
                                         const Service& service,
                                         const Job& job);

/// Errors: WrongState if the request has If-Match and one of the jobs is not as that says. To be
/// asked right before the change: nothing else is decided in between.
[[nodiscard]] Result<void> check_if_match(const Exchange& exchange, std::span<const JobId> jobs);
/// As problem(), but that an If-Match that does not hold is 412.
[[nodiscard]] Reply precondition_failed(const Error& error);

}  // namespace gflow::server

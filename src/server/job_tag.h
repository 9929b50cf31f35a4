// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/exchange.h"

namespace gflow::server {

/// The version of a job, or of the allocation it is, as this caller sees it: another one once what
/// was asked for or where it stands is changed, the same while only time passes.
[[nodiscard]] std::string version_of_job(const Principal& caller,
                                         const Service& service,
                                         const Job& job);

/// Has the event decided if, right before that, all these jobs are as the request's If-Match says,
/// where it has one; answers 412 else.
void request_if_match(const Exchange& exchange,
                      std::vector<JobId> jobs,
                      engine::Event event,
                      Service::Answer answer);

}  // namespace gflow::server

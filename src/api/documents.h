// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// Every document there is on the wire, as JSON Schema. Each describe_X() stands where the fields
/// of its documents are listed.
namespace gflow::api {

class Schemas;

void describe_jobs(Schemas& schemas);
void describe_explanation(Schemas& schemas);
void describe_queue(Schemas& schemas);
void describe_defrag(Schemas& schemas);
void describe_submissions(Schemas& schemas);
void describe_requests(Schemas& schemas);
void describe_machine(Schemas& schemas);
void describe_groups(Schemas& schemas);
void describe_statistics(Schemas& schemas);
void describe_placement(Schemas& schemas);
void describe_snapshot(Schemas& schemas);
void describe_drains(Schemas& schemas);
void describe_daemon(Schemas& schemas);
void describe_account(Schemas& schemas);
void describe_tokens(Schemas& schemas);
void describe_gpu_resources(Schemas& schemas);
void describe_events(Schemas& schemas);
void describe_problems(Schemas& schemas);

/// All of them, and what they hold.
void describe_documents(Schemas& schemas);

}  // namespace gflow::api

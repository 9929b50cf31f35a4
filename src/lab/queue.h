// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/replay.h"

/// How long jobs wait, by who orders the queue: other schedulers' orders and ours on the same jobs,
/// ours through the engine of the daemon.
namespace gflow::lab {

/// What of the Philly trace (Jeon et al., USENIX ATC 2019) is played.
enum class QueueCase {
  Cluster,    ///< one month of all its jobs on 64 nodes of 8 GPUs
  LabServer,  ///< the jobs of up to 8 GPUs of one group on 2 nodes of 8
};
[[nodiscard]] std::string_view queue_case_name(QueueCase one);  ///< "cluster"
[[nodiscard]] std::vector<QueueCase> queue_cases();

/// What is known of a job before it runs, and what may be done to it.
enum class Knowledge {
  Nothing,
  Classes,  ///< a time limit: the least of 1, 4, 12 hours, 1, 3, 7, 14, 30, 60 days that it keeps
};

struct QueueRow {
  QueueCase of = QueueCase::Cluster;
  std::string order;  ///< "EASY backfill", "gflow"
  Knowledge knows = Knowledge::Nothing;
  bool preempts = false;
  Figures figures;
};

/// Every order on these cases of the trace, in the order of a table. Errors: Usage if the trace has
/// no jobs of a case.
[[nodiscard]] Result<std::vector<QueueRow>> queue_rows(const Trace& trace,
                                                       const std::vector<QueueCase>& cases,
                                                       const RunnerRules& rules,
                                                       const Progress& progress);

[[nodiscard]] Report queue_report(const std::vector<QueueRow>& rows);

}  // namespace gflow::lab

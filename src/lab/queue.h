// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "lab/queue_peers.h"
#include "lab/replay.h"

/// How long jobs wait, by who orders the queue: other schedulers' orders and ours on the same jobs,
/// ours through the engine of the daemon.
namespace gflow::lab {

/// Jobs, and the machines they are played on.
struct QueueCase {
  std::string name;  ///< "cluster"
  EqualNodes machines;
  Trace jobs;
};

/// A part of a public trace that always is the same.
struct PublicCase {
  std::string_view name;
  std::string_view file;  ///< in the folder "traces" of the data sets
  std::string_view what;  ///< for people
  EqualNodes machines;
};
[[nodiscard]] const std::vector<PublicCase>& public_cases();

/// The case's jobs of the whole trace. Errors: Usage if there are none.
[[nodiscard]] Result<QueueCase> queue_case(const PublicCase& one, const Trace& whole);

/// What is known of a job before it runs, and what may be done to it.
enum class QueueMode {
  Nothing,
  Limits,      ///< a time limit: the least of 1, 4, 12 h, 1, 3, 7, 14, 30, 60 days that it keeps
  Preempting,  ///< nothing is known, but every job may be stopped and go on later
};
[[nodiscard]] std::string_view queue_mode_name(QueueMode mode);  ///< "limits"
[[nodiscard]] std::vector<QueueMode> queue_modes();

struct QueueRow {
  std::string of;     ///< the case's name
  std::string order;  ///< "EASY backfill", "gflow"
  QueueMode mode = QueueMode::Nothing;
  std::chrono::seconds guard{0};  ///< of the simple guard; 0 for others
  Figures figures;
};

struct QueueRules {
  std::vector<QueueMode> modes = queue_modes();
  PeerRules peers;
  bool frontier = false;  ///< the simple guard with many waiting times, in place of one
};

/// Every order on these cases, in the order of a table.
[[nodiscard]] std::vector<QueueRow> queue_rows(const std::vector<QueueCase>& cases,
                                               const QueueRules& rules,
                                               const Progress& progress);

[[nodiscard]] Report queue_report(const std::vector<QueueRow>& rows);
/// Mean against longest wait, a chart for each case and mode; without FIFO, beside which all others
/// look alike.
[[nodiscard]] std::vector<Chart> queue_frontier(const std::vector<QueueRow>& rows);

}  // namespace gflow::lab

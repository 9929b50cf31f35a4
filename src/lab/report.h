// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lab/plot.h"
#include "lab/table.h"

namespace gflow::lab {

/// What an experiment found, to be printed, plotted or read by a program.
struct Report {
  std::string kind;                                        ///< of the JSON document: "LabReplay"
  std::string title;                                       ///< a line for people: what was done
  std::vector<std::pair<std::string, std::string>> facts;  ///< what it was done with, by key
  std::vector<std::string> notes;                          ///< sentences; what stands out
  std::vector<Table> tables;
  std::vector<Chart> charts;
};

/// {"apiVersion": "gflow/v1", "kind": ..., "facts": {..}, "notes": [..], KEY: [{column: value}]}.
[[nodiscard]] std::string report_json(const Report& report);
[[nodiscard]] std::string report_text(const Report& report);
/// Its tables, an empty line between them.
[[nodiscard]] std::string report_csv(const Report& report);

/// Called now and then with how much of the work is done: from 0 to 1, and at what.
using Progress = std::function<void(double done, const std::string& at)>;

}  // namespace gflow::lab

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "api/types.h"
#include "command/terminal.h"

/// What a screen of the queue says in few words.
namespace gflow::cli {

/// Where it is, or why it waits or how it ended: "0,1", "4 (0.5)" of one with a part of a GPU,
/// "4 (shared)" of one that takes turns on it, "0 (GPU memory 20G/8G)" of one over its GPU memory,
/// "0 (idle 47m)" of one that does not use it, "0 (lent)" of one that lends it,
/// "(Resources 7/8)", "(behind job 4)", "(exit 1)", "-".
[[nodiscard]] std::string brief_where_or_why(const api::JobView& job);
/// The same in fewer words where there are some: "(behind 4)", "(after 1-3)".
[[nodiscard]] std::vector<std::string> briefer_why(const api::JobView& job);

/// GPUs of all its nodes: "2", "0.5", "2x0.5", "8" on two nodes with four each, "1 shared" with
/// those it takes turns with; "-" for none.
[[nodiscard]] std::string brief_gpus(const Request& request);

/// How a state is painted: running green, held or leaving yellow, failed red, ended grey.
[[nodiscard]] Style style_of(Status status);

}  // namespace gflow::cli

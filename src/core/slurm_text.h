// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

/// What the commands of Slurm write, any version of them: told by others, so nothing of it is
/// trusted to be there.
namespace gflow::slurm {

/// "2026-03-01T12:00:00", by the zone of who asked, which is to be UTC. Empty: "Unknown", "None",
/// "N/A", and all else that is no time.
[[nodiscard]] std::optional<WallTime> read_time(std::string_view text);

/// "1-02:03:04", "02:03:04", "03:04", each with parts of a second or without. Empty: "UNLIMITED",
/// "Partition_Limit", and all else.
[[nodiscard]] std::optional<std::chrono::milliseconds> read_span(std::string_view text);

/// GPUs that a job asked for or has, or that a node has.
struct GpuCount {
  std::string model;  ///< as Slurm calls its type; "": it says none, or several
  int count = 0;

  friend bool operator==(const GpuCount&, const GpuCount&) = default;
};

/// What stands for so many GPUs in "cpu=8,gres/gpu=2,gres/gpu:v100=2,mem=32G": a total where there
/// is one, else all types together.
[[nodiscard]] GpuCount gpus_of_tres(std::string_view tres);
/// How many of one kind are in it: "gres/shard"; 0 if none.
[[nodiscard]] std::int64_t count_of_tres(std::string_view tres, std::string_view kind);

/// Parts of the text between separators, empty ones, too.
[[nodiscard]] std::vector<std::string_view> fields_between(std::string_view text, char separator);

}  // namespace gflow::slurm

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// The options of sbatch in a script: "#SBATCH" lines before its first command, as sbatch(1) reads
/// them.
namespace gflow::slurm {

/// Of those whose meaning is ours to know: what it says, and where it stands.
struct HeaderOption {
  std::string_view name;  ///< in full: "array"
  std::string value;      ///< without quotes; "" of one that has none
  std::size_t begin = 0;  ///< in the script, with its value
  std::size_t end = 0;
  std::size_t value_begin = 0;  ///< the value as it is written; where it has none, begin
};
/// In the order they are written in.
[[nodiscard]] std::vector<HeaderOption> header_options(std::string_view script);

/// The script without what is asked of sbatch that gbatch does itself (--array, --wait), that keeps
/// sbatch from telling the number of the job (--quiet), and what gbatch asks for anew (GPUs). All
/// else is as it was.
[[nodiscard]] std::string without_what_gbatch_does(std::string script);

/// Files of tasks by their number, "%a" and "%4a", as sbatch would name them; the number of the
/// array, "%A", is that of the job.
[[nodiscard]] std::string with_files_of_task(std::string script, std::string_view task);

}  // namespace gflow::slurm

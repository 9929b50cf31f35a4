// SPDX-License-Identifier: Apache-2.0
// A gpu_config.yaml is read if nothing is wrong with it, and only then; what is said of it names a
// line that it has and is fit to be printed, and so are the values of what was read.
#include "config/gpu_config.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "require.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(gflow::fuzz::text_of(data, size));
  const gflow::config::Checked checked = gflow::config::check_gpu_config(text, "gpu_config.yaml");
  const auto lines = std::ranges::count(text, '\n') + 1;
  for (const gflow::config::Problem& problem : checked.problems) {
    require(problem.line >= 0 && problem.line <= lines);
    const std::string said = gflow::config::problem_text(problem);
    require(!problem.message.empty() && gflow::printable(said) == said);
  }
  for (const std::string& note : checked.notes) require(gflow::printable(note) == note);
  const auto read = gflow::config::parse_gpu_config(text, "gpu_config.yaml");
  require(read.has_value() == checked.problems.empty());
  if (!read) return 0;
  for (const gflow::config::GpuSetting& setting : gflow::config::gpu_settings(*read)) {
    require(!setting.name.empty());
  }
  return 0;
}

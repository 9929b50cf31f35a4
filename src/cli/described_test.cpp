// SPDX-License-Identifier: Apache-2.0
#include "cli/described.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "cli/submit/options.h"
#include "core/job_description.h"

namespace gflow::cli {
namespace {

/// Fields that gbatch has an option of its own for, which means the field. Slurm's --nice means
/// none: a field of that name would be one that gbatch cannot set and gjob update can.
const std::set<std::string_view> kMeant = {"name",
                                           "project",
                                           "gpus",
                                           "cpus",
                                           "nodes",
                                           "priority",
                                           "hold",
                                           "requeue",
                                           "max_retries",
                                           "preempt_signal",
                                           "max_concurrent",
                                           "gpu_memory_bytes",
                                           "memory_bytes",
                                           "time_limit_seconds",
                                           "grace_seconds",
                                           "begin"};

TEST(Described, AnOptionOfTheNameOfAFieldMeansIt) {
  const std::vector<Option> options = submit_options();
  const JobSpec any;
  each_leaf(
      [&options](const auto& row, const auto& /*value*/) {
        std::string name = field_words(row.name);
        std::ranges::replace(name, ' ', '-');
        const auto is_so = [&name](const Option& option) {
          return option.name == name ||
                 std::ranges::find(option.aliases, name) != option.aliases.end();
        };
        const auto option = std::ranges::find_if(options, is_so);
        if (option == options.end() || option->field == row.name) return;
        EXPECT_TRUE(kMeant.contains(row.name))
            << "gbatch has an option --" << name << ": does it mean this field?";
      },
      any);
}

}  // namespace
}  // namespace gflow::cli

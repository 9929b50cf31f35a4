// SPDX-License-Identifier: Apache-2.0
#include "kube/limits.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

TEST(KubeLimits, AreReadAsFarAsTheyMakeSense) {
  const Limits read = limits_of({{"data",
                                  {{"max_gpus_per_namespace", "4"},
                                   {"max_gpus_of.vision", " 8\n"},
                                   {"max_gpus_of.free", "0"},
                                   {"max_gpus_of.", "1"},
                                   {"max_gpus_of.speech", "many"},
                                   {"max_pods", "3"}}}});
  EXPECT_EQ(read.quota, (engine::GpuQuota{4, {{"vision", 8}, {"free", 0}}}));
  EXPECT_EQ(
      read.mistakes,
      (std::vector<std::string>{"there is no limit 'max_gpus_of.', ignoring it",
                                "max_gpus_of.speech is not a number from 0 to 100000, ignoring it",
                                "there is no limit 'max_pods', ignoring it"}));
  for (const Json& none : {Json(), Json::object(), Json{{"data", nullptr}}, Json{{"data", {1}}}}) {
    EXPECT_EQ(limits_of(none).quota, engine::GpuQuota()) << none;
  }
}

}  // namespace
}  // namespace gflow::kube

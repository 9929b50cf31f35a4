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
                                   {"max_pods", "3"}}}},
                                {1, {{"speech", 2}, {"other", 5}}});
  EXPECT_EQ(read.quota, (engine::GpuQuota{4, {{"vision", 8}, {"free", 0}, {"speech", 2}}}));
  EXPECT_EQ(to_text(read.quota),
            "4 GPUs for each namespace, of free none, of speech 2, of vision 8");
  EXPECT_EQ(read.mistakes,
            (std::vector<std::string>{
                "there is no limit 'max_gpus_of.', ignoring it",
                "max_gpus_of.speech is not a number from 0 to 100000, keeping what was",
                "there is no limit 'max_pods', ignoring it"}));
  for (const Json& none : {Json(), Json::object(), Json{{"data", nullptr}}, Json{{"data", {1}}}}) {
    EXPECT_EQ(limits_of(none, {3, {}}).quota, engine::GpuQuota()) << none;
  }
  const Limits broken = limits_of({{"data", {{"max_gpus_per_namespace", "4 GPUs"}}}}, {4, {}});
  EXPECT_EQ(broken.quota, (engine::GpuQuota{4, {}}));
  EXPECT_EQ(to_text({}), "none");
}

}  // namespace
}  // namespace gflow::kube

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
  EXPECT_EQ(
      read.mistakes,
      (std::vector<std::string>{"there is no limit 'max_gpus_of.', ignoring it",
                                "max_gpus_of.speech is not a number from 0 to 100000, keeping 2",
                                "there is no limit 'max_pods', ignoring it"}));
  for (const Json& none : {Json(), Json::object(), Json{{"data", nullptr}}, Json{{"data", {1}}}}) {
    EXPECT_EQ(limits_of(none, {3, {}}).quota, engine::GpuQuota()) << none;
  }
  const Json mistyped = {
      {"data", {{"max_gpus_per_namespace", "4 GPUs"}, {"max_gpus_of.free", "any"}}}};
  const engine::GpuQuota before{4, {{"free", 0}}};
  EXPECT_EQ(limits_of(mistyped, before).quota, before);
  const Limits first = limits_of(mistyped, {});
  EXPECT_EQ(first.quota, engine::GpuQuota());
  EXPECT_EQ(
      first.mistakes,
      (std::vector<std::string>{
          "max_gpus_of.free is not a number from 0 to 100000, and there was none to keep",
          "max_gpus_per_namespace is not a number from 0 to 100000, and there was none to keep"}));
  EXPECT_EQ(to_text(engine::GpuQuota{}), "none");
}

}  // namespace
}  // namespace gflow::kube

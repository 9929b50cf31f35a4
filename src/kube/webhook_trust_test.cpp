// SPDX-License-Identifier: Apache-2.0
#include "kube/webhook_trust.h"

#include <gtest/gtest.h>

namespace gflow::kube {
namespace {

std::string certificate(const std::string& of) {
  return "-----BEGIN CERTIFICATE-----\n" + of + "\n-----END CERTIFICATE-----\n";
}

TEST(BundleWith, PutsOneBehindTheOthers) {
  EXPECT_EQ(bundle_with("", certificate("a")), certificate("a"));
  EXPECT_EQ(bundle_with(certificate("a"), certificate("b")), certificate("a") + certificate("b"));
}

TEST(BundleWith, LeavesOneThatHasItAlone) {
  EXPECT_EQ(bundle_with(certificate("a") + certificate("b"), certificate("a")), std::nullopt);
}

TEST(BundleWith, EndsALineThatSomebodyElseLeftOpen) {
  std::string others = certificate("a");
  others.pop_back();
  EXPECT_EQ(bundle_with(others, certificate("b")), certificate("a") + certificate("b"));
}

TEST(BundleWith, KeepsTheLastSixteen) {
  std::string bundle = "# whose these are\n";
  for (int i = 0; i < 40; ++i) {
    bundle = bundle_with(bundle, certificate(std::to_string(i))).value_or("");
  }
  std::string last;
  for (int i = 24; i < 40; ++i) last += certificate(std::to_string(i));
  EXPECT_EQ(bundle, last);
}

TEST(BundleWith, TakesWhatIsNoCertificateAsItIs) {
  EXPECT_EQ(bundle_with("what is this", certificate("a")), "what is this\n" + certificate("a"));
}

}  // namespace
}  // namespace gflow::kube

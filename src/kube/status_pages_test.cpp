// SPDX-License-Identifier: Apache-2.0
#include "kube/status_pages.h"

#include <gtest/gtest.h>

#include "kube/health.h"
#include "kube/metrics.h"

namespace gflow::kube {
namespace {

TEST(StatusPages, SayWhatAKubeletAsksFor) {
  Health health(std::chrono::milliseconds(0));
  const Metrics metrics("gflow");
  const Pages pages = status_pages(health, metrics);
  const auto shown = [&pages](const char* path) {
    const Page page = pages.find(path)->second();
    return std::to_string(page.status) + " " + page.text;
  };
  EXPECT_EQ(shown("/healthz"), "200 ok");
  EXPECT_EQ(shown("/readyz"), "503 it starts\n");
  health.ready();
  EXPECT_EQ(shown("/readyz"), "200 ok");
  health.not_ready("the server said: \x1b[1mno");
  EXPECT_EQ(shown("/readyz").find('\x1b'), std::string::npos);
  health.wait([&shown] { EXPECT_EQ(shown("/healthz"), "200 ok"); });
  EXPECT_EQ(shown("/healthz"), "503 the loop has been at one turn for 0 s\n");
  EXPECT_TRUE(shown("/metrics").starts_with("200 # HELP "));
}

}  // namespace
}  // namespace gflow::kube

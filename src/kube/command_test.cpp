// SPDX-License-Identifier: Apache-2.0
#include "kube/command.h"

#include <gtest/gtest.h>

#include "command/golden_test.h"
#include "command/help.h"

namespace gflow::kube {
namespace {

TEST(KubeCommand, HelpIsAsReviewed) {
  const cli::Command command = gflow_kube_command();
  cli::expect_golden("gflow-kube.help", cli::help_text(command, "gflow-kube"));
  cli::expect_golden("gflow-kube-serve.help",
                     cli::help_text(*command.subcommand("serve"), "gflow-kube serve"));
}

TEST(KubeCommand, ManPageTellsNothingOfGflowdsFiles) {
  const std::string page = cli::man_page(gflow_kube_command(), "gflow-kube", "1");
  EXPECT_NE(page.find(".SS \"webhook\"\n"), std::string::npos) << page;
  EXPECT_EQ(page.find("GFLOW_SOCKET"), std::string::npos) << page;
}

}  // namespace
}  // namespace gflow::kube

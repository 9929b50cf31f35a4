// SPDX-License-Identifier: Apache-2.0
#include "kube/command.h"

#include <gtest/gtest.h>

#include "command/golden_test.h"
#include "command/help.h"

namespace gflow::kube {
namespace {

TEST(KubeCommand, HelpIsAsReviewed) {
  cli::expect_golden("gflow-kube.help", cli::help_text(gflow_kube_command(), "gflow-kube"));
}

}  // namespace
}  // namespace gflow::kube

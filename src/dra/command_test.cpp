// SPDX-License-Identifier: Apache-2.0
#include "dra/command.h"

#include <gtest/gtest.h>

#include "command/golden_test.h"
#include "command/help.h"

namespace gflow::dra {
namespace {

TEST(DraDriverCommand, HelpIsAsReviewed) {
  cli::expect_golden("gflow-dra-driver.help",
                     cli::help_text(dra_driver_command(), "gflow-dra-driver"));
}

}  // namespace
}  // namespace gflow::dra

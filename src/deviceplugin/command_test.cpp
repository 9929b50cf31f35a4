// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/command.h"

#include <gtest/gtest.h>

#include "command/golden_test.h"
#include "command/help.h"

namespace gflow::deviceplugin {
namespace {

TEST(DevicePluginCommand, HelpIsAsReviewed) {
  cli::expect_golden("gflow-device-plugin.help",
                     cli::help_text(device_plugin_command(), "gflow-device-plugin"));
}

}  // namespace
}  // namespace gflow::deviceplugin

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "os/file.h"
#include "os/user.h"

namespace gflow::cli {

/// Compares with tests/cli/golden/NAME; with GFLOW_BLESS=1 writes it instead.
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = fmt::format("{}/tests/cli/golden/{}", GFLOW_SOURCE_DIR, name);
  if (os::environment("GFLOW_BLESS") == "1") {
    ASSERT_TRUE(os::write_file(path, text, 0644));
    return;
  }
  const auto golden = os::read_file(path);
  ASSERT_TRUE(golden) << golden.error().message << "; GFLOW_BLESS=1 writes it";
  EXPECT_EQ(text, *golden) << name << ": GFLOW_BLESS=1 takes the new text";
}

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "scenario/scenario.h"

/// Plays the scenario files given; prints the first contradiction of each.
int main(int argc, char** argv) {
  int failed = 0;
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i]);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) {
      fmt::print(stderr, "cannot read {}\n", argv[i]);
      return 2;
    }
    const std::string wrong = gflow::scenario::Scenario().play(argv[i], text.str());
    fmt::print("{} {}\n", wrong.empty() ? "ok  " : "FAIL", wrong.empty() ? argv[i] : wrong);
    failed += wrong.empty() ? 0 : 1;
  }
  return failed == 0 && argc > 1 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
#include "cli/patience.h"

#include <chrono>
#include <ostream>
#include <thread>

#include "base/translate.h"

namespace gflow::cli {

bool Patience::wait_a_second() {
  constexpr int kMax = 60;
  if (++silent_seconds_ > kMax) return false;
  if (silent_seconds_ == 1) {
    context_.note(
        tr("the daemon does not answer; waiting for it to come back (jobs keep running)"));
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return true;
}

}  // namespace gflow::cli

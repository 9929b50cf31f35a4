// SPDX-License-Identifier: Apache-2.0
#include "cli/patience.h"

#include <chrono>
#include <ostream>
#include <thread>

#include "base/text.h"
#include "base/translate.h"

namespace gflow::cli {

std::string waits_for_it(const std::string& why) {
  return tr_format("{}; waiting for it to come back (jobs keep running)", printable(why));
}

bool Patience::wait_a_second(const std::string& why) {
  constexpr int kMax = 60;
  if (++silent_seconds_ > kMax) return false;
  if (silent_seconds_ == 1) context_.note(waits_for_it(why));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return true;
}

}  // namespace gflow::cli

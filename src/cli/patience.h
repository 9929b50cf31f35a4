// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "command/context.h"

namespace gflow::cli {

/// What is said once when the daemon falls silent; `why`: what is known of that.
[[nodiscard]] std::string waits_for_it(const std::string& why);

/// Waits for news in a way that outlives a restart of the daemon, as the jobs do: while nobody
/// answers it asks again every second, for at most a minute, and says so once. A daemon that never
/// answered is not waited for: it is not running.
class Patience {
 public:
  explicit Patience(Context& context) : context_(context) {}

  /// The request's answer; Unreachable at the first request, or after a minute of silence.
  template <typename T>
  [[nodiscard]] Result<T> operator()(const std::function<Result<T>()>& request) {
    while (true) {
      Result<T> answer = request();
      if (answer || answer.error().code != Code::Unreachable) {
        silent_seconds_ = 0;
        answered_ = true;
        return answer;
      }
      if (!answered_ || !wait_a_second(answer.error().message)) return answer;
    }
  }

 private:
  [[nodiscard]] bool wait_a_second(const std::string& why);

  Context& context_;
  bool answered_ = false;
  int silent_seconds_ = 0;
};

}  // namespace gflow::cli

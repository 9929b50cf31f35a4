// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/time.h"

namespace gflow::kube {

/// Lines with a time, for whoever collects what a container writes. Any thread.
class Log {
 public:
  explicit Log(std::ostream& out) : out_(out) {}

  void info(std::string_view text) { line("info", text); }
  void warn(std::string_view text) { line("warning", text); }
  /// The same, unless it said that less than half a minute ago.
  void warn_again(const std::string& text);

 private:
  void line(std::string_view level, std::string_view text);

  std::ostream& out_;
  std::mutex mutex_;
  std::map<std::string, MonoTime> said_;
};

}  // namespace gflow::kube

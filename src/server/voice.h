// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"

namespace gflow::server {

/// What a program that was given a channel says on it, a line each, until it is ready; read by
/// client/cluster.cpp. Any thread.
class Voice {
 public:
  /// `channel`: a socket; -1 for none, and nothing is said.
  explicit Voice(int channel) : channel_(channel) {}

  void waits(std::string_view what) const { line("waits ", what); }
  void ready(std::string_view name_space) const { line("ok ", name_space); }
  void error(const Error& error) const;

 private:
  void line(std::string_view word, std::string_view text) const;

  int channel_;
};

}  // namespace gflow::server

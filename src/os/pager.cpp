// SPDX-License-Identifier: Apache-2.0
#include "os/pager.h"

#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdio>

#include "base/translate.h"
#include "os/file.h"

namespace gflow::os {
namespace {

/// What is for the pager to take, not for us, until it has ended.
class SignalsAside {
 public:
  SignalsAside() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      before_.at(i) = std::signal(kSignals.at(i), SIG_IGN);
    }
  }
  ~SignalsAside() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      (void)std::signal(kSignals.at(i), before_.at(i));
    }
  }
  SignalsAside(const SignalsAside&) = delete;
  SignalsAside& operator=(const SignalsAside&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGPIPE, SIGINT, SIGQUIT};
  std::array<void (*)(int), kSignals.size()> before_{};
};

constexpr int kNoProgram = 127;  // as a shell says it

}  // namespace

Result<void> show_in_pager(const std::string& command, std::string_view text) {
  // Colours pass, what fits a screen needs no key, and it stays there afterwards. The text is UTF-8
  // also where the locale that says so is not installed.
  const std::string line =
      R"(export LESS="${LESS-FRX}" LESSCHARSET="${LESSCHARSET-utf-8}"; )" + command;
  std::FILE* pager = ::popen(line.c_str(), "we");
  if (pager == nullptr) return errno_error("start " + command);
  const SignalsAside aside;  // after the start: the pager would inherit it
  // Who quits in the middle has seen enough.
  (void)std::fwrite(text.data(), 1, text.size(), pager);
  const int status = ::pclose(pager);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoProgram) {
    return fail(Code::NotFound, tr_format("the program of PAGER was not found: {}", command));
  }
  return {};
}

}  // namespace gflow::os

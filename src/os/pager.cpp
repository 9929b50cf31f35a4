// SPDX-License-Identifier: Apache-2.0
#include "os/pager.h"

#include <sys/wait.h>

#include <array>
#include <csignal>
#include <utility>

#include "base/translate.h"
#include "os/file.h"

namespace gflow::os {

/// What is for the pager to take, not for us, until it has ended.
class Pager::SignalsAside {
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

namespace {

constexpr int kNoProgram = 127;  // as a shell says it

}  // namespace

Result<Pager> Pager::start(const std::string& command) {
  // Colours pass, what fits a screen needs no key, and it stays there afterwards. The text is UTF-8
  // also where the locale that says so is not installed.
  const std::string line =
      R"(export LESS="${LESS-FRX}" LESSCHARSET="${LESSCHARSET-utf-8}"; )" + command;
  std::FILE* pipe = ::popen(line.c_str(), "we");
  if (pipe == nullptr) return errno_error("start " + command);
  return Pager(pipe, command);
}

// The signals after the start: the pager would inherit how they are handled.
Pager::Pager(std::FILE* pipe, std::string command)
    : pipe_(pipe), command_(std::move(command)), aside_(std::make_unique<SignalsAside>()) {}
Pager::Pager(Pager&& other) noexcept
    : pipe_(std::exchange(other.pipe_, nullptr)),
      command_(std::move(other.command_)),
      aside_(std::move(other.aside_)) {}
Pager::~Pager() { (void)end(); }

bool Pager::write(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), pipe_) == text.size() && std::fflush(pipe_) == 0;
}

Result<void> Pager::end() {
  if (pipe_ == nullptr) return {};
  const int status = ::pclose(std::exchange(pipe_, nullptr));
  aside_.reset();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoProgram) {
    return fail(Code::NotFound, tr_format("the program of PAGER was not found: {}", command_));
  }
  return {};
}

}  // namespace gflow::os

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <optional>

namespace gflow::os {

[[nodiscard]] bool is_terminal(int fd);

/// Size of the terminal behind a descriptor; 80 by 24 where it is not known.
struct TerminalSize {
  int columns = 80;
  int rows = 24;
};
[[nodiscard]] TerminalSize terminal_size(int fd);
/// Whether this process may write to the terminal behind a descriptor without disturbing another
/// job of the shell; also where that is not the terminal of a shell.
[[nodiscard]] bool is_in_foreground(int fd);
/// Ends this process as SIGPIPE does once nobody reads the pipe `fd` any more, also while nothing
/// is written: for commands that wait for news. Starts a thread for that.
void end_with_reader(int fd);

/// For who has changed the terminal: a fault of this process (a segmentation fault, abort(), on the
/// thread that made this also a stack that is used up) first gives it back, while this lives, and
/// then ends the process as it would have. The keys are given back where Keys has them. One at a
/// time.
class FaultRescue {
 public:
  FaultRescue();
  ~FaultRescue();
  FaultRescue(const FaultRescue&) = delete;
  FaultRescue& operator=(const FaultRescue&) = delete;

  /// What is to be written to stdout then, from now on: a constant; null is nothing.
  static void set_farewell(const char* text);
};

/// While it lives, keys come one by one and are not echoed; Ctrl-C and Ctrl-Z stay signals. Has no
/// keys where stdin is no terminal, or that of another job of the shell.
class Keys {
 public:
  Keys();
  ~Keys() { release(); }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  /// Takes the terminal, again where somebody changed it meanwhile, or gives it back as it was:
  /// another job of the shell that has it now has set it for itself, and keeps that.
  void take();
  void release();
  /// Readable when a key was pressed; -1 where there are none.
  [[nodiscard]] int fd() const { return taken_ ? 0 : -1; }
  /// The key; nothing at the end of the input.
  [[nodiscard]] static std::optional<char> next();

 private:
  std::optional<termios> before_;  ///< as it was when it was first taken
  bool taken_ = false;
};

}  // namespace gflow::os

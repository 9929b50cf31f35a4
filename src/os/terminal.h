// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gflow::os {

[[nodiscard]] bool is_terminal(int fd);

/// Size of the terminal behind a descriptor; 80 by 24 where it is not known.
struct TerminalSize {
  int columns = 80;
  int rows = 24;
};
[[nodiscard]] TerminalSize terminal_size(int fd);

}  // namespace gflow::os

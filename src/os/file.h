// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "base/result.h"
#include "os/fd.h"

/// Files. Errors carry the path and what the system said; ENOENT and ESRCH are Code::NotFound,
/// EACCES and EPERM Code::Permission, ENOSPC and EDQUOT Code::Exhausted.
namespace gflow::os {

/// The error of errno for a call that failed: "open '/x': No such file or directory".
[[nodiscard]] std::unexpected<Error> errno_error(std::string_view doing,
                                                 std::string_view path = {});

[[nodiscard]] Result<Fd> open_file(const std::string& path, int flags, mode_t mode = 0600);
/// The whole file, refused (Code::Exhausted) when larger than `most`.
[[nodiscard]] Result<std::string> read_file(const std::string& path, Memory most = Memory::mib(16));
/// The same of a file somebody configured, which is never waited for: a pipe or a device is
/// refused, but for /dev/null, which is empty.
[[nodiscard]] Result<std::string> read_regular_file(const std::string& path,
                                                    Memory most = Memory::mib(16));
/// The same as read_file(); empty if there is no such file. An error says nothing of whether there
/// is.
[[nodiscard]] Result<std::optional<std::string>> read_if_exists(const std::string& path,
                                                                Memory most = Memory::mib(16));
[[nodiscard]] Result<void> write_all(int fd, std::string_view data);
/// Creates or replaces; not synced.
[[nodiscard]] Result<void> write_file(const std::string& path,
                                      std::string_view data,
                                      mode_t mode = 0600);
/// Creates the directory and its parents; existing ones are left as they are.
[[nodiscard]] Result<void> make_directories(const std::string& path, mode_t mode = 0700);
/// Makes a directory that nobody but this process's user, and root, can change: makes it and its
/// parents, gives it at least `mode` whatever the umask is, and takes the right to write from all
/// others. Errors: Permission if it belongs to somebody else.
[[nodiscard]] Result<void> make_own_directory(const std::string& path, mode_t mode = 0700);
/// Whether it is a directory of this process's user.
[[nodiscard]] bool is_own_directory(const std::string& path);
/// Removes a directory and what is in it, without following links. A missing one is not an error.
[[nodiscard]] Result<void> remove_tree(const std::string& path);
/// The names in a directory, without "." and "..", in no order: all of them or an error.
[[nodiscard]] Result<std::vector<std::string>> names_in(const std::string& directory);
[[nodiscard]] bool is_file(const std::string& path);  ///< a regular file
[[nodiscard]] bool is_directory(const std::string& path);
[[nodiscard]] bool exists(const std::string& path);
/// The same, where an error must not count as no: it says nothing of what is there.
[[nodiscard]] Result<bool> is_there(const std::string& path);
/// "nfs", "fuse", ... if the path lies on a file system locks and syncs cannot be trusted on; ""
/// else.
[[nodiscard]] std::string network_file_system(const std::string& path);

/// An exclusive lock held by the kernel for as long as the descriptor (and any copy) is open.
/// Errors: WrongState if another process has it.
[[nodiscard]] Result<Fd> lock_file(const std::string& path);

}  // namespace gflow::os

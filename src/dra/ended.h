// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "share/account.h"

namespace gflow::dra {

/// Which processes of this machine are in which pid namespace, by the pids they have there.
class ProcessesSeen {
 public:
  /// Inode of the namespace, which the kernel uses again, pid in it, start time.
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;

  /// Looks at all of /proc. Errors: of that.
  [[nodiscard]] Result<void> look();
  /// Whether it is known to be there, without a look at others.
  [[nodiscard]] bool is_still_there(const share::ProcessId& process) const;
  /// By the last look. One of which the namespace is hidden may be any. One of another namespace
  /// than this process's own is known not to be there only where processes of other namespaces are
  /// seen at all.
  [[nodiscard]] bool has_ended(const share::ProcessId& process) const;

 private:
  std::map<Key, std::string> seen_;  ///< where each is in /proc: "/proc/4711"
  bool sees_others_ = false;
};

/// Tells the processes of containers that have one account which of them have ended: they cannot
/// judge each other, and what one had that is gone would be kept from the others until the claim
/// ends. Only this writes the files, in place, so that containers that have them mounted see it.
class EndedTeller {
 public:
  /// `directories`: of accounts (share::kAccountName) with a file share::kEndedName.
  void look(const std::vector<std::string>& directories);

 private:
  ProcessesSeen seen_;
};

}  // namespace gflow::dra

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "interpose/lock_file.h"
#include "share/gang.h"

namespace gflow::interpose {

/// The processes of a job with parts of several devices: share::Gang and the locks of its file. One
/// thread, but for what is atomic.
class GangFile {
 public:
  /// Maps the file in the directory; what is_there() tells is then whether that could be done.
  explicit GangFile(const char* directory);

  /// False if there is no file, or it cannot be used any more: cut short, or without locks. To be
  /// asked before each look at it, which would end the process otherwise; what is seen from then on
  /// is nobody's.
  [[nodiscard]] bool is_there();

  [[nodiscard]] const char* path() const { return locks_.path(); }

  /// Takes a place among the members, once. False if there is none.
  [[nodiscard]] bool join();
  [[nodiscard]] share::GangMember& own() { return gang_->members[own_]; }
  [[nodiscard]] share::Gang& all() { return *gang_; }

  /// Calls `visit` with each member that lives and uses devices.
  template <typename Visit>
  void for_each_member(Visit visit) {
    for (std::size_t member = 0; member < share::kMaxMembers; ++member) {
      share::GangMember& its = gang_->members[member];
      if (its.uses.load() != 0 && is_alive(member)) visit(its);
    }
  }

  /// How one who leads in that place is seen: two that differ are of one who runs.
  struct Leader {
    bool is_there = false;
    std::uint64_t turn = 0;  ///< as GangLead has it
    std::uint64_t looked_at = 0;
    friend bool operator==(const Leader&, const Leader&) = default;
  };
  [[nodiscard]] Leader leader(std::size_t place);
  /// False if another one does.
  [[nodiscard]] bool try_lead(std::size_t place);
  void stop_leading(std::size_t place);

 private:
  [[nodiscard]] bool is_alive(std::size_t member);

  LockFile locks_;
  share::Gang* gang_ = nullptr;
  bool is_lost_ = false;
  std::size_t own_ = share::kMaxMembers;
  std::uint32_t joined_in_ = 0;  ///< the generation of the locks
};

}  // namespace gflow::interpose

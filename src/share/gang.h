// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "share/account.h"

/// What the processes of one attempt tell each other of the turn that they have on all of its GPUs
/// at once: a file that each of them maps, beside the account. docs/format/account.md has its
/// layout. Who is there at all is said by locks of its bytes.
namespace gflow::share {

constexpr const char* kGangName = "gang";
/// Beside it, of each device of the account by its place: as kTurnName where there is one.
constexpr const char* kTurnOfFormat = "turn.%zu";

constexpr std::uint64_t kGangMagic = 0x000a310a'676e6167;  ///< "gang\n1\n" and a NUL
constexpr std::size_t kMaxMembers = 256;
/// Who has the turn for all; another where one is stopped with it.
constexpr std::size_t kMaxLeaders = 4;

/// The byte of the file that a member has locked while it lives, and the one a leader has locked.
constexpr std::uint64_t kMemberBytes = 0;
constexpr std::uint64_t kLeaderBytes = kMaxMembers;

using Word = std::atomic<std::uint32_t>;

/// What each process says of itself; others read it. Devices are bits, by their place in the
/// account.
struct GangMember {
  Amount turn;  ///< the number of the one it takes part in, or did
  Word leader;  ///< whose that is
  Word uses;    ///< devices to which it has launched something
  Word busy;    ///< those that have something of it to do, and kEnters
  Word wants;   ///< kWaits, kIsUsedUp
  Word steps;   ///< of `busy`, those that do what they were let in for as others may wait for it
  Word reserved;
  std::array<Word, kMaxDevices> launched;  ///< since the process began
};
constexpr std::uint32_t kEnters = 1U << 31;   ///< in `busy`: its gates are open, or may be
constexpr std::uint32_t kWaits = 1U << 0;     ///< in `wants`: launches wait
constexpr std::uint32_t kIsUsedUp = 1U << 1;  ///< in `wants`: that were too many for one turn
static_assert(sizeof(GangMember) == 96);
static_assert(kMaxDevices < 31);

/// How far a turn is: the last two bits of GangLead::turn.
enum class Phase : std::uint8_t { Over = 0, Open = 1, Closing = 2 };
[[nodiscard]] constexpr Phase phase_of(std::uint64_t turn) { return static_cast<Phase>(turn % 4); }

/// The turn of one who leads.
struct GangLead {
  Amount turn;       ///< its number, four times, and the Phase
  Amount looked_at;  ///< when the leader looked last, nanoseconds of CLOCK_MONOTONIC
  Word devices;      ///< that it has
  Word length;       ///< microseconds that it takes, if nothing ends it
};
static_assert(sizeof(GangLead) == 24);

struct Gang {
  std::uint64_t magic;
  std::uint64_t size;  ///< of the whole file
  Amount left_at;      ///< when the last turn ended; 0: there was none
  Amount wanted_at;    ///< when others were seen last to want a device
  /// Of place 0, since when a device is used and that is not counted: what was not done when the
  /// turn ended, and while there is one, as long before `looked_at` as its use is by then. 0: not.
  std::array<Amount, kMaxDevices> busy_since;
  std::array<GangLead, kMaxLeaders> leads;
  std::array<GangMember, kMaxMembers> members;
};
static_assert(sizeof(Gang) == 256 + kMaxMembers * sizeof(GangMember));

/// That name of the device in this place.
[[nodiscard]] std::string turn_name(std::size_t device);
/// The bytes of a new one: nobody is there.
[[nodiscard]] std::string encode_gang();

}  // namespace gflow::share

// SPDX-License-Identifier: Apache-2.0
#include "interpose/gang_keeper.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <new>

#include "interpose/gang_file.h"
#include "interpose/gang_turn.h"
#include "interpose/gate.h"
#include "interpose/keeper.h"
#include "interpose/membership.h"
#include "interpose/pace.h"
#include "interpose/session.h"

namespace gflow::interpose {
namespace {

/// Whether the turn goes on that was seen so.
bool is_of(std::uint64_t turn, std::uint64_t seen) {
  return turn / 4 == seen / 4 && share::phase_of(turn) != share::Phase::Over;
}

class GangKeeper {
 public:
  explicit GangKeeper(const char* directory)
      : file_(directory), membership_(file_), turn_(file_, membership_, directory) {
    (void)::pthread_cond_init(&changed_, nullptr);
    is_usable_ = file_.is_there();
  }

  [[nodiscard]] bool is_usable() const { return is_usable_; }
  [[nodiscard]] bool start();
  void wake();
  void say_unusable() const;

 private:
  void keep();
  void wait_until_wanted();
  void open_for_good();
  /// Launches wait, or are not done that it is to tell of.
  [[nodiscard]] bool has_to_take_part() const {
    return membership_.busy() != 0 || membership_.has_entries_waiting();
  }
  [[nodiscard]] bool take_part();
  [[nodiscard]] bool take_part(std::size_t place);
  [[nodiscard]] bool may_lead(const GangFile::Leader& seen) const;
  [[nodiscard]] bool follow(std::size_t place, std::uint64_t turn);
  [[nodiscard]] bool look(share::Phase phase, std::uint64_t time);
  [[nodiscard]] bool is_stuck(std::size_t place, const GangFile::Leader& leader);
  [[nodiscard]] std::uint64_t pause(std::uint64_t closing_for) const;
  void give_up();

  GangFile file_;
  Membership membership_;
  GangTurn turn_;
  OddPace pace_;
  LookedTime looked_;
  std::atomic<bool> is_usable_ = false;
  bool has_said_ = false;
  std::array<GangFile::Leader, share::kMaxLeaders> stuck_{};  ///< who did not run
  std::mutex lock_;
  pthread_cond_t changed_;
  // Under the lock.
  bool has_thread_ = false;
  bool is_wanted_ = false;
};

bool GangKeeper::start() {
  const std::lock_guard locked(lock_);
  if (has_thread_) return true;
  const auto keep = [](void* keeper) -> void* {
    static_cast<GangKeeper*>(keeper)->keep();
    return nullptr;
  };
  has_thread_ = start_keeper_thread(keep, this);
  return has_thread_;
}

void GangKeeper::wake() {
  const std::lock_guard locked(lock_);
  is_wanted_ = true;
  (void)::pthread_cond_broadcast(&changed_);
}

void GangKeeper::wait_until_wanted() {
  std::unique_lock locked(lock_);
  while (!is_wanted_) (void)::pthread_cond_wait(&changed_, lock_.native_handle());
  is_wanted_ = false;
}

void GangKeeper::keep() {
  for (;;) {
    wait_until_wanted();
    if (!has_to_take_part()) continue;  // it was let in meanwhile
    if (!Session::get().limits()) {
      open_for_good();
    } else if (file_.is_there() && file_.join()) {
      membership_.note_uses();
      if (!take_part()) {
        membership_.forget();
        return give_up();
      }
      if (has_to_take_part()) wake();
    } else {
      return give_up();
    }
  }
}

void GangKeeper::open_for_good() {
  for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
    if (Gate* const gate = known_gate_of(device)) gate->open_for_good();
  }
}

/// In the turn of the first who leads and runs, or its own. False if there are too many who do not
/// run.
bool GangKeeper::take_part() {
  for (std::size_t place = 0; place < share::kMaxLeaders; ++place) {
    if (take_part(place)) return true;
  }
  return false;
}

void GangKeeper::say_unusable() const {
  say({"gflow: this process uses the GPUs while others do: ", file_.path(), " cannot be used"});
}

/// From then on each gate is kept by itself, without turns.
void GangKeeper::give_up() {
  is_usable_ = false;
  say_unusable();
  for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
    Gate* const gate = known_gate_of(device);
    if (gate != nullptr && !start_keeper_of(*gate)) gate->open_for_good();
  }
}

/// Nobody does, and it wants a turn, or the last one was not ended, as its leader is gone.
bool GangKeeper::may_lead(const GangFile::Leader& seen) const {
  if (seen.is_there) return false;
  return membership_.has_entries_waiting() || share::phase_of(seen.turn) != share::Phase::Over;
}

/// In a turn of whoever leads in that place, or leads. False if the one who does has not run for a
/// second, as one that is stopped: he is waited for once, until he runs again.
bool GangKeeper::take_part(std::size_t place) {
  GangFile::Leader seen = file_.leader(place);
  std::uint64_t since = looked_.at(now());
  for (;;) {
    if (!seen.is_there) {
      if (may_lead(seen) && file_.try_lead(place)) {
        turn_.have(place);
        file_.stop_leading(place);
        return true;
      }
    } else if (share::phase_of(seen.turn) != share::Phase::Over && !(seen == stuck_[place]) &&
               membership_.enter(place, seen.turn)) {
      return follow(place, seen.turn);
    }
    const std::uint64_t time = looked_.at(now());
    const bool is_still = seen == stuck_[place] || time - since >= kPatience;
    if (seen.is_there && is_still && membership_.has_entries_waiting()) {
      return is_stuck(place, seen);
    }
    sleep_for(kLook);
    if (!file_.is_there()) return true;
    membership_.look_outside();
    if (!has_to_take_part()) return true;
    const GangFile::Leader before = seen;
    seen = file_.leader(place);
    if (!(seen == before)) since = time;
  }
}

/// False, which says so.
bool GangKeeper::is_stuck(std::size_t place, const GangFile::Leader& leader) {
  stuck_[place] = leader;
  if (!has_said_) {
    has_said_ = true;
    say({"gflow: this process uses the GPUs while others of its job do not: ",
         file_.path(),
         ": one of them does not run"});
  }
  return false;
}

/// What closes for longer is waited for as what is open: others may need the processors.
std::uint64_t GangKeeper::pause(std::uint64_t closing_for) const {
  if (closing_for > 0 && closing_for < kTurn) return kLastLook;
  return std::clamp(membership_.launch_time() / 16, kLook, 2 * kLook);
}

/// Until the turn is over or anew, or the process has nothing more to do. False as take_part().
bool GangKeeper::follow(std::size_t place, std::uint64_t turn) {
  GangFile::Leader seen = file_.leader(place);
  std::uint64_t since = looked_.at(now());
  std::uint64_t open_at = now();
  bool is_going = true;
  while (is_going) {
    if (share::phase_of(seen.turn) == share::Phase::Open) open_at = now();
    sleep_for(pace_.about(pause(now() - open_at)));
    if (!file_.is_there()) break;
    const GangFile::Leader before = seen;
    seen = file_.leader(place);
    const std::uint64_t time = now();
    const std::uint64_t looked = looked_.at(time);
    if (!(seen == before)) since = looked;
    is_going = seen.is_there && is_of(seen.turn, turn) && look(share::phase_of(seen.turn), time);
    if (is_going && looked - since >= kPatience && membership_.has_entries_waiting()) {
      membership_.leave(kTurn);
      return is_stuck(place, seen);
    }
  }
  membership_.leave(file_.all().leads[place].length.load() * kMicrosecond);
  return true;
}

/// False if it has nothing more to do.
bool GangKeeper::look(share::Phase phase, std::uint64_t time) {
  if (phase == share::Phase::Closing) {
    membership_.look_closing(time);
    return true;
  }
  membership_.look();
  return membership_.idle_for(time) < kIdle || membership_.has_entries_waiting();
}

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): of the process
constinit std::atomic<GangKeeper*> the_gang = nullptr;
/// While it is made: a second one that is closed again would take the locks of the first.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): of the process
constinit std::mutex making;

/// Null where the job is none, or has no turns.
GangKeeper* gang() {
  if (GangKeeper* const known = the_gang.load(std::memory_order_acquire)) return known;
  const char* const directory = Session::get().gang_directory();
  if (directory == nullptr) return nullptr;
  const std::lock_guard locked(making);
  if (GangKeeper* const known = the_gang.load(std::memory_order_acquire)) return known;
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): kept for ever
  auto* const made = new GangKeeper(directory);
  the_gang.store(made, std::memory_order_release);
  if (!made->is_usable()) made->say_unusable();
  return made;
}

}  // namespace

bool has_gang() {
  GangKeeper* const its = gang();
  return its != nullptr && its->is_usable();
}

bool start_gang_keeper() { return gang()->start(); }

void wake_gang() {
  if (GangKeeper* const its = the_gang.load(std::memory_order_acquire)) its->wake();
}

void forget_gang() {
  new (&making) std::mutex;  // the parent's may be locked
  the_gang.store(nullptr);
}

}  // namespace gflow::interpose

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "park/checkpoint_driver.h"
#include "park/gpu_memory.h"

namespace gflow::park {

/// How a job stands afterwards.
enum class Standstill : std::uint8_t {
  Done,     ///< as was asked: all its GPU processes are parked, or all run
  Refused,  ///< as before
  NoRoom,   ///< by unpark(): all its GPU processes are parked, and cannot be where they are to
  Unclear,  ///< some so, some so: to be asked again
  Broken,   ///< a process of it cannot go on
};

struct Outcome {
  Standstill standstill = Standstill::Done;
  std::string why{};  ///< "" if it is done
  ByGpu taken{};      ///< by park(): what this call took, and unpark() needs
};

/// What park() keeps to.
struct Limits {
  std::optional<Memory> most{};  ///< all of it together
  int record = -1;               ///< a descriptor for what is taken; -1: none
  /// The account in which all of its processes must have slots, as those have that tell when they
  /// want their GPU back (watchers.h); empty: they need not.
  std::optional<std::string> watched{};
};

/// On which GPU unpark() gives it back, instead of where it was.
struct Move {
  GpuPair pair;
  /// It was begun the other way, which could not be, and is undone.
  bool is_back = false;
};

/// All processes of one job that use the GPU: those below its supervisor that the driver knows.
/// How each stands is asked of the driver each time, so whatever an earlier call left, which may
/// have been killed anywhere, is brought on. None of them may be stopped.
class Parking {
 public:
  /// `lock_patience`: how long what a process launched may take.
  Parking(const CheckpointDriver& driver,
          const GpuMemory& memory,
          int supervisor,
          std::chrono::milliseconds lock_patience)
      : driver_(driver), memory_(memory), supervisor_(supervisor), lock_patience_(lock_patience) {}

  /// Takes the GPU memory of all to host memory, where they stay until unpark(): all are locked
  /// before the first is touched, as one may wait for another. If one cannot be, all run on, unless
  /// an earlier call had parked some of them, or what was taken has no room any more: then all
  /// wait.
  /// What it is about to take of a process is written to the record first, so that whoever is
  /// killed in it leaves no less there than is taken.
  [[nodiscard]] Outcome park(const Limits& limits) const;
  /// Gives it back and lets them go on. If one cannot have it, all stay parked. `needed` is asked
  /// for before: where a GPU has no room, drivers (580) give nothing back ever after.
  [[nodiscard]] Outcome unpark(const ByGpu& needed) const;
  /// The same, but it is given to all of them on that GPU, wherever each was: whatever came to
  /// stand elsewhere meanwhile is parked first, and noted in the record. NoRoom, too, where that
  /// cannot be.
  [[nodiscard]] Outcome unpark_onto(const Move& move, ByGpu needed, int record) const;

 private:
  using Act = Result<void> (CheckpointDriver::*)(int) const;

  /// Those that stand so; who has ended is left out.
  [[nodiscard]] Result<std::vector<ProcessFacts>> standing(Standing wanted) const;
  /// Does that to each that stands so, whatever became of the others. Errors: the first.
  [[nodiscard]] Result<void> each(Standing standing, Act act) const;
  [[nodiscard]] bool is_past(const ProcessFacts& process, Standing standing) const;
  [[nodiscard]] Result<void> lock_all() const;
  [[nodiscard]] Result<void> check_running() const;
  [[nodiscard]] Result<void> check_watched(const Limits& limits) const;
  [[nodiscard]] Result<void> check_amount(const Limits& limits, const ByGpu& taken) const;
  /// `taken`: what it took, also if it fails.
  [[nodiscard]] Result<void> take_memory(const Limits& limits, ByGpu& taken) const;
  [[nodiscard]] Result<void> give_back(const ByGpu& needed,
                                       const std::optional<Move>& move = std::nullopt) const;
  [[nodiscard]] Outcome bring_back(const ByGpu& needed,
                                   const std::optional<Move>& move,
                                   const Result<void>& can) const;
  [[nodiscard]] Result<void> gather(const Move& move, ByGpu& needed, int record) const;
  [[nodiscard]] Result<void> checkpoint(const ProcessFacts& process,
                                        int record,
                                        ByGpu& taken) const;
  [[nodiscard]] Result<void> restore(int pid, const std::optional<Move>& move) const;
  [[nodiscard]] Result<void> check_move(const Move& move) const;
  [[nodiscard]] Result<void> all_run_on() const;
  [[nodiscard]] bool is_all_parked() const;
  [[nodiscard]] Outcome outcome(const Result<void>& tried, const Result<void>& undone) const;

  const CheckpointDriver& driver_;
  const GpuMemory& memory_;
  int supervisor_;
  std::chrono::milliseconds lock_patience_;
};

}  // namespace gflow::park

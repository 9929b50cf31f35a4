// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attempt/claim.h"
#include "attempt/exit_record.h"
#include "attempt/order.h"
#include "base/result.h"
#include "core/gpu_limits.h"
#include "core/job.h"
#include "os/fd.h"
#include "runner/gpu_share.h"
#include "runner/park_record.h"

namespace gflow::runner {

class SpareFiles;

/// What holds an attempt to its part of its devices.
struct GpuPart {
  std::string account;  ///< the bytes of its account; "": nothing does
  std::vector<TurnFile> turns;
  bool watches = false;  ///< of whole devices: only when they are wanted back is known by it
};

/// The directory of one attempt as the runner sees it. The shim's view is shim/attempt_dir.h.
class AttemptFiles {
 public:
  AttemptFiles(const std::string& attempts_dir, JobId job, int attempt);
  /// Makes what revoke() gives a second name to, so that taking an attempt back needs no space on a
  /// disk that is full by then. Once, before any attempt is made.
  [[nodiscard]] static Result<void> prepare_to_revoke(const std::string& attempts_dir);

  [[nodiscard]] const std::string& directory() const { return directory_; }
  /// Where the job finds its configuration and its script: under their own names, so that what it
  /// derives from them (a run's name, say) is what its user expects.
  [[nodiscard]] std::string config_path(const Payload& payload) const;
  [[nodiscard]] std::string script_path(const Payload& payload) const;

  /// The directory with the account of its GPU memory.
  [[nodiscard]] std::string share_directory() const { return directory_ + "/share"; }
  /// What its programs are held to by that: nothing without one, and by one of a gflow before this
  /// no share of the devices' time.
  [[nodiscard]] GpuLimits gpu_limits() const;
  /// Writes it into the account; nothing without one of this gflow.
  [[nodiscard]] Result<void> change_share_limit(Share limit) const;

  /// Its programs tell when they want a GPU that is lent: the account, and the pipe they do it by.
  [[nodiscard]] std::string account_path() const;
  /// Whether they do.
  [[nodiscard]] bool watches() const;
  /// The end of the pipe that is read. Errors: it is not what was made.
  [[nodiscard]] Result<os::Fd> open_wanted() const;
  /// What they are told: whether it is lent.
  [[nodiscard]] Result<void> tell_lent(bool is_lent) const;
  [[nodiscard]] bool is_told_lent() const;  ///< also where that cannot be read
  /// Whether one of them has said so since.
  [[nodiscard]] bool is_wanted() const;

  // Where its GPU memory is, is what the name of one file says: `parking` where only the driver
  // knows how the processes stand, `parked` where all of it is in host memory, none where none is.
  // `unparkable` says why it cannot be taken there.

  [[nodiscard]] Result<ParkRecord> park_record() const;
  /// From here on it is `parking`; the file, to be written at its end. One that was begun before
  /// goes on. Errors: WrongState if who was begun before holds its lock, as whoever has a copy of
  /// what is returned does.
  [[nodiscard]] Result<os::Fd> begin_parking(Memory most) const;
  /// It is all in host memory.
  [[nodiscard]] Result<void> note_parked() const;
  /// It is all on its GPU; `refused`: why it stays there, if it has to.
  [[nodiscard]] Result<void> end_parking(const std::string& refused = {}) const;
  /// A GPU of the attempt's node.
  struct MovedTo {
    int gpu = 0;  ///< index
    std::string uuid{};
    friend bool operator==(const MovedTo&, const MovedTo&) = default;
  };
  /// Where it was moved to last; empty: it never was, or what is noted cannot be understood.
  [[nodiscard]] Result<std::optional<MovedTo>> moved_to() const;
  [[nodiscard]] Result<void> note_moved_to(const MovedTo& there) const;

  /// Makes the directory with the order, script, configuration and, if it is held to a part of its
  /// devices, the account. The latter three files belong to the order's user; the directories they
  /// lie in do not, so that whoever removes or walks them meets nothing a user put there. Errors
  /// also if the directory is there: an attempt is started once. One with the order alone takes a
  /// spare directory, if there is one.
  [[nodiscard]] Result<void> create(const attempt::Order& order,
                                    const Payload& payload,
                                    const GpuPart& part = {},
                                    SpareFiles* spare = nullptr) const;

  // What follows tells how the attempt stands. An error says nothing of the attempt: whoever gets
  // one must not judge, and looks again.

  [[nodiscard]] Result<bool> exist() const;
  /// Empty if there is none that can be understood.
  [[nodiscard]] Result<std::optional<attempt::Order>> order() const;
  /// Empty if there is no whole one (yet): one of another attempt is none.
  [[nodiscard]] Result<std::optional<attempt::ExitRecord>> exit_record() const;
  /// Empty if nobody has claimed the attempt. One that cannot be understood is taken for a shim's
  /// of an unknown pid: the attempt may have run.
  [[nodiscard]] Result<std::optional<attempt::Claim>> claim() const;
  /// Claims the attempt for nobody, unless it is claimed. What counts after that is claim().
  [[nodiscard]] Result<void> revoke() const;
  /// Pid of the job's first process, 0 if it has not been noted.
  [[nodiscard]] Result<int> started_pid() const;
  /// Whether the program of the job may have run, by what is there once no shim is left.
  [[nodiscard]] Result<bool> may_have_run() const;
  /// Whether a shim holds the lock, that is, lives.
  [[nodiscard]] Result<bool> is_supervised() const;

 private:
  [[nodiscard]] std::string wanted_path() const;
  [[nodiscard]] std::optional<std::uint32_t> lent_word() const;
  [[nodiscard]] std::string parking_path() const { return directory_ + "/parking"; }
  [[nodiscard]] std::string parked_path() const { return directory_ + "/parked"; }
  [[nodiscard]] std::string unparkable_path() const { return directory_ + "/unparkable"; }
  [[nodiscard]] std::string moved_to_path() const { return directory_ + "/moved-to"; }
  [[nodiscard]] Result<void> make_wanted(const attempt::Order& order) const;
  [[nodiscard]] Result<void> make_turns(const GpuPart& part, const attempt::Order& order) const;
  [[nodiscard]] Result<void> link_turn(const TurnFile& turn, const attempt::Order& order) const;

  JobId job_;
  int attempt_;
  std::string directory_;
  std::string prepared_;
};

/// The attempt a directory "<job>.<attempt>" belongs to.
[[nodiscard]] std::optional<std::pair<JobId, int>> parse_attempt_name(std::string_view name);
[[nodiscard]] std::string attempt_name(JobId job, int attempt);

}  // namespace gflow::runner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "attempt/claim.h"
#include "attempt/control.h"
#include "os/child.h"
#include "os/fd.h"
#include "runner/attempt_files.h"
#include "runner/cgroups.h"
#include "runner/expected_end.h"
#include "runner/ports.h"
#include "runner/runner.h"
#include "runner/spare_files.h"
#include "runner/spawn.h"
#include "runner/watched.h"

namespace gflow::runner {

/// What a Runner is inside.
struct Runner::Core {
  using Key = std::pair<JobId, int>;
  /// Which descriptor of an attempt epoll found ready.
  enum class Source : std::uint64_t {
    Status,
    Shim,
    Survivor,
    Events,
    FirstProcess,
    Parking,
    Wanted
  };

  Core(Options given, Cgroups usable);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  [[nodiscard]] Result<void> prepare();
  void launch(const LaunchOrder& order);
  void stop(Key key, int signal, EndReason reason);
  void send(Watched& watched, const attempt::Control& control);
  /// Sends it if that attempt is watched.
  void tell(Key key, const attempt::Control& control);
  void change_limit(Key key,
                    std::optional<std::chrono::seconds> limit,
                    std::chrono::milliseconds ran);
  void suspend(Key key, Memory park);
  void lend(Key key, Memory most);
  void move(Key key, const GpuMove& move, Memory most);
  void resume(Key key);
  /// Asks whether the driver of this machine can take GPU memory away; poll() hears it.
  void begin_probe();
  [[nodiscard]] std::string parking_enforcement() const;
  [[nodiscard]] Adoption adopt(Key key, const Adopting& known);
  void forget(Key key);
  /// For the next launch. Without it that takes longer, nothing else.
  void make_standby();
  /// Whether the jobs that are watched, and so many files more, are within the share of jobs.
  [[nodiscard]] bool have_share(std::size_t more = 0) const;
  /// Errors: that too many files are open, for one more job or at all.
  [[nodiscard]] Result<void> check_files() const;
  /// The ports an attempt was given before this daemon started.
  void note_ports(Key key);
  void note_ports(Key key, PortBlock block);
  void sweep(const std::vector<Key>& known);
  /// Removes what an earlier daemon kept for attempts to come.
  void remove_spare() const;
  [[nodiscard]] std::vector<Report> poll();
  [[nodiscard]] std::optional<JobId> owner_of(int pid) const;

  Options options;
  Cgroups cgroups;
  os::Fd epoll;
  os::Fd wake;      ///< eventfd: there are reports that no descriptor announces
  os::Fd retry;     ///< timerfd: try again what the machine had no room for
  os::Fd patience;  ///< timerfd: the first of `looks` is due
  std::optional<ExpectedEnd::Clock::time_point> patience_until;  ///< for when it is set
  /// Attempts, when they are looked at and what for: Watched::looks, the first to come first.
  std::set<std::tuple<ExpectedEnd::Clock::time_point, Key, LookFor>> looks;
  std::map<Key, Watched> attempts;
  std::map<std::uint64_t, Key> by_serial;
  std::map<int, JobId> by_shim;
  std::set<Key> doubtful;   ///< of the attempts: how they stand is not known
  std::set<Key> strangers;  ///< found where an attempt was to be started: not ours to remove
  Ports ports;
  std::map<Key, PortBlock> given_ports;  ///< to attempts that are not forgotten
  /// Waits for the next attempt, where the control groups have to be joined.
  std::optional<Standby> standby;
  /// What was made for an attempt that this daemon launched.
  struct Made {
    std::vector<std::string> groups;
    bool only_usual_files = false;  ///< neither script, configuration nor account
    bool has_record = false;        ///< its supervisor has ended and has said how it ended
  };
  std::map<Key, Made> made;  ///< of those that are not forgotten
  SpareFiles spare;
  std::set<Key> ports_unread;  ///< attempts taken over whose ports are not known yet
  std::vector<Report> reports;
  std::optional<os::Child> probe;    ///< begin_probe()
  std::string probe_said;            ///< why it cannot
  std::string isolation;             ///< what keeps jobs from GPUs of others, as Enforcement has it
  bool can_park = false;             ///< it said so
  std::string move_said;             ///< why it cannot move, where it can park
  std::vector<os::Child> abandoned;  ///< gflow-park of attempts that are gone, being killed
  std::uint64_t last_serial = 0;

 private:
  [[nodiscard]] std::optional<Outcome> start(const LaunchOrder& order);
  [[nodiscard]] Result<Shim> start_shim(const AttemptFiles& files,
                                        const attempt::Order& order,
                                        std::optional<Standby> ready);
  [[nodiscard]] std::string shim_log() const { return options.attempts_dir + "/shim.log"; }
  void dismiss_standby();
  void remove(const std::string& directory) const;
  [[nodiscard]] std::vector<std::string> groups_made_for(const AttemptFiles& files, Key key) const;
  [[nodiscard]] Result<attempt::Order> order_for(const LaunchOrder& order, const GpuPart& part);
  [[nodiscard]] std::vector<std::string> environment_for(const LaunchOrder& order,
                                                         const GpuPart& part);
  [[nodiscard]] GpuPart part_for(const LaunchOrder& order) const;
  Watched& watch(JobId job, int attempt, int shim_pid, os::Fd shim);
  [[nodiscard]] bool listen(const Watched& watched, Source source, const os::Fd& fd) const;
  void report(Report report);
  void end(Watched& watched, Outcome outcome);

  using Time = ExpectedEnd::Clock::time_point;
  void look_at(Watched& watched, LookFor what, std::optional<Time> at);
  void begin_looking(Watched& watched, LookFor what, Time from);
  void go_on_looking(Watched& watched, LookFor what, Time from);
  void set_patience();
  void look_at_due();
  void look(Watched& watched, LookFor what, Time now);

  void await_start(Watched& watched);
  void count_from_start(Watched& watched);
  void look_at_launch(Watched& watched, Time now);

  static void send_to_supervisor(const Watched& watched, int signal);
  static void kill_with_supervisor(Watched& watched, KilledFor why);
  void follow(Watched& watched, const attempt::Control& control);
  void expect_end(Watched& watched);
  void look_at_end(Watched& watched, Time now);
  void end_silent(Watched& watched, const ExpectedEnd::Told& told, Time now);
  void end_stopped(Watched& watched, Time now);
  void expect_suspension(Watched& watched, Time now);
  void look_at_suspension(Watched& watched, Time now);
  void look_at_parking(Watched& watched);
  void bring_on_parking(Watched& watched);
  void begin_park(Watched& watched, const ParkRecord& record);
  void begin_unpark(Watched& watched, const ParkRecord& record);
  [[nodiscard]] Result<void> start_park(Watched& watched, bool takes, const ParkRecord& record);
  void park_ended(Watched& watched);
  void parked(Watched& watched);
  void not_parked(Watched& watched, std::string why);
  void unparked(Watched& watched);
  void has_no_room(Watched& watched, std::string why);
  void park_is_done(Watched& watched);
  void bring_on_move(Watched& watched, const ParkRecord& record);
  [[nodiscard]] static ParkRecord::Move direction_of(const ParkingJob& parking,
                                                     const ParkRecord& record);
  void turn_back(Watched& watched, std::string why);
  void moved(Watched& watched);
  void report_move(Watched& watched, std::string refused);
  void park_again_later(Watched& watched, std::string why);
  [[nodiscard]] Result<void> limit_memory(const Watched& watched, Memory more) const;
  void report_parking(const Watched& watched, ParkedMemory parked);
  [[nodiscard]] Result<void> begin_lending(Watched& watched);
  void watch_lent(Watched& watched);
  void wanted(Watched& watched);
  void stop_listening(Watched& watched);
  [[nodiscard]] Result<void> tell_own(Watched& watched);
  void abandon(ParkingJob& parking);
  void reap_abandoned();
  void take_probe();

  void expect_first_process(Watched& watched, int pid);
  void watch_first_process(Watched& watched);
  void first_process_ended(Watched& watched);
  void look_at_remains(Watched& watched, Time now);

  void ready(Watched& watched, Source source);
  void read_status(Watched& watched);
  void heard(Watched& watched, std::string_view line);
  void shim_ended(Watched& watched);
  void conclude(Watched& watched);
  [[nodiscard]] Result<std::optional<Outcome>> verdict(Watched& watched);
  [[nodiscard]] static Outcome never_ran(const Watched& watched);
  [[nodiscard]] static Outcome ended_with_supervisor(const Watched& watched, const KilledFor& why);
  [[nodiscard]] Result<bool> kill_survivors(Watched& watched);
  void drop(Key key);
  void doubt(Watched& watched, std::string why);
  void retry_soon() const;
  void resolve_doubts();
  void look_again(Watched& watched);
  void watch_shim(Watched& watched);
  void queue(Watched& watched, attempt::ControlSignal signal);
  void send_unsent();

  [[nodiscard]] StillRuns still_runs(Key key, int pid) const;
  [[nodiscard]] Result<Adoption> find_out(Key key, const Adopting& known);
  [[nodiscard]] Result<Adoption> adopt_claimed(Key key, const attempt::ShimClaim& claim);
  [[nodiscard]] Result<Adoption> adopt_without_directory(Key key, bool started);
  [[nodiscard]] Watched& watch_known(Key key, const std::optional<attempt::Order>& order);
};

}  // namespace gflow::runner

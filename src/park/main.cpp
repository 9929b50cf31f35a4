// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "os/file.h"
#include "os/process.h"
#include "os/user.h"
#include "park/checkpoint_driver.h"
#include "park/parking.h"

// gflow-park: the one program that has the CUDA driver take the GPU memory of a job to host memory
// and back, in a process of its own, as a call of the driver may not return, and as the job's user.
// It may be killed anywhere and run again.
namespace gflow::park {
namespace {

constexpr std::string_view kHelp =
    "Usage: gflow-park probe\n"
    "       gflow-park park SUPERVISOR START-TIME SECONDS [--user UID] [--most BYTES]\n"
    "                  [--record FD] [--watched FILE]\n"
    "       gflow-park unpark SUPERVISOR START-TIME SECONDS [--user UID] [--room GPU=BYTES]...\n"
    "                  [--record FD] [--onto FROM=TO | --back FROM=TO]\n"
    "Takes the GPU memory of the processes below a supervisor to host memory, or gives it back,\n"
    "for gflowd. START-TIME is field 22 of /proc/SUPERVISOR/stat; after SECONDS it gives up.\n"
    "  --user UID        the user to become\n"
    "  --most BYTES      takes nothing where they have more than that\n"
    "  --record FD       writes there before it takes it what it takes of each process: a line\n"
    "                    \"PID GPU BYTES\" each; nothing that it starts has this descriptor\n"
    "  --watched FILE    takes nothing where one of them has no slot in this account, as one that\n"
    "                    could not tell that it wants its GPU back\n"
    "  --room GPU=BYTES  gives nothing back where the GPU of this UUID has less than that free\n"
    "  --onto FROM=TO    gives it back on the GPU TO instead, of those that were on the GPU FROM:\n"
    "                    UUIDs of two GPUs of one model and size (driver 580 or newer)\n"
    "  --back FROM=TO    the same, where --onto TO=FROM could not be\n"
    "park writes what it took, a line \"GPU BYTES\" each; what went wrong is one line. Exit "
    "status:\n"
    "  0  done; probe: the driver of this machine can, and why it cannot move, a line\n"
    "  1  refused: all is as it was\n"
    "  2  the arguments are not understood\n"
    "  3  unclear: to be asked again\n"
    "  4  a process lost its GPU memory\n"
    "  5  a GPU has no room, or is not one for them: all is in host memory\n";

constexpr int kNotUnderstood = 2;
constexpr std::uint64_t kMaxSeconds = 86'400;
constexpr std::chrono::seconds kProbePatience{30};

struct Wish {
  bool parks = true;
  int supervisor = 0;
  std::uint64_t start_time = 0;
  std::chrono::seconds patience{};
  std::optional<std::uint32_t> user;
  ByGpu room;
  Limits limits{};
  std::optional<Move> move{};
};

std::optional<std::uint64_t> number_up_to(std::string_view text, std::uint64_t most) {
  const auto number = parse_number(text);
  return number && *number <= most ? number : std::nullopt;
}

std::optional<std::pair<std::string, Memory>> read_room(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
  const auto bytes =
      number_up_to(text.substr(equals + 1), std::numeric_limits<std::int64_t>::max());
  if (!bytes) return std::nullopt;
  return std::pair(std::string(text.substr(0, equals)), Memory{static_cast<std::int64_t>(*bytes)});
}

std::optional<Move> read_move(std::string_view name, std::string_view value) {
  const std::size_t equals = value.find('=');
  if (equals == 0 || equals == std::string_view::npos || equals + 1 == value.size()) {
    return std::nullopt;
  }
  return Move{{std::string(value.substr(0, equals)), std::string(value.substr(equals + 1))},
              name == "--back"};
}

/// False if it is not understood.
bool read_option(std::string_view name, std::string_view value, Wish& wish) {
  // The largest one is none: for setresuid() it means as before.
  const auto number = number_up_to(value, std::numeric_limits<std::uint32_t>::max() - 1);
  if (name == "--user" && number) {
    wish.user = static_cast<std::uint32_t>(*number);
    return true;
  }
  if (name == "--most" && wish.parks) {
    const auto most = number_up_to(value, std::numeric_limits<std::int64_t>::max());
    if (most) wish.limits.most = Memory{static_cast<std::int64_t>(*most)};
    return most.has_value();
  }
  if (name == "--record") {
    const auto record = number_up_to(value, std::numeric_limits<int>::max());
    // What the driver starts does not have it: the lock of the file would be its own, too.
    if (record) wish.limits.record = static_cast<int>(*record);
    return record && ::fcntl(wish.limits.record, F_SETFD, FD_CLOEXEC) == 0;
  }
  if (name == "--watched" && wish.parks && !value.empty()) {
    wish.limits.watched = value;
    return true;
  }
  if ((name == "--onto" || name == "--back") && !wish.parks && !wish.move) {
    wish.move = read_move(name, value);
    return wish.move.has_value();
  }
  const auto room = name == "--room" && !wish.parks ? read_room(value) : std::nullopt;
  if (room) wish.room[room->first] += room->second;
  return room.has_value();
}

std::optional<Wish> read_wish(std::span<char*> words) {
  constexpr std::size_t kFirstOption = 4;
  if (words.size() < kFirstOption || words.size() % 2 != 0) return std::nullopt;
  const std::string_view verb = words[0];
  const auto supervisor = number_up_to(words[1], std::numeric_limits<int>::max());
  const auto start_time = parse_number(words[2]);
  const auto seconds = number_up_to(words[3], kMaxSeconds);
  if ((verb != "park" && verb != "unpark") || !supervisor || !start_time ||
      seconds.value_or(0) == 0) {
    return std::nullopt;
  }
  Wish wish{.parks = verb == "park",
            .supervisor = static_cast<int>(*supervisor),
            .start_time = *start_time,
            .patience = std::chrono::seconds(*seconds),
            .user = std::nullopt,
            .room = {},
            .limits = {},
            .move = {}};
  for (std::size_t at = kFirstOption; at < words.size(); at += 2) {
    if (!read_option(words[at], words[at + 1], wish)) return std::nullopt;
  }
  return wish;
}

int exit_status(Standstill standstill) {
  switch (standstill) {
    case Standstill::Done:
      return 0;
    case Standstill::Refused:
      return 1;
    case Standstill::NoRoom:
      return 5;
    case Standstill::Unclear:
      return 3;
    case Standstill::Broken:
      return 4;
  }
  return 3;
}

int say(const Outcome& outcome) {
  std::string text = outcome.why.empty() ? "" : outcome.why + "\n";
  for (const auto& [gpu, memory] : outcome.taken) text += fmt::format("{} {}\n", gpu, memory.bytes);
  (void)os::write_all(STDOUT_FILENO, text);  // the exit status says it, too
  return exit_status(outcome.standstill);
}

/// For good, before the driver is loaded.
Result<void> become(std::uint32_t uid) {
  if (uid == ::geteuid()) return {};
  const os::Account account = os::account_of(uid);
  const std::vector<std::uint32_t> groups = os::groups_of(account);
  if (::setgroups(groups.size(), groups.data()) != 0 ||
      ::setresgid(account.gid, account.gid, account.gid) != 0 || ::setresuid(uid, uid, uid) != 0) {
    return os::errno_error("become", account.name);
  }
  return {};
}

/// Ends the process when its time is over: a call of the driver that does not return cannot be left
/// otherwise. What was begun is found again by the next one.
class Deadline {
 public:
  explicit Deadline(std::chrono::seconds patience)
      : thread_([this, patience] { wait(patience); }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(lock_);
      is_over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  void wait(std::chrono::seconds patience) {
    std::unique_lock lock(lock_);
    if (changed_.wait_for(lock, patience, [this] { return is_over_; })) return;
    ::_exit(say({Standstill::Unclear,
                 fmt::format("the driver did not answer within {} s", patience.count())}));
  }

  std::mutex lock_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

/// The supervisor is root's, where /proc may not show it to its user.
Outcome carry_out(const Wish& wish) {
  const auto refused = [](const Error& error) {
    return Outcome{Standstill::Refused, error.message};
  };
  const auto supervisor = os::process_facts(wish.supervisor);
  if (!supervisor || supervisor->start_time != wish.start_time) {
    return {Standstill::Refused, "the supervisor of the job is gone"};
  }
  const Deadline deadline(wish.patience);  // a directory of users may not answer, either
  if (wish.user) {
    if (const auto became = become(*wish.user); !became) return refused(became.error());
  }
  const auto driver = CheckpointDriver::open();
  if (!driver) return refused(driver.error());
  const auto memory = GpuMemory::open();
  if (!memory) return refused(memory.error());
  if (const auto ready = driver->initialize(); !ready) return refused(ready.error());
  // Half of the time is left to undo it.
  const Parking parking(*driver, *memory, wish.supervisor, wish.patience / 2);
  if (wish.parks) return parking.park(wish.limits);
  return wish.move ? parking.unpark_onto(*wish.move, wish.room, wish.limits.record)
                   : parking.unpark(wish.room);
}

int run(std::span<char*> words) {
  if (words.size() == 1 && std::string_view(words[0]) == "--help") {
    return os::write_all(STDOUT_FILENO, kHelp) ? 0 : 1;
  }
  if (words.size() == 1 && std::string_view(words[0]) == "probe") {
    const Deadline deadline(kProbePatience);
    const auto driver = CheckpointDriver::open();
    if (!driver) return say({Standstill::Refused, driver.error().message});
    return driver->can_move() ? 0 : say({Standstill::Done, std::string(kCannotMove)});
  }
  const auto wish = read_wish(words);
  if (wish) return say(carry_out(*wish));
  (void)os::write_all(STDERR_FILENO, kHelp);
  return kNotUnderstood;
}

}  // namespace
}  // namespace gflow::park

int main(int count, char** arguments) {
  // What gflowd was started with is not what its jobs have.
  (void)::unsetenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe): no thread yet
  return gflow::park::run({arguments + 1, static_cast<std::size_t>(count - 1)});
}

// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <sstream>

#include "base/proc_text.h"

namespace fake_cuda {
namespace {

std::uint64_t start_time_of(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const auto facts = gflow::parse_proc_stat(text.str());
  return facts && !facts->is_dead() ? facts->start_time : 0;
}

/// A byte of the file, locked as fcntl(2) does: the kernel takes it from whoever dies with it.
void set_lock(int file, off_t byte, short kind) {
  struct flock lock{};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  while (::fcntl(file, F_SETLKW, &lock) != 0 && errno == EINTR) {
  }
}

constexpr std::uint64_t kMillisecond = 1'000'000;

/// By where the account of this process is.
std::uint64_t own_job() {
  const char* const directory = ::getenv("GFLOW_SHARE_DIR");
  return directory == nullptr ? 0 : std::hash<std::string>{}(directory) | 1;
}

}  // namespace

/// Between threads by a mutex, between processes by a lock of the file. Sums are made anew each
/// time: there is none that could be wrong.
class Machine::Locked {
 public:
  explicit Locked(Machine& machine) : machine_(machine), threads_(machine.threads_) {
    set_lock(machine_.file_, 0, F_WRLCK);
    for (Shared::Process& process : machine_.shared_->processes) {
      if (process.pid != 0 && start_time_of(process.pid) != process.start_time) process = {};
    }
  }
  ~Locked() { set_lock(machine_.file_, 0, F_UNLCK); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Machine& machine_;
  std::lock_guard<std::mutex> threads_;
};

/// A device that has worked until now. What a process that died had in its queue goes with it, some
/// milliseconds later.
class Machine::Playing {
 public:
  Playing(Machine& machine, std::size_t gpu)
      : machine_(machine), threads_(machine.playing_), gpu_(machine.shared_->gpus[gpu]) {
    set_lock(machine_.file_, 1, F_WRLCK);
    const std::uint64_t time = now();
    play(time);
    if (time < machine_.shared_->queues_swept_at + 5 * kMillisecond) return;
    machine_.shared_->queues_swept_at = time;
    for (Gpu& one : machine_.shared_->gpus) sweep(one);
  }
  ~Playing() { set_lock(machine_.file_, 1, F_UNLCK); }
  Playing(const Playing&) = delete;
  Playing& operator=(const Playing&) = delete;

  /// This process's.
  Gpu::Queue& own() {
    const int pid = ::getpid();
    Gpu::Queue* its = gpu_.queue_of(pid);
    if (its == nullptr) sweep(gpu_);
    if (its == nullptr) its = gpu_.queue_of(pid);
    if (its == nullptr) std::abort();
    if (its->pid == 0) *its = {.pid = pid, .start_time = start_time_of(pid), .job = own_job()};
    return *its;
  }
  [[nodiscard]] Work contested() const { return gpu_.contested(); }

 private:
  /// All devices in small steps while kernels of several meet.
  void play(std::uint64_t time) {
    constexpr std::uint64_t kStep = 20'000;
    Shared& shared = *machine_.shared_;
    const std::size_t count = machine_.devices.size();
    for (; shared.met_until != 0 && shared.met_until < time; shared.met_until += kStep) {
      for (Gpu& gpu : std::span(shared.gpus).first(count)) {
        gpu.play(std::min(shared.met_until, time), machine_.slice);
      }
      end_meetings(std::span(shared.gpus).first(count));
    }
    gpu_.play(time, machine_.slice);
  }
  static void sweep(Gpu& gpu) {
    for (Gpu::Queue& queue : gpu.queues()) {
      if (queue.pid != 0 && start_time_of(queue.pid) != queue.start_time) queue = {};
    }
  }
  Machine& machine_;
  std::lock_guard<std::mutex> threads_;
  Gpu& gpu_;
};

Machine* Machine::get() {
  static Machine* const machine = [] {
    const char* const path = ::getenv("GFLOW_FAKE_CUDA");
    auto made = std::unique_ptr<Machine>(new Machine(path == nullptr ? "" : path));
    return made->shared_ == nullptr ? nullptr : made.release();
  }();
  return machine;
}

Machine::Machine(const std::string& path) {
  if (!read(path)) {
    (void)std::fprintf(stderr, "fake libcuda: no machine in \"%s\"\n", path.c_str());
    return;
  }
  file_ = ::open((path + ".state").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0 || ::ftruncate(file_, sizeof(Shared)) != 0) return;
  void* const mapped =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (mapped != MAP_FAILED) shared_ = static_cast<Shared*>(mapped);
}

bool Machine::read(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    std::uint64_t mib = 0;
    if (key == "driver") words >> driver_version;
    if (key == "context" && words >> mib) context_bytes = mib * kMiB;
    if (key == "slice" && words >> slice) slice *= 1000;
    if (key == "checkpoint") spoils_checkpoints = line.ends_with("spoils");
    if (key != "device") continue;
    DeviceFacts device;
    words >> device.uuid >> mib >> std::ws;
    device.bytes = mib * kMiB;
    std::getline(words, device.name);
    devices.push_back(device);
  }
  return !devices.empty() && devices.size() <= kMaxDevices;
}

Shared::Process& Machine::own() {
  const int pid = ::getpid();
  Shared::Process* free = nullptr;
  for (Shared::Process& process : shared_->processes) {
    if (process.pid == pid) return process;
    if (process.pid == 0 && free == nullptr) free = &process;
  }
  if (free == nullptr) std::abort();
  free->start_time = start_time_of(pid);
  free->bytes = {};
  free->requests = {};
  free->pid = pid;
  return *free;
}

std::uint64_t Machine::sum(std::size_t device) {
  std::uint64_t bytes = 0;
  for (const Shared::Process& process : shared_->processes) bytes += process.bytes[device];
  return bytes;
}

void Machine::move(std::size_t device, std::size_t gpu) {
  const Work done = this->done(device);
  const auto other = std::ranges::find(gpus_, gpu);
  std::swap(gpus_[device], *other);
  // Places in its streams are what its old GPU had done for it.
  Playing playing(*this, gpu);
  Gpu::Queue& own = playing.own();
  own.asked = own.done = std::max(own.done, done);
}

std::optional<std::size_t> Machine::find(const abi::Uuid& uuid) const {
  for (std::size_t gpu = 0; gpu < devices.size(); ++gpu) {
    const abi::Uuid its = uuid_in(devices[gpu].uuid);
    if (std::memcmp(&its, &uuid, sizeof uuid) == 0) return gpu;
  }
  return std::nullopt;
}

bool Machine::take(std::size_t device, std::uint64_t bytes) {
  const std::size_t gpu = gpu_of(device);
  const Locked locked(*this);
  const std::uint64_t before = sum(gpu);
  if (bytes > devices[gpu].bytes - before) return false;
  own().bytes[gpu] += bytes;
  shared_->peak[gpu] = std::max(shared_->peak[gpu], before + bytes);
  return true;
}

void Machine::give_back(std::size_t device, std::uint64_t bytes) {
  const Locked locked(*this);
  std::uint64_t& has = own().bytes[gpu_of(device)];
  has -= std::min(has, bytes);
}

std::uint64_t Machine::has(std::size_t device) {
  const Locked locked(*this);
  return own().bytes[gpu_of(device)];
}

std::uint64_t Machine::used(std::size_t gpu) {
  const Locked locked(*this);
  return sum(gpu);
}

std::uint64_t Machine::peak(std::size_t gpu) {
  const Locked locked(*this);
  return shared_->peak[gpu];
}

std::map<int, std::uint64_t> Machine::processes(std::size_t gpu) {
  const Locked locked(*this);
  std::map<int, std::uint64_t> found;
  for (const Shared::Process& process : shared_->processes) {
    if (process.bytes[gpu] > 0) found[process.pid] = process.bytes[gpu];
  }
  return found;
}

Work Machine::add(std::size_t device, Work length) {
  Playing playing(*this, gpu_of(device));
  Gpu::Queue& own = playing.own();
  own.asked += length;
  if (length >= kUntilTold) own.told = own.asked;
  return own.asked;
}

Work Machine::add_meeting(std::size_t device, Meeting meeting, Work length) {
  Playing playing(*this, gpu_of(device));
  if (shared_->met_until == 0) shared_->met_until = now();
  Gpu::Queue& own = playing.own();
  own.add_meeting(meeting.circle, meeting.size);
  own.asked += length;
  return own.asked;
}

std::uint32_t Machine::last_round(std::uint32_t circle, std::uint32_t proposed) {
  const Locked locked(*this);
  std::uint32_t& its = shared_->last_rounds[circle % shared_->last_rounds.size()];
  if (its == 0) its = proposed;
  return its;
}

Work Machine::worked_for_own(std::size_t device) {
  return Playing(*this, gpu_of(device)).own().worked();
}

Work Machine::worked(std::size_t gpu) {
  const std::lock_guard threads(playing_);
  set_lock(file_, 1, F_WRLCK);
  const Work worked = shared_->gpus[gpu].worked();
  set_lock(file_, 1, F_UNLCK);
  return worked;
}

Work Machine::contested(std::size_t gpu) { return Playing(*this, gpu).contested(); }

Work Machine::done(std::size_t device) { return Playing(*this, gpu_of(device)).own().done; }

void Machine::tell(std::size_t device) {
  Playing playing(*this, gpu_of(device));
  Gpu::Queue& own = playing.own();
  own.skip_to(own.told);
}

/// When it will be done is not known, as others may come: not before it could be without them.
void Machine::wait_for(std::size_t device, Work place) {
  for (Work had = done(device); had < place; had = done(device)) {
    const Work left = place - had;
    const bool meets = left > kUntilMet / 2;
    sleep_until(now() + (meets ? kMillisecond / 10
                               : std::clamp<std::uint64_t>(left, 20'000, 2 * kMillisecond)));
  }
}

Requests& Machine::begin_serving() {
  const Locked locked(*this);
  Requests& requests = own().requests;
  // Those of the program that this process was before are gone with it.
  requests = {.thread = static_cast<std::int32_t>(::syscall(SYS_gettid))};
  return requests;
}

void Machine::await_serving() {
  while (!requests_of(::getpid())) sleep_until(now() + kMillisecond / 10);
}

/// Under the lock.
Shared::Process* Machine::serving(int pid) {
  for (Shared::Process& process : shared_->processes) {
    if (process.pid == pid && process.requests.thread != 0) return &process;
  }
  return nullptr;
}

std::optional<Requests> Machine::requests_of(int pid) {
  const Locked locked(*this);
  const Shared::Process* const its = serving(pid);
  return its == nullptr ? std::nullopt : std::optional(its->requests);
}

std::optional<std::uint32_t> Machine::put(int pid, const Request& request) {
  for (bool waits = false;; waits = true) {
    Requests* its = nullptr;
    std::uint32_t answered = 0;
    {
      const Locked locked(*this);
      Shared::Process* const process = serving(pid);
      if (process == nullptr) return std::nullopt;
      its = &process->requests;
      answered = value_of(its->answered);
      if (its->asked != answered && !waits) ++its->waiting;
      if (its->asked == answered) {
        if (waits) --its->waiting;
        its->request = request;
        change(its->asked, answered + 1);
        return answered + 1;
      }
    }
    wait_for_change(its->answered, answered);
  }
}

std::optional<std::int32_t> Machine::await(int pid, std::uint32_t number) {
  while (true) {
    Requests* its = nullptr;
    std::uint32_t answered = 0;
    {
      const Locked locked(*this);
      Shared::Process* const process = serving(pid);
      if (process == nullptr) return std::nullopt;
      its = &process->requests;
      answered = value_of(its->answered);
      if (static_cast<std::int32_t>(answered - number) >= 0) {
        return its->results[number % its->results.size()];
      }
    }
    wait_for_change(its->answered, answered);
  }
}

abi::Uuid uuid_in(const std::string& text) {
  abi::Uuid uuid{};
  std::string digits;
  for (const char letter : text.substr(4)) {
    if (letter != '-') digits.push_back(letter);
  }
  for (std::size_t at = 0; at < 16; ++at) {
    uuid.bytes[at] = static_cast<unsigned char>(std::stoul(digits.substr(2 * at, 2), nullptr, 16));
  }
  return uuid;
}

std::uint64_t now() {
  timespec time{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void sleep_until(std::uint64_t time) {
  const timespec until{.tv_sec = static_cast<time_t>(time / 1'000'000'000),
                       .tv_nsec = static_cast<long>(time % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace fake_cuda

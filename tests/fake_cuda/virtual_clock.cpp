// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>

// A clock that stands while a thread runs, for tests of what programs do over time: loaded before
// everything else (LD_PRELOAD), it is CLOCK_MONOTONIC of the processes that map the file in
// $GFLOW_VIRTUAL_CLOCK. Where all of their threads sleep or wait for a condition, the clock goes to
// when the first of them wakes; so what they do takes no time, however loaded the machine is.
//
// It begins with as many parties as the file says, each of them running from its start until it
// leaves (virtualClockLeave), where it waits for the others: a process that is gone wakes nobody.
namespace {

constexpr std::uint64_t kStart = 1'000'000'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::size_t kMaxSleepers = 64;

struct Sleeper {
  std::uint64_t wakes_at;  ///< 0: nobody's
  std::uint64_t number;    ///< who fell asleep first wakes first
  std::atomic<std::uint32_t> is_awake;
};

/// The file: a mutex that processes share, the parties twice, and zeros.
struct Clock {
  pthread_mutex_t lock;
  std::uint32_t running;
  std::uint32_t parties;
  std::atomic<std::uint32_t> left;
  std::atomic<std::uint64_t> passed;
  std::uint64_t sleeps;
  std::array<Sleeper, kMaxSleepers> sleepers;
};
static_assert(sizeof(pthread_mutex_t) == 40 && sizeof(Clock) <= 4096);

Clock& the_clock() {
  static Clock* const mapped = [] {
    const char* const path = ::getenv("GFLOW_VIRTUAL_CLOCK");
    const int file = ::open(path == nullptr ? "" : path, O_RDWR | O_CLOEXEC);
    void* const at = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || at == MAP_FAILED) {
      ::perror("virtual clock");
      std::abort();
    }
    (void)::close(file);
    return static_cast<Clock*>(at);
  }();
  return *mapped;
}

class Locked {
 public:
  Locked() { (void)::pthread_mutex_lock(&the_clock().lock); }
  ~Locked() { (void)::pthread_mutex_unlock(&the_clock().lock); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  while (word.load() == value) {
    (void)::syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
  }
}

void set(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  word.store(value);
  (void)::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// A thread of those that run does not any more. The last one wakes the next. Under the lock.
void stop_running() {
  Clock& clock = the_clock();
  if (--clock.running > 0) return;
  Sleeper* first = nullptr;
  for (Sleeper& each : clock.sleepers) {
    if (each.wakes_at == 0 || each.is_awake != 0) continue;
    const bool is_earlier = first == nullptr || each.wakes_at < first->wakes_at ||
                            (each.wakes_at == first->wakes_at && each.number < first->number);
    if (is_earlier) first = &each;
  }
  if (first == nullptr) return;
  clock.passed = std::max(clock.passed.load(), first->wakes_at - kStart);
  ++clock.running;
  set(first->is_awake, 1);
}

void sleep_until(std::uint64_t time) {
  Clock& clock = the_clock();
  Sleeper* own = nullptr;
  {
    const Locked locked;
    own = std::ranges::find(clock.sleepers, 0U, &Sleeper::wakes_at);
    if (own == clock.sleepers.end()) std::abort();
    own->number = ++clock.sleeps;
    own->is_awake = 0;
    own->wakes_at = std::max(time, kStart + clock.passed);
    stop_running();
  }
  wait_while(own->is_awake, 0);
  const Locked locked;
  own->wakes_at = 0;
}

/// Of this process: who waits for which condition.
struct Waiter {
  const pthread_cond_t* condition;
  std::atomic<std::uint32_t> is_awake;
};
pthread_mutex_t waiting = PTHREAD_MUTEX_INITIALIZER;
std::list<Waiter*>& waiters() {
  static auto* const all = new std::list<Waiter*>;  // in use until the very end of the process
  return *all;
}

struct Thread {
  void* (*run)(void*);
  void* argument;
};

void* run_thread(void* given) {
  const Thread thread = *static_cast<Thread*>(given);
  delete static_cast<Thread*>(given);
  void* const result = thread.run(thread.argument);
  const Locked locked;
  stop_running();
  return result;
}

std::uint64_t nanoseconds(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void virtualClockLeave() {
  Clock& clock = the_clock();
  {
    const Locked locked;
    set(clock.left, clock.left + 1);
    stop_running();
  }
  for (std::uint32_t left = clock.left; left < clock.parties; left = clock.left) {
    wait_while(clock.left, left);
  }
}

EXPORT int clock_gettime(clockid_t which, timespec* time) noexcept {
  if (which != CLOCK_MONOTONIC) {
    return static_cast<int>(::syscall(SYS_clock_gettime, which, time));
  }
  const std::uint64_t now = kStart + the_clock().passed;
  *time = {.tv_sec = static_cast<time_t>(now / kSecond),
           .tv_nsec = static_cast<long>(now % kSecond)};
  return 0;
}

EXPORT int clock_nanosleep(clockid_t which, int flags, const timespec* time, timespec* left) {
  if (which != CLOCK_MONOTONIC) {
    return ::syscall(SYS_clock_nanosleep, which, flags, time, left) == 0 ? 0 : errno;
  }
  const std::uint64_t from = flags == TIMER_ABSTIME ? 0 : kStart + the_clock().passed;
  sleep_until(from + nanoseconds(*time));
  return 0;
}

EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  Waiter own{.condition = condition, .is_awake = 0};
  (void)::pthread_mutex_lock(&waiting);
  waiters().push_back(&own);
  (void)::pthread_mutex_unlock(&waiting);
  (void)::pthread_mutex_unlock(mutex);
  {
    const Locked locked;
    stop_running();
  }
  wait_while(own.is_awake, 0);
  return ::pthread_mutex_lock(mutex);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  (void)::pthread_mutex_lock(&waiting);
  std::erase_if(waiters(), [condition](Waiter* waiter) {
    if (waiter->condition != condition) return false;
    const Locked locked;
    ++the_clock().running;
    set(waiter->is_awake, 1);
    return true;
  });
  (void)::pthread_mutex_unlock(&waiting);
  return 0;
}

EXPORT int pthread_create(pthread_t* thread,
                          const pthread_attr_t* attributes,
                          void* (*run)(void*),
                          void* argument) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const create = reinterpret_cast<Create*>(::dlsym(RTLD_NEXT, "pthread_create"));
  {
    const Locked locked;
    ++the_clock().running;
  }
  const int result = create(thread, attributes, run_thread, new Thread{run, argument});
  if (result != 0) {
    const Locked locked;
    stop_running();
  }
  return result;
}

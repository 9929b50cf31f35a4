// SPDX-License-Identifier: Apache-2.0
#include "share/account.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "share/account_file.h"
#include "share/gang.h"

namespace gflow::share {
namespace {

const std::string kFirst = "GPU-11111111-2222-3333-4444-555555555555";
const std::string kSecond = "GPU-66666666-2222-3333-4444-555555555555";

/// An account that child processes share.
class SharedAccount {
 public:
  explicit SharedAccount(const std::vector<DeviceLimit>& devices)
      : account_(static_cast<Account*>(::mmap(
            nullptr, sizeof(Account), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    const auto bytes = encode_account(devices);
    std::memcpy(static_cast<void*>(account_), bytes->data(), bytes->size());
  }
  ~SharedAccount() { (void)::munmap(account_, sizeof(Account)); }
  SharedAccount(const SharedAccount&) = delete;
  SharedAccount& operator=(const SharedAccount&) = delete;

  Account& operator*() const { return *account_; }
  [[nodiscard]] AccountBook book() const { return AccountBook(*account_); }
  [[nodiscard]] std::uint64_t used(std::size_t device = 0) const {
    return account_->devices[device].used.load();
  }
  [[nodiscard]] std::uint64_t charged(std::size_t device = 0) const {
    std::uint64_t sum = 0;
    for (const ProcessSlot& slot : account_->processes) sum += slot.charged[device].load();
    return sum;
  }

 private:
  Account* account_;
};

/// Runs it in a child process, which never comes back, and waits for its end.
template <typename Run>
int status_of_child(Run run) {
  const pid_t child = ::fork();
  if (child == 0) {
    run();
    ::_exit(0);
  }
  int status = 0;
  (void)::waitpid(child, &status, 0);
  return status;
}

std::uint32_t own_namespace() { return this_process().pid_namespace; }

TEST(Account, IsWhatWasWritten) {
  const auto bytes = encode_account({{kFirst, 100}, {kSecond, 200}});
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), sizeof(Account));
  const SharedAccount account({{kFirst, 100}, {kSecond, 200}});
  EXPECT_TRUE(AccountBook::is_account(*account, bytes->size()));
  EXPECT_FALSE(AccountBook::is_account(*account, bytes->size() - 1));
  EXPECT_EQ(account.book().find_device(kSecond), 1);
  EXPECT_EQ(account.book().device(1).limit, 200);
  EXPECT_EQ(account.book().find_device("GPU-none"), std::nullopt);
  EXPECT_EQ((*account).lent, kNotLent);
  (*account).version = kAccountVersion + 1;
  EXPECT_FALSE(AccountBook::is_account(*account, bytes->size()));
  (*account).version = kOlderAccountVersion;
  EXPECT_TRUE(AccountBook::is_account(*account, bytes->size()));
  (*account).version = kOlderAccountVersion - 1;
  EXPECT_FALSE(AccountBook::is_account(*account, bytes->size()));
}

TEST(Account, WithoutDevicesIsOfWholeGpus) {
  const SharedAccount account({});
  EXPECT_TRUE(AccountBook::is_account(*account, sizeof(Account)));
  EXPECT_TRUE(AccountBook::is_of_whole_gpus(*account));
  EXPECT_TRUE(account.book().enter({.pid = 1}));
  (*account).version = kOlderAccountVersion;
  EXPECT_FALSE(AccountBook::is_of_whole_gpus(*account));
  EXPECT_FALSE(AccountBook::is_of_whole_gpus(*SharedAccount({{kFirst, 100}})));
  static_assert(offsetof(Account, lent) == 20 && offsetof(Account, lock) == 24);
}

TEST(Account, RefusesWhatIsNoDevice) {
  EXPECT_FALSE(encode_account({{"", 1}}));
  EXPECT_FALSE(encode_account({{std::string(kUuidSize, 'x'), 1}}));
  EXPECT_FALSE(encode_account(std::vector<DeviceLimit>(kMaxDevices + 1, {kFirst, 1})));
}

TEST(Account, GivesExactlyTheLimit) {
  const SharedAccount account({{kFirst, 1000}, {kSecond, 5}});
  AccountBook book = account.book();
  const auto one = book.enter({.pid = 1});
  const auto two = book.enter({.pid = 2});
  ASSERT_TRUE(one && two && one != two);
  EXPECT_FALSE(book.reserve(*one, 0, 1001));
  EXPECT_TRUE(book.reserve(*one, 0, 600));
  EXPECT_FALSE(book.reserve(*two, 0, 401));
  EXPECT_FALSE(book.reserve(*two, 0, ~std::uint64_t{0}));
  EXPECT_TRUE(book.reserve(*two, 0, 400));
  EXPECT_TRUE(book.reserve(*two, 1, 5)) << "another device";
  EXPECT_FALSE(book.reserve(*one, 0, 1));
  book.refund(*one, 0, 100);
  EXPECT_TRUE(book.reserve(*two, 0, 100));
  book.refund(*one, 0, 9999);  // no more than it has
  EXPECT_EQ(account.used(), 500);
  book.leave(*two);
  EXPECT_EQ(account.used(), 0);
  EXPECT_EQ(account.used(1), 0);
  EXPECT_EQ(book.device(0).peak.load(), 1000);
}

TEST(Account, TakesBackWhatAProcessHadAsAnotherProgram) {
  const SharedAccount account({{kFirst, 100}});
  AccountBook book = account.book();
  const ProcessId process{.pid = 7, .pid_namespace = 1, .start_time = 5};
  const auto before = book.enter(process);
  const auto neighbour = book.enter({.pid = 8, .pid_namespace = 1, .start_time = 5});
  ASSERT_TRUE(book.reserve(*before, 0, 60));
  ASSERT_TRUE(book.reserve(*neighbour, 0, 10));
  const auto after = book.enter(process);
  EXPECT_EQ(account.used(), 10U);
  EXPECT_TRUE(book.reserve(*after, 0, 90));
  EXPECT_EQ(account.charged(), 100U);
  // Without /proc it may be another one of that pid.
  book.leave(*after);
  const auto unknown = book.enter({.pid = 9});
  ASSERT_TRUE(book.reserve(*unknown, 0, 60));
  EXPECT_NE(book.enter({.pid = 9}), unknown);
  EXPECT_EQ(account.used(), 70U);
}

TEST(Account, HasOneSlotForEachProcess) {
  const SharedAccount account({{kFirst, 1}});
  AccountBook book = account.book();
  for (std::uint32_t pid = 1; pid <= kMaxProcesses; ++pid) ASSERT_TRUE(book.enter({.pid = pid}));
  EXPECT_FALSE(book.enter({.pid = 9999}));
  book.sweep([](const ProcessId& process) { return process.pid == 77; });
  EXPECT_EQ(book.enter({.pid = 9999}), 76);
}

TEST(Account, GivesBackWhatTheDeadHad) {
  const SharedAccount account({{kFirst, 1000}});
  AccountBook book = account.book();
  const auto own = book.enter(this_process());
  ASSERT_TRUE(book.reserve(*own, 0, 10));
  const int status = status_of_child([&] {
    AccountBook its = account.book();
    const auto slot = its.enter(this_process());
    if (its.reserve(*slot, 0, 900)) (void)::raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(account.used(), 910);
  book.sweep([](const ProcessId& process) { return has_ended(process, own_namespace()); });
  EXPECT_EQ(account.used(), 10);
}

TEST(Account, TellsTheLivingFromTheDead) {
  const ProcessId own = this_process();
  ASSERT_GT(own.start_time, 0);
  EXPECT_FALSE(has_ended(own, own.pid_namespace));
  ProcessId other = own;
  --other.start_time;
  EXPECT_TRUE(has_ended(other, own.pid_namespace)) << "its pid is another process's by now";
  EXPECT_FALSE(has_ended(other, own.pid_namespace + 1)) << "nothing is known of another namespace";
  // Dead, though nobody has waited for it yet.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const ProcessId its = this_process();
    (void)!::write(ends[1], &its, sizeof its);
    ::_exit(0);
  }
  ProcessId its;
  ASSERT_EQ(::read(ends[0], &its, sizeof its), static_cast<ssize_t>(sizeof its));
  siginfo_t facts{};
  (void)::waitid(P_PID, static_cast<id_t>(child), &facts, WEXITED | WNOWAIT);
  EXPECT_TRUE(has_ended(its, own.pid_namespace));
  (void)::waitpid(child, nullptr, 0);
  (void)::close(ends[0]);
  (void)::close(ends[1]);
}

// A process died with the lock, between two additions that belong together.
TEST(Account, IsCountedAgainAfterADeathWithTheLock) {
  const SharedAccount account({{kFirst, 1000}});
  AccountBook book = account.book();
  const auto own = book.enter(this_process());
  ASSERT_TRUE(book.reserve(*own, 0, 100));
  const int status = status_of_child([&] {
    (void)::pthread_mutex_lock(&(*account).lock);
    (*account).devices[0].used.store(12345);
    (void)::raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(book.reserve(*own, 0, 900));
  EXPECT_EQ(account.used(), 1000);
  EXPECT_FALSE(book.reserve(*own, 0, 1));
}

/// Killed wherever it is: after every death the sums are what the slots say, once they are used,
/// and what the dead one had can be had again.
TEST(Account, IsRightAfterAKillAnywhere) {
  constexpr std::uint64_t kLimit = 64;
  const SharedAccount account({{kFirst, kLimit}});
  AccountBook book = account.book();
  const auto own = book.enter(this_process());
  ASSERT_TRUE(own);
  std::minstd_rand random(4711);
  const int trials = std::getenv("GFLOW_TEST_FULL") == nullptr ? 300 : 2000;
  for (int trial = 0; trial < trials; ++trial) {
    const pid_t child = ::fork();
    if (child == 0) {
      AccountBook its = account.book();
      const auto slot = its.enter(this_process());
      for (std::uint64_t bytes = 1;; bytes = 1 + bytes % 7) {
        if (its.reserve(*slot, 0, bytes) && bytes % 3 != 0) its.refund(*slot, 0, bytes);
      }
    }
    // Until it is at work, and then for a while that is another each time.
    while (account.used() == 0) {
    }
    for (std::uint64_t more = random() % 5000; more > 0; --more) (void)account.used();
    (void)::kill(child, SIGKILL);
    (void)::waitpid(child, nullptr, 0);
    book.sweep([](const ProcessId& process) { return has_ended(process, own_namespace()); });
    ASSERT_TRUE(book.reserve(*own, 0, kLimit)) << "trial " << trial;
    ASSERT_EQ(account.used(), kLimit);
    ASSERT_EQ(account.charged(), kLimit);
    book.refund(*own, 0, kLimit);
    ASSERT_EQ(account.used(), 0);
  }
}

TEST(Account, UseIsPaidWithTime) {
  constexpr std::uint64_t kMs = 1'000'000;
  constexpr std::uint64_t kNow = 1'000'000 * kMs;
  const SharedAccount account({{kFirst, 1, 5'000, 5'000}, {kSecond, 1}});
  AccountBook book = account.book();
  const auto due = [&](std::size_t device) { return book.device(device).due.load(); };
  book.count_use(0, kNow, 20 * kMs);
  EXPECT_EQ(due(0), kNow + 40 * kMs);
  book.count_use(0, kNow + 40 * kMs, 80 * kMs);
  EXPECT_EQ(due(0), kNow + 200 * kMs);
  // What it did not use counts for a tenth of a second.
  book.count_use(0, kNow + 250 * kMs, 10 * kMs);
  EXPECT_EQ(due(0), kNow + 220 * kMs);
  book.count_use(0, kNow + 900 * kMs, 10 * kMs);
  EXPECT_EQ(due(0), kNow + 820 * kMs);
  // However long a use was, it is paid for.
  book.count_use(0, kNow + 900 * kMs, 3'000 * kMs);
  EXPECT_EQ(due(0), kNow + 6'820 * kMs);
  EXPECT_EQ(book.device(0).busy.load(), 3'120 * kMs);
  // Who has the whole pays nothing.
  book.count_use(1, kNow, 20 * kMs);
  EXPECT_EQ(due(1), 0);
  EXPECT_EQ(book.device(1).busy.load(), 20 * kMs);
}

TEST(Account, WhatIsGuaranteedIsOneThingAndTheMostAnother) {
  constexpr std::uint64_t kMs = 1'000'000;
  constexpr std::uint64_t kNow = 1'000'000 * kMs;
  const SharedAccount account({{kFirst, 1, 2'500, 5'000}, {kSecond, 1, 2'500, kWholeShare}});
  AccountBook book = account.book();
  for (const std::size_t device : {0U, 1U}) book.count_use(device, kNow, 20 * kMs);
  EXPECT_EQ(book.device(0).due.load(), kNow + 40 * kMs);
  EXPECT_EQ(book.device(1).due.load(), 0) << "it may have what others leave";
  for (const std::size_t device : {0U, 1U}) EXPECT_EQ(book.progress(device, 0), 80 * kMs);
  EXPECT_EQ(book.progress(0, 5 * kMs), 100 * kMs);
  // It may be changed while the job runs.
  (*account).devices[1].share_limit.store(2'500);
  book.count_use(1, kNow, 20 * kMs);
  EXPECT_EQ(book.device(1).due.load(), kNow + 80 * kMs);
}

TEST(Account, InLineNobodyIsFarAheadOfOthersNorBehind) {
  constexpr std::uint64_t kMs = 1'000'000;
  const SharedAccount account({{kFirst, 1, 2'500, kWholeShare}});
  AccountBook book = account.book();
  // It comes anew.
  EXPECT_EQ(book.line_up(0, 50 * kMs, kLongAway), 0);
  EXPECT_EQ(book.line_up(0, 4'000 * kMs, kLongAway), 3'900 * kMs);
  // After a while without work; what others had while it stood there is owed to it.
  EXPECT_EQ(book.line_up(0, 4'900 * kMs, 25 * kMs), 4'000 * kMs);
  EXPECT_EQ(book.line_up(0, 4'900 * kMs, 0), 4'000 * kMs);
  EXPECT_EQ(book.line_up(0, 5'000 * kMs, 1'000 * kMs), 4'900 * kMs);
  EXPECT_EQ(book.line_up(0, 4'950 * kMs, 1'000 * kMs), 4'900 * kMs);
  // It was served when it was first: what that cost stands.
  book.count_use(0, 1, 500 * kMs);
  EXPECT_EQ(book.line_up(0, 4'900 * kMs, 0), 6'900 * kMs);
  // What it used when nobody else was there does not.
  for (int turn = 0; turn < 100; ++turn) book.count_use(0, 1, 20 * kMs);
  EXPECT_EQ(book.line_up(0, 7'000 * kMs, 0), (7'000 + 80 + 100) * kMs);
}

TEST(Account, UseOfManyProcessesIsOneSum) {
  const SharedAccount account({{kFirst, 1, 2'500, 2'500}});
  for (int child = 0; child < 3; ++child) {
    ASSERT_EQ(status_of_child([&] {
                for (int use = 0; use < 1000; ++use) account.book().count_use(0, 1, 7);
              }),
              0);
  }
  EXPECT_EQ(account.book().device(0).due.load(), 1 + 3 * 1000 * 28);
}

TEST(Gang, IsLaidOutAsDocumented) {
  const std::string bytes = encode_gang();
  EXPECT_EQ(bytes.size(), 24'832U);
  EXPECT_EQ(bytes.substr(0, 8), std::string("gang\n1\n\0", 8));
  EXPECT_EQ(bytes.find_first_not_of('\0', 16), std::string::npos);
  EXPECT_EQ(offsetof(Gang, busy_since), 32U);
  EXPECT_EQ(offsetof(Gang, leads), 160U);
  EXPECT_EQ(offsetof(Gang, members), 256U);
  EXPECT_EQ(turn_name(0), "turn.0");
  EXPECT_EQ(turn_name(15), "turn.15");
}

}  // namespace
}  // namespace gflow::share

// SPDX-License-Identifier: Apache-2.0
#include "core/job.h"

#include <gtest/gtest.h>

#include "base/kept_sentence.h"

#include <array>

#include "base/result.h"

namespace gflow {
namespace {

using namespace std::chrono_literals;

Attempt attempt(int number) {
  Attempt a;
  a.number = number;
  return a;
}

TEST(Job, EveryStateHasItsStatus) {
  struct Row {
    JobState state;
    Status status;
    std::string_view code;
    bool pending, active, ended;
    int attempt;  // 0: none
  };
  const Stop stop;
  const std::vector<Row> rows = {
      {Queued{}, Status::Queued, "PD", true, false, false, 0},
      {Held{"x"}, Status::Hold, "H", true, false, false, 0},
      {Starting{attempt(1), {}, 0}, Status::Starting, "CF", false, true, false, 1},
      {Starting{attempt(1), stop, 0}, Status::Completing, "CG", false, true, false, 1},
      {Running{attempt(2), {}}, Status::Running, "R", false, true, false, 2},
      {Running{attempt(2), stop}, Status::Completing, "CG", false, true, false, 2},
      {Ended{Status::Lost, {}, {}, attempt(3)}, Status::Lost, "LO", false, false, true, 3},
      {Ended{Status::Cancelled, {}, {}, {}}, Status::Cancelled, "CA", false, false, true, 0}};
  for (const Row& row : rows) {
    Job job;
    job.state = row.state;
    EXPECT_EQ(status_of(job), row.status);
    EXPECT_EQ(status_code(status_of(job)), row.code);
    EXPECT_EQ(is_pending(job), row.pending);
    EXPECT_EQ(is_active(job), row.active);
    EXPECT_EQ(is_ended(job), row.ended);
    const Attempt* last = attempt_of(job);
    EXPECT_EQ(last == nullptr ? 0 : last->number, row.attempt);
  }
}

TEST(Job, ACommandIsShownInOneShortLine) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(shown_line(Words{"sh", "-c", "a\nb"}), "sh -c 'a\\nb'");
  EXPECT_EQ(shown_line(std::string(4096, 'x')), std::string(4096, 'x'));
  EXPECT_EQ(shown_line(std::string(4097, 'x')), std::string(4096, 'x') + "...");
  // A character of four bytes that the cut goes through, and what comes behind it.
  EXPECT_EQ(shown_line(std::string(4095, 'x') + "\xf0\x9f\x98\x80tail"),
            std::string(4095, 'x') + "...");
  EXPECT_EQ(shown_line(Words(1'000'000, "word")).size(), 4099U);
  // Cut just behind an argument.
  EXPECT_EQ(shown_line(Words{std::string(4096, 'x'), "tail"}), std::string(4096, 'x') + "...");
  EXPECT_EQ(shown_line(Words{std::string(4095, 'x'), "tail"}), std::string(4095, 'x') + " ...");
  EXPECT_EQ(shown_line(Words{std::string(4096, 'x')}), std::string(4096, 'x'));
  EXPECT_EQ(shown_line(Words{std::string(5000, ' ')}), "'" + std::string(4095, ' ') + "...");
}

TEST(Job, StatusNamesAndCodesReadBack) {
  for (const StatusInfo& info : kStatuses) {
    EXPECT_EQ(parse_status(info.name), info.status);
    EXPECT_EQ(parse_status(info.code), info.status);
  }
  EXPECT_EQ(parse_status(" running "), Status::Running);
  EXPECT_EQ(parse_status("pd"), Status::Queued);
  EXPECT_EQ(parse_status("done\x07").error(),
            (Error{Code::Usage,
                   "'done\\x07' is not a state; the states are Queued, Hold, Starting, Running, "
                   "Suspended, Completing, Finished, Failed, Cancelled, Timeout, Lost"}));
  EXPECT_FALSE(parse_status(""));
}

TEST(Job, OutcomesGiveAStatusAndASentence) {
  struct Row {
    Outcome outcome;
    std::string_view reason;
    Status status;
    std::string_view text;
  };
  const std::vector<Row> rows = {
      {{EndReason::Exited, 0, 0, "", 0ms, 0ms, {}},
       "exited",
       Status::Finished,
       "exited with code 0"},
      {{EndReason::Exited, 137, 0, "", 0ms, 0ms, {}},
       "exited",
       Status::Failed,
       "exited with code 137"},
      {{EndReason::Signalled, 0, 9, "", 0ms, 0ms, {}},
       "signalled",
       Status::Failed,
       "killed by signal 9 (SIGKILL)"},
      {{EndReason::Signalled, 0, 40, "", 0ms, 0ms, {}},
       "signalled",
       Status::Failed,
       "killed by signal 40"},
      {{EndReason::Signalled, 0, -7, "", 0ms, 0ms, {}},
       "signalled",
       Status::Failed,
       "killed by signal -7"},
      {{EndReason::TimeLimit, 0, 15, "", 90'500ms, 0ms, {}},
       "time_limit",
       Status::Timeout,
       "reached its time limit after 1m30s"},
      {{EndReason::Cancelled, 0, 15, "", 0ms, 0ms, {}},
       "cancelled",
       Status::Cancelled,
       "cancelled"},
      {{EndReason::Cancelled, 0, 0, "by alice", 0ms, 0ms, {}},
       "cancelled",
       Status::Cancelled,
       "cancelled: by alice"},
      {{EndReason::Cancelled, 0, 0, "cancelled by alice before it started", 0ms, 0ms, {}},
       "cancelled",
       Status::Cancelled,
       "cancelled by alice before it started"},
      {{EndReason::OutOfMemory, 0, 9, "", 0ms, 0ms, Memory::gib(12)},
       "out_of_memory",
       Status::Failed,
       "killed at its memory limit, having used 12G"},
      {{EndReason::OutOfMemory, 0, 9, "", 0ms, 0ms, {}},
       "out_of_memory",
       Status::Failed,
       "killed at its memory limit"},
      {{EndReason::LaunchFailed, 0, 0, "chdir /gone\x1b[2J: no such file", 0ms, 0ms, {}},
       "launch_failed",
       Status::Failed,
       "launch failed: chdir /gone\\x1b[2J: no such file"},
      {{EndReason::SupervisorDied, 0, 0, "", 0ms, 0ms, {}},
       "supervisor_died",
       Status::Lost,
       "its supervisor was killed, so its exit code is not known"},
      {{EndReason::SupervisorDied, 0, 0, "its supervisor was killed at night", 0ms, 0ms, {}},
       "supervisor_died",
       Status::Lost,
       "its supervisor was killed at night"},
      {{EndReason::Rebooted, 0, 0, "", 0ms, 0ms, {}},
       "rebooted",
       Status::Lost,
       "the machine went down while it ran"},
      {{EndReason::DependencyFailed, 0, 0, "job 3 failed", 0ms, 0ms, {}},
       "dependency_failed",
       Status::Cancelled,
       "a job it depends on did not finish: job 3 failed"},
      {{EndReason::NotStarted, 0, 0, "", 0ms, 0ms, {}},
       "not_started",
       Status::Failed,
       "never started"}};
  for (const Row& row : rows) {
    EXPECT_EQ(end_reason_name(row.outcome.reason), row.reason);
    EXPECT_EQ(status_for(row.outcome), row.status) << row.text;
    EXPECT_EQ(outcome_text(row.outcome), row.text);
  }
}

/// The words of a reason stand alone, and in the sentence that is kept with its message.
TEST(Outcome, SaysItsReasonInTheSameWordsWithAMessage) {
  for (int i = 0; i <= static_cast<int>(EndReason::Preempted); ++i) {
    const auto reason = static_cast<EndReason>(i);
    if (reason == EndReason::SupervisorDied) continue;  // its message is the whole of it
    EXPECT_EQ(outcome_text({.reason = reason, .message = "m"}),
              outcome_text({.reason = reason}) + ": m");
  }
}

/// Only the sentence that is kept for it says the reason itself, whatever else begins like that.
TEST(Outcome, DoesNotGuessByHowAMessageBegins) {
  EXPECT_EQ(outcome_text({.reason = EndReason::Cancelled,
                          .message = kept<Kept::CancelledBeforeStart>("alice")}),
            "cancelled by alice before it started");
  EXPECT_EQ(outcome_text({.reason = EndReason::Cancelled, .message = "cancelled cards"}),
            "cancelled: cancelled cards");
  EXPECT_EQ(outcome_text({.reason = EndReason::NotStarted, .message = "never started before"}),
            "never started: never started before");
}

}  // namespace
}  // namespace gflow

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/translate.h"
#include "daemon/shell.h"
#include "daemon/shell_plan.h"

/// What becomes of decisions that the disk has no room for.
namespace gflow::daemon {
namespace {

constexpr Memory kLeastFree{64 * 1024};

}  // namespace

/// A submission that does not fit is no reason to keep what else happened from being written.
Result<void> Shell::write(Plan& plan, Now now) {
  auto written = commit(plan, now);
  if (!written && written.error().code == Code::Exhausted && !plan.unwritten.empty()) {
    shrink_store();
    written = commit(plan, now);
  }
  while (!written && written.error().code == Code::Exhausted && !plan.unwritten.empty()) {
    withdraw_largest(plan, now);
    written = commit(plan, now);
  }
  return written;
}

void Shell::withdraw_largest(Plan& plan, Now now) {
  const auto largest = std::ranges::max_element(plan.unwritten, {}, &Unwritten::bytes);
  const Unwritten unwritten = std::move(*largest);
  plan.unwritten.erase(largest);
  std::erase_if(plan.submissions, [&](const store::Submission& submission) {
    return submission.uid == unwritten.uid && submission.key == unwritten.key;
  });
  const Memory size{static_cast<std::int64_t>(unwritten.bytes)};
  for (const std::size_t reply : unwritten.replies) {
    const MessagesOfThread language(plan.replies[reply].messages);
    plan.replies[reply].jobs = fail(
        Code::Exhausted,
        tr_format(
            "this submission of {} does not fit: {}", memory_text(size), disk_text(others_jobs_)));
  }
  drop_from(plan, unwritten.jobs);
  Posted withdrawal;
  for (const auto& effect : engine::step(state_, engine::event::Withdraw{unwritten.jobs}, now)) {
    take(effect, withdrawal, plan);
  }
}

/// What is told of these jobs, in the order of their ids, of which there never were any.
void Shell::drop_from(Plan& plan, const std::vector<JobId>& jobs) {
  const auto is_of_it = [&](JobId id) { return std::ranges::binary_search(jobs, id); };
  std::erase_if(plan.events.events, [&](const JobEvent& event) { return is_of_it(event.job); });
  for (auto* ranges : {&plan.ranges, &plan.ticked.added}) {
    std::erase_if(*ranges, [&](const auto& range) { return is_of_it(range->first.id); });
  }
}

/// The disk is full. What was decided is neither done nor acknowledged before it is written, but
/// for telling jobs to stop, which is safe to repeat and may be what makes room: who asked for that
/// waits, nobody else.
Shell::Ticked Shell::put_off(std::unique_ptr<Plan> plan, Now now) {
  constexpr std::chrono::seconds kTryAgain{1};
  for (const engine::Effect& effect : plan->acts) {
    const auto* to_stop = std::get_if<engine::effect::StopAttempt>(&effect);
    if (to_stop == nullptr) continue;
    if (const Job* job = in_attempt(to_stop->job, to_stop->attempt)) dispatcher_.stop(*job);
  }
  auto now_answered = std::ranges::stable_partition(
      plan->replies, [](const Plan::Reply& reply) { return reply.jobs && reply.makes_room; });
  for (Plan::Reply& reply : now_answered) {
    if (reply.jobs) {
      const MessagesOfThread language(reply.messages);
      reply.jobs = fail(Code::Exhausted,
                        tr_format("this change is not written yet and is lost if gflowd ends "
                                  "before; it is tried again every second: {}",
                                  disk_text(others_jobs_)));
    }
    reply.answer(std::move(reply.jobs));
  }
  plan->replies.erase(now_answered.begin(), now_answered.end());
  Ticked ticked = std::exchange(plan->ticked, {});
  ticked.wake_mono =
      std::min(ticked.wake_mono.value_or(now.mono + kTryAgain), now.mono + kTryAgain);
  plan->was_put_off = true;
  unwritten_ = std::move(plan);
  return ticked;
}

std::string Shell::disk_text(OthersJobs shown) const {
  const bool names_users = shown != OthersJobs::None;
  std::string fills = names_users ? dispatcher_.largest_log() : "";
  if (const auto most = state_.stores_most();
      names_users && most && most->second >= Memory::mib(1)) {
    if (!fills.empty()) fills += "; ";
    fills += tr_format(
        "the jobs of {} that have not ended hold {}", most->first, memory_text(most->second));
  }
  const Memory missing = ballast_ == nullptr ? Memory{} : ballast_->missing();
  return tr_format(
      "the disk of gflow's state directory is full ({} free{}): running jobs keep running and "
      "can be cancelled, new ones are taken again when there is room{}{}",
      ballast_ == nullptr ? "0" : memory_text(ballast_->disk_free()),
      missing > Memory{} ? tr_format(", and {} are to be set aside first", memory_text(missing))
                         : "",
      fills.empty() ? "" : "; ",
      fills);
}

/// What was set aside has been called upon, and there is no other room: nobody is to wait for an
/// answer that cannot be written.
bool Shell::is_short_of_disk() const {
  return ballast_ != nullptr && !ballast_->held() && ballast_->disk_free() < kLeastFree;
}

/// What the store does not use any more is given back by writing, which takes some room, too: a
/// step of what was set aside, if more than that comes back.
void Shell::shrink_store() {
  constexpr Memory kWorthAStep = Memory::mib(1);
  const bool full = ballast_ != nullptr && ballast_->disk_free() < kLeastFree;
  if (full && ballast_->steps_left() > kKeptForCancelling && store_.unused() >= kWorthAStep) {
    ballast_->release_step();
  }
  store_.shrink();
  if (full) ballast_->restore();
}

/// Sets aside again what was called upon, if need be from what the store does not use any more.
void Shell::make_room() {
  if (ballast_ == nullptr || ballast_->held()) return;
  ballast_->restore();
  if (ballast_->held()) return;
  // Giving back has to be written, too.
  if (ballast_->steps_left() > kKeptForCancelling) ballast_->release_step();
  store_.shrink();
  ballast_->restore();
}

bool Shell::wants_room() const { return ballast_ != nullptr && !ballast_->held(); }

/// The same, but that nothing is given up to whatever fills the disk.
void Shell::regain_room() {
  constexpr Memory kWorthAStep = Memory::mib(1);
  if (!wants_room()) return;
  ballast_->restore();
  const bool is_room = ballast_->disk_free() >= kLeastFree;
  if (wants_room() && is_room && store_.unused() >= kWorthAStep) make_room();
}

/// Whether this can wait for its tick on a full disk: what happened to jobs, and what may make
/// room.
bool Shell::is_taken_when_full(const engine::Event& event) {
  namespace e = engine::event;
  return !std::holds_alternative<e::Submit>(event) && !std::holds_alternative<e::Hold>(event) &&
         !std::holds_alternative<e::Release>(event) && !std::holds_alternative<e::Suspend>(event) &&
         !std::holds_alternative<e::Resume>(event) && !std::holds_alternative<e::Move>(event) &&
         !std::holds_alternative<e::Update>(event) && !std::holds_alternative<e::Drain>(event);
}

}  // namespace gflow::daemon

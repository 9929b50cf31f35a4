// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/kept_sentence.h"
#include "base/translate.h"
#include "engine/lending.h"
#include "engine/step_internal.h"

namespace gflow::engine {
namespace {

bool is_by_hand(const Job& job) { return !std::get<Running>(job.state).suspended_by.empty(); }

/// Whether its processes can be suspended and resumed by hand.
Result<void> check_runs(const Job& job, std::string_view wish) {
  const Status status = status_of(job);
  if (status != Status::Running && status != Status::Suspended) return wrong_state(job, wish);
  if (!job.spec.allocation) return {};
  return fail(Code::WrongState,
              tr_format("job {} is an allocation: the program that uses its GPUs is not gflow's",
                        job.id.value));
}

}  // namespace

void Step::take(const event::Cancel& event) {
  for (const JobId id : event.jobs) {
    const auto job = changeable(id, event.by);
    if (!job) return answer(std::unexpected(job.error()));
    if (is_ended(**job)) return answer(wrong_state(**job, tr("it has already ended")));
  }
  const Stop stop{EndReason::Cancelled, record_of(event.by), event.signal};
  for (const JobId id : event.jobs) {
    const Job& job = *index_.find(id);
    if (is_ended(job)) continue;  // ended as a dependent of one before it in the list
    if (is_pending(job)) {
      end(id,
          Status::Cancelled,
          {.reason = EndReason::Cancelled,
           .message = kept<Kept::CancelledBeforeStart>(event.by.name)});
      continue;
    }
    this->stop(id, stop);
  }
  answer(event.jobs);
}

void Step::take(const event::Signal& event) {
  for (const JobId id : event.jobs) {
    const auto job = changeable(id, event.by);
    if (!job) return answer(std::unexpected(job.error()));
    if (!std::holds_alternative<Running>((*job)->state)) {
      return answer(wrong_state(**job, tr("only a running job can be sent a signal")));
    }
  }
  for (const JobId id : event.jobs) {
    effects_.emplace_back(effect::Signal{id, attempt_of(*index_.find(id))->number, event.number});
  }
  answer(event.jobs);
}

void Step::take(const event::Hold& event) {
  for (const JobId id : event.jobs) {
    const auto job = changeable(id, event.by);
    if (!job) return answer(std::unexpected(job.error()));
    if (!is_pending(**job)) return answer(wrong_state(**job, tr("only a waiting job can be held")));
  }
  for (const JobId id : event.jobs) {
    if (std::holds_alternative<Held>(index_.find(id)->state)) continue;
    index_.change(id, [](Job& job) { job.state = Held{}; });
    saved(id, Happening::Held);
  }
  answer(event.jobs);
}

void Step::take(const event::Release& event) {
  for (const JobId id : event.jobs) {
    const auto job = changeable(id, event.by);
    if (!job) return answer(std::unexpected(job.error()));
    const bool held = std::holds_alternative<Held>((*job)->state);
    if (!held && !(event.at && is_pending(**job))) {
      return answer(wrong_state(**job, tr("it is not on hold")));
    }
  }
  for (const JobId id : event.jobs) {
    index_.change(id, [&event](Job& job) {
      if (event.at) job.spec.begin = event.at;
      job.state = Queued{};
    });
    saved(id, Happening::Released);
  }
  answer(event.jobs);
}

void Step::take(const event::Suspend& event) {
  for (const JobId id : event.jobs) {
    const auto job = changeable(id, event.by);
    if (!job) return answer(std::unexpected(job.error()));
    if (auto can = check_runs(**job, tr("only a running job can be suspended")); !can) {
      return answer(std::unexpected(can.error()));
    }
    if (const auto& move = std::get<Running>((*job)->state).move) {
      return answer(fail(
          Code::WrongState,
          tr_format("job {} moves to GPU {}: try again when it is there", id.value, move->to)));
    }
  }
  std::vector<JobId> changed;
  for (const JobId id : event.jobs) {
    if (is_by_hand(*index_.find(id))) continue;
    suspend(id, event.by.name);
    changed.push_back(id);
  }
  answer(std::move(changed));
}

/// From then on they are like those that were suspended to make room.
void Step::take(const event::Resume& event) {
  for (const JobId id : event.jobs) {
    const auto job = changeable(id, event.by);
    if (!job) return answer(std::unexpected(job.error()));
    if (auto can = check_runs(**job, tr("only a suspended job can be resumed")); !can) {
      return answer(std::unexpected(can.error()));
    }
  }
  std::vector<JobId> changed;
  for (const JobId id : event.jobs) {
    if (!is_by_hand(*index_.find(id))) continue;
    index_.change(id, [this](Job& job) {
      auto& running = std::get<Running>(job.state);
      running.suspended_by.clear();
      // From here on it waits for what it lent, and the time of that counts.
      if (running.lends) running.stood += index_.now.mono - *running.suspended;
      if (running.lends) running.suspended = index_.now.mono;
    });
    if (is_lending(*index_.find(id))) {  // its processes go on, and wait in their calls
      effects_.emplace_back(effect::Suspend{id, attempt_of(*index_.find(id))->number});
    }
    saved(id, Happening::Nothing);
    changed.push_back(id);
  }
  answer(std::move(changed));
}

}  // namespace gflow::engine

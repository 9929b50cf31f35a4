// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/translate.h"
#include "core/stop.h"
#include "engine/backfill.h"
#include "engine/lending.h"
#include "engine/parking.h"
#include "engine/step_internal.h"

/// A running job moves to another GPU of its node: its GPU memory is parked, and given back there.
/// From the decision on it holds both, until it is known on which one it is.
namespace gflow::engine {

using placement::Placement;

namespace {

std::unexpected<Error> refused(const Job& job, const std::string& why) {
  return fail(Code::WrongState, tr_format("job {} cannot be moved: {}", job.id.value, why));
}

const Machine& machine_of(const Index& index, const Job& job) {
  return index.nodes.at(attempt_of(job)->allocation.node).machine;
}

const Device* device_at(const Machine& machine, int gpu) {
  const auto at = std::ranges::find(machine.devices, gpu, &Device::index);
  return at == machine.devices.end() ? nullptr : &*at;
}

/// As the driver wants them: of one chip. That they are of one size, too, is wanted here.
bool are_alike(const Device& one, const Device& other) {
  return one.vendor == other.vendor && one.model == other.model &&
         one.memory_total == other.memory_total && !one.mig && !other.mig && !other.uuid.empty();
}

/// What it would have to be otherwise for any GPU.
Result<void> check_kind(const Job& job) {
  const Request& request = job.spec.request;
  if (request.mode != GpuMode::Whole) {
    return refused(
        job,
        tr("it has a part of a GPU, which is counted where it was given: only a job with "
           "one whole GPU moves"));
  }
  const Attempt& attempt = *attempt_of(job);
  if (attempt.allocation.gpus.size() == 1 && attempt.peers.empty()) return {};
  return refused(job, tr("only a job with one GPU on one node moves"));
}

/// How it stands.
Result<void> check_standing(Index& index, const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  if (running == nullptr || running->stop) {
    return wrong_state(job, tr("only a running job can be moved"));
  }
  if (job.spec.allocation) {
    return refused(job, tr("it is an allocation: the program that uses its GPUs is not gflow's"));
  }
  if (running->move) {
    return refused(job, tr_format("it moves to GPU {} already", running->move->to));
  }
  if (running->lends) {
    return refused(job, tr("it lends its GPU while it is idle: try again when it uses it"));
  }
  if (running->suspended || running->parked.how != Parking::None) {
    return refused(
        job,
        tr_format("it is suspended, or goes on just now: 'gjob resume {}', and try again "
                  "when it runs",
                  job.id.value));
  }
  if (borrows(index, job)) return refused(job, tr("its GPU is lent to it by another job"));
  return {};
}

/// Whether its memory can be taken away from the GPU it has.
Result<void> check_source(Index& index, const Job& job) {
  const auto node = index.nodes.find(attempt_of(job)->allocation.node);
  const auto at = index.ledger.find(attempt_of(job)->allocation.node);
  const Device* device =
      node == index.nodes.end() || !at
          ? nullptr
          : device_at(node->second.machine, attempt_of(job)->allocation.gpus.front());
  if (device == nullptr) return refused(job, tr("its GPU is not there now"));
  if (device->vendor != "nvidia" || device->uuid.empty()) {
    return refused(job, tr("its GPU is not one of NVIDIA's"));
  }
  if (device->mig) return refused(job, tr("it has a slice of a GPU (MIG)"));
  const Machine& machine = node->second.machine;
  if (!machine.parks) {
    return refused(
        job, tr("this machine cannot take GPU memory to host memory: 'gflow doctor' says why"));
  }
  if (!machine.cannot_move.empty()) return refused(job, machine.cannot_move);
  if (const auto& why = std::get<Running>(job.state).parked.refused; !why.empty()) {
    return refused(job, tr_format("its GPU memory cannot be taken to host memory: {}", why));
  }
  const Memory copy = copy_of(index, job);
  const Memory free = index.ledger.state(*at).memory_free;
  if (copy <= free) return {};
  return refused(job,
                 tr_format("{} of host memory are needed for its GPU memory meanwhile, and {} are "
                           "free; with --gpu-memory a job says that it needs less",
                           memory_text(copy, free),
                           memory_text(std::max(free, Memory{}), copy)));
}

/// Whether it could open the new one, and is kept from the old one then.
Result<void> check_isolation(const Job& job, const event::Move& wanted) {
  switch (std::get<Running>(job.state).isolation) {
    case GpuIsolation::Landlock:
      return refused(job, tr("Landlock keeps it from all other GPUs for as long as it runs"));
    case GpuIsolation::Filter:
      return refused(job,
                     tr("a device filter keeps it from all other GPUs for as long as it runs"));
    case GpuIsolation::None:
      break;
  }
  if (wanted.running_only) return {};
  const int gpu = attempt_of(job)->allocation.gpus.front();
  return refused(job,
                 tr_format("programs that begin to use a GPU later would use GPU {0} all the same, "
                           "as CUDA_VISIBLE_DEVICES is what it was at its start; 'gjob move "
                           "--running-only {1}' moves one of which none does",
                           gpu,
                           job.id.value));
}

Result<void> check_move(Index& index, const Job& job, const event::Move& wanted) {
  GF_CHECK(check_standing(index, job));
  GF_CHECK(check_kind(job));
  GF_CHECK(check_source(index, job));
  return check_isolation(job, wanted);
}

bool is_free(Index& index, const Job& job, int gpu) {
  const auto& state = index.ledger.state(*index.ledger.find(attempt_of(job)->allocation.node));
  const auto at = static_cast<std::size_t>(gpu);
  return state.open && at < state.devices.size() &&
         index.ledger.device_fits(index.demand_of(job.spec), state.devices[at]);
}

Result<int> check_target(Index& index, const Job& job, int gpu) {
  const Machine& machine = machine_of(index, job);
  const Device* target = device_at(machine, gpu);
  const int from = attempt_of(job)->allocation.gpus.front();
  if (target == nullptr) {
    return refused(job, tr_format("node {} has no GPU {}", machine.name, gpu));
  }
  if (gpu == from) return refused(job, tr_format("it is on GPU {} already", gpu));
  if (!are_alike(*device_at(machine, from), *target)) {
    return refused(job,
                   tr_format("GPU {} is not of the model and the size of GPU {}, and the driver "
                             "moves programs between equal ones only",
                             gpu,
                             from));
  }
  if (is_free(index, job, gpu)) return gpu;
  return refused(job, tr_format("GPU {} is not free: 'ginfo' shows who has it", gpu));
}

/// The one that the placement policy would give, if it would do, else the first that does.
Result<int> choose_target(Index& index, const Job& job) {
  const Machine& machine = machine_of(index, job);
  const int from = attempt_of(job)->allocation.gpus.front();
  std::vector<int> able;
  for (const Device& device : machine.devices) {
    const bool is_other = device.index != from && are_alike(*device_at(machine, from), device);
    if (is_other && is_free(index, job, device.index)) able.push_back(device.index);
  }
  if (able.empty()) {
    return refused(job, tr_format("no other GPU like GPU {} is free on its node", from));
  }
  const auto node = *index.ledger.find(machine.name);
  const auto demand = index.demand_of(job.spec);
  if (index.ledger.fits(demand, node)) {
    for (const int gpu : index.placer->devices_on(index.ledger, demand, node)) {
      if (std::ranges::find(able, gpu) != able.end()) return gpu;
    }
  }
  return able.front();
}

}  // namespace

/// What waits has the GPUs first that are free.
void Step::take(const event::Move& event) {
  const auto job = changeable(event.job, event.by);
  if (!job) return answer(std::unexpected(job.error()));
  if (auto can = check_move(index_, **job, event); !can) {
    return answer(std::unexpected(std::move(can).error()));
  }
  move_ = event;
}

/// Once it is known which places are kept.
void Step::decide_move(Places& places) {
  const event::Move wanted = *std::exchange(move_, std::nullopt);
  const Job& job = *index_.find(wanted.job);
  // To make room for one that waits it may have been told to stop meanwhile.
  if (auto can = check_move(index_, job, wanted); !can) {
    return answer(std::unexpected(std::move(can).error()));
  }
  const auto to = wanted.gpu ? check_target(index_, job, *wanted.gpu) : choose_target(index_, job);
  if (!to) return answer(std::unexpected(to.error()));
  const Attempt& attempt = *attempt_of(job);
  const std::vector<Placement> there = {{*index_.ledger.find(attempt.allocation.node), {*to}}};
  Passer passer = index_.passer_of(job);
  passer.parts = 0;  // it holds as much already
  if (!places.let_pass(index_, passer, there)) {
    return answer(refused(job, tr_format("GPU {} is kept for a job that waits", *to)));
  }
  const Machine& machine = machine_of(index_, job);
  const int from = attempt.allocation.gpus.front();
  const GpuMove move{.from = from,
                     .to = *to,
                     .from_uuid = device_at(machine, from)->uuid,
                     .to_uuid = device_at(machine, *to)->uuid};
  index_.change(wanted.job, [&move](Job& changed) {
    auto& running = std::get<Running>(changed.state);
    running.move = move;
    running.move_refused.clear();
    running.attempt.allocation.gpus = {std::min(move.from, move.to), std::max(move.from, move.to)};
  });
  saved(wanted.job, Happening::Moving);
  effects_.emplace_back(effect::Move{wanted.job, attempt_of(*index_.find(wanted.job))->number});
  answer(std::vector{wanted.job});
}

void Step::take(const event::MoveEnded& event) {
  const Job* job = under_way(index_, event.job, event.attempt);
  const auto* running = job == nullptr ? nullptr : std::get_if<Running>(&job->state);
  if (running == nullptr || !running->move) return;
  const bool is_there = event.refused.empty();
  const int gpu = is_there ? running->move->to : running->move->from;
  const Running::Left left{.at = index_.now.mono,
                           .gpu = is_there ? running->move->from : running->move->to};
  index_.change(event.job, [&](Job& changed) {
    auto& now = std::get<Running>(changed.state);
    now.move.reset();
    now.move_refused = event.refused;
    now.left = left;
    now.attempt.allocation.gpus = {gpu};
  });
  // Nobody has used the new one while it was free, which says nothing of this job.
  index_.note_use(*attempt_of(*index_.find(event.job)));
  saved(event.job, Happening::Moved);
  index_.fronts.open_all();
}

Memory State::copy_of(const Job& job) const { return engine::copy_of(*index_, job); }

}  // namespace gflow::engine

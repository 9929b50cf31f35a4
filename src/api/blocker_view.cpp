// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/types.h"

namespace gflow::api {
namespace {

/// Adds to the view what a blocker of this kind knows in numbers.
struct Details {
  BlockerView& view;

  void operator()(const blocker::OnHold&) const {}
  void operator()(const blocker::BeginTime& begin) const { view.at = begin.at; }
  void operator()(const blocker::Dependency& dependency) const {
    view.jobs = dependency.waiting_for;
    view.mode = dependency.mode;
    view.never = dependency.never;
    view.end = dependency.end;
    view.holders = dependency.holders;
  }
  void operator()(const blocker::Gpus& gpus) const {
    view.need = gpus.need;
    view.available = gpus.available;
    view.gpu_kind = gpus.kind;
    view.holders = gpus.holders;
    view.unusable = gpus.unusable;
  }
  void operator()(const blocker::GpuMemory& memory) const {
    view.need = memory.need.bytes;
    view.available = (memory.need - memory.missing).bytes;
    view.holders = memory.holders;
  }
  void operator()(const blocker::GpuShare& share) const {
    view.need = share.need.parts;
    view.available = (share.need - share.missing).parts;
    view.holders = share.holders;
  }
  void operator()(const blocker::Nodes& nodes) const {
    view.need = nodes.need;
    view.available = nodes.available;
  }
  void operator()(const blocker::NodeClosed&) const {}
  void operator()(const blocker::NodeUnhealthy&) const {}
  void operator()(const blocker::Preemption& under_way) const { view.jobs = under_way.jobs; }
  void operator()(const blocker::HostMemory& memory) const {
    view.need = memory.need.bytes;
    view.available = memory.available.bytes;
    view.holders = memory.holders;
  }
  void operator()(const blocker::Cpus& cpus) const {
    view.need = cpus.need;
    view.available = cpus.available;
    view.holders = cpus.holders;
  }
  void operator()(const blocker::Priority& priority) const {
    if (priority.behind.is_set()) view.jobs = {priority.behind};
    view.at = priority.reserved_from;
  }
  void operator()(const blocker::GroupLimit& limit) const { view.holders = limit.holders; }
  void operator()(const blocker::LaunchBackoff&) const {}
  void operator()(const blocker::Slice&) const {}
  void operator()(const blocker::UserLimit&) const {}
  void operator()(const blocker::Suspended&) const {}
  void operator()(const blocker::GpuLimit& limit) const {
    view.need = limit.need.parts;
    view.available = std::max(limit.limit - limit.held, Share{}).parts;
    view.holders = limit.holders;
    view.at = limit.until;
  }
  void operator()(const blocker::Gang& gang) const {
    view.need = static_cast<std::int64_t>(gang.need);
    if (gang.waiting >= gang.need && !gang.room) return;
    const std::size_t there = gang.waiting < gang.need ? gang.waiting : *gang.room;
    view.available = static_cast<std::int64_t>(there);
  }
};

}  // namespace

BlockerView view_of(const Blocker& blocker) {
  BlockerView view;
  view.kind = blocker_kind(blocker);
  view.code = blocker_code(blocker);
  view.text = blocker_text(blocker);
  std::visit(Details{view}, blocker);
  return view;
}

}  // namespace gflow::api

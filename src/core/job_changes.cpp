// SPDX-License-Identifier: Apache-2.0
#include "core/job_changes.h"

#include <cstdint>

namespace gflow {
namespace {

bool lies_in(const void* part, const void* whole, std::size_t size) {
  const auto first = reinterpret_cast<std::uintptr_t>(whole);  // NOLINT: only compared
  const auto at = reinterpret_cast<std::uintptr_t>(part);      // NOLINT
  return at >= first && at < first + size;
}

}  // namespace

void JobChanges::mark(const void* value, std::size_t size) {
  std::size_t index = 0;
  each_leaf(
      [&](const auto& /*row*/, const auto& leaf) {
        if (lies_in(&leaf, value, size)) meant_.set(index);
        ++index;
      },
      to_);
}

bool JobChanges::marked(const void* value, std::size_t size) const {
  std::size_t index = 0;
  bool found = false;
  each_leaf(
      [&](const auto& /*row*/, const auto& leaf) {
        found = found || (meant_.test(index) && lies_in(&leaf, value, size));
        ++index;
      },
      to_);
  return found;
}

void JobChanges::apply(JobSpec& spec) const {
  std::size_t index = 0;
  each_leaf(
      [&](const auto& /*row*/, const auto& from, auto& to) {
        if (meant_.test(index)) to = from;
        ++index;
      },
      to_,
      spec);
  if (has(&JobSpec::preemption) && !has(&JobSpec::preempt_signal) &&
      spec.preemption != Preemption::Requeue) {
    spec.preempt_signal = 0;  // means nothing without it
  }
}

std::vector<FieldInfo> JobChanges::rows(const JobSpec& from) const {
  std::vector<FieldInfo> found;
  std::size_t index = 0;
  each_leaf(
      [&](const auto& row, const auto& to, const auto& now) {
        if (meant_.test(index) && !(to == now)) found.push_back(row);
        ++index;
      },
      to_,
      from);
  return found;
}

}  // namespace gflow

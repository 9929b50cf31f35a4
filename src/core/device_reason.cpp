// SPDX-License-Identifier: Apache-2.0
#include "core/device_reason.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/translate.h"

namespace gflow {
namespace {

/// "80", "12.4": one decimal where it is not zero.
std::string gigabytes(int mb_per_second) {
  const int tenths = (mb_per_second + 50) / 100;
  if (tenths % 10 == 0) return fmt::format("{}", tenths / 10);
  return fmt::format("{}.{}", tenths / 10, tenths % 10);
}

std::string compared(const DeviceReason& reason) {
  if (reason.mb_per_second >= reason.best_of_node) return tr("the best of this machine");
  const std::string best = gigabytes(reason.best_of_node);
  if (reason.mb_per_second >= reason.best_of_free) {
    return tr_format("the best of the free GPUs ({} GB/s on an idle machine)", best);
  }
  return tr_format(
      "the free GPUs reach {} GB/s, an idle machine {} GB/s", gigabytes(reason.best_of_free), best);
}

}  // namespace

int percent_of_best(const DeviceReason& reason) {
  if (reason.best_of_node <= 0) return 0;
  return static_cast<int>(std::int64_t{100} * reason.mb_per_second / reason.best_of_node);
}

std::string device_reason_text(const DeviceReason& reason) {
  if (reason.mb_per_second == 0) return "";
  std::string text =
      tr_format("ring of {} GB/s, {}", gigabytes(reason.mb_per_second), compared(reason));
  if (reason.on_switch) text += tr("; one switch");
  if (reason.links > 0) {
    text +=
        tr_count(static_cast<std::uint64_t>(reason.links), "; {} link", "; {} links", reason.links);
  }
  if (reason.numa_nodes > 0) {
    text += tr_count(static_cast<std::uint64_t>(reason.numa_nodes),
                     "; {} NUMA node",
                     "; {} NUMA nodes",
                     reason.numa_nodes);
  }
  return text;
}

}  // namespace gflow

// SPDX-License-Identifier: Apache-2.0
#include "core/device_reason.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/kept_sentence.h"

namespace gflow {
namespace {

/// "80", "12.4": one decimal where it is not zero.
std::string gigabytes(int mb_per_second) {
  const int tenths = (mb_per_second + 50) / 100;
  if (tenths % 10 == 0) return fmt::format("{}", tenths / 10);
  return fmt::format("{}.{}", tenths / 10, tenths % 10);
}

std::string compared(const DeviceReason& reason) {
  if (reason.mb_per_second >= reason.best_of_node) return kept<Kept::BestOfMachine>();
  const std::string best = gigabytes(reason.best_of_node);
  if (reason.mb_per_second >= reason.best_of_free) return kept<Kept::BestOfFree>(best);
  return kept<Kept::NotBestOfFree>(gigabytes(reason.best_of_free), best);
}

}  // namespace

int percent_of_best(const DeviceReason& reason) {
  if (reason.best_of_node <= 0) return 0;
  return static_cast<int>(std::int64_t{100} * reason.mb_per_second / reason.best_of_node);
}

std::string kept_device_reason(const DeviceReason& reason) {
  if (reason.mb_per_second == 0) return "";
  std::string text = kept<Kept::Ring>(gigabytes(reason.mb_per_second), compared(reason));
  if (reason.on_switch) text += "; " + kept<Kept::OneSwitch>();
  if (reason.links > 0) {
    text += "; " + (reason.links == 1 ? kept<Kept::Link>(1) : kept<Kept::Links>(reason.links));
  }
  if (reason.numa_nodes > 0) {
    text += "; " + (reason.numa_nodes == 1 ? kept<Kept::NumaNode>(1)
                                           : kept<Kept::NumaNodes>(reason.numa_nodes));
  }
  return text;
}

std::string device_reason_text(const DeviceReason& reason) {
  return kept_text(kept_device_reason(reason));
}

}  // namespace gflow

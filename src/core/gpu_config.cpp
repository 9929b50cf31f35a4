// SPDX-License-Identifier: Apache-2.0
#include "core/gpu_config.h"

#include <algorithm>
#include <cstdlib>

#include "core/catalogue.h"

namespace gflow {
namespace {

/// Whether a reading moved by at least the threshold of `whole`, came or went, or left zero.
bool moved(const std::optional<int>& before,
           const std::optional<int>& after,
           int whole,
           Share threshold) {
  if (before == after) return false;
  if (!before || !after || *before == 0 || *after == 0) return true;
  const std::int64_t by = std::abs(std::int64_t{*before} - *after);
  return by * Share::kWholeParts >= std::int64_t{whole} * threshold.parts;
}

bool decides_alike(const Device& before, const Device& after) {
  Device same = after;
  same.utilization_percent = before.utilization_percent;
  same.power_milliwatts = before.power_milliwatts;
  same.temperature_celsius = before.temperature_celsius;
  return same == before;
}

/// The same machine; its devices as `alike` has it.
template <typename Alike>
bool same_machine(const Machine& before, const Machine& after, const Alike& alike) {
  Machine same = after;
  same.devices = before.devices;
  return same == before && std::ranges::equal(before.devices, after.devices, alike);
}

bool is_news(const Device& before, const Device& after, Share threshold) {
  return !decides_alike(before, after) ||
         moved(before.utilization_percent, after.utilization_percent, 100, threshold) ||
         moved(before.power_milliwatts,
               after.power_milliwatts,
               after.power_limit_milliwatts.value_or(0),
               threshold);
}

}  // namespace

std::optional<Memory> memory_spec(const GpuConfig& config, std::string_view model) {
  const auto own = config.memory_specs.find(model);
  return own == config.memory_specs.end() ? catalogue::memory_of(model) : own->second;
}

void fill_memory(Machine& machine, const GpuConfig& config) {
  for (Device& device : machine.devices) {
    if (device.memory_total) continue;
    device.memory_total =
        memory_spec(config, catalogue::device_model(device.vendor, device.model, std::nullopt));
  }
}

bool decides_alike(const Machine& before, const Machine& after) {
  return same_machine(before, after, [](const Device& old_one, const Device& new_one) {
    return decides_alike(old_one, new_one);
  });
}

bool is_news(const Machine& before, const Machine& after, Share threshold) {
  return !same_machine(before, after, [&](const Device& old_one, const Device& new_one) {
    return !is_news(old_one, new_one, threshold);
  });
}

}  // namespace gflow

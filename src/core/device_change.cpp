// SPDX-License-Identifier: Apache-2.0
#include "core/device_change.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/memory.h"

namespace gflow {
namespace {

using Quantity = DeviceChange::Quantity;
using Value = std::optional<std::int64_t>;

template <typename T>
Value whole(const std::optional<T>& reading) {
  if (!reading) return std::nullopt;
  if constexpr (std::is_same_v<T, Memory>) {
    return reading->bytes;
  } else {
    return *reading;
  }
}

bool moved(const Value& before, const Value& now, std::int64_t of, Share threshold) {
  if (before == now) return false;
  if (!before || !now || *before == 0 || *now == 0) return true;
  const double by = std::abs(static_cast<double>(*now) - static_cast<double>(*before));
  return by * Share::kWholeParts >= static_cast<double>(of) * threshold.parts;
}

std::string key_of(const Device& device) {
  return device.uuid.empty() ? std::to_string(device.index) : device.uuid;
}

/// Compares one device with what was told of it, and remembers what is told.
class Comparison {
 public:
  Comparison(const std::string& node, const Device& device, std::vector<DeviceChange>& changes)
      : node_(node), device_(device), changes_(changes) {}

  void add(Quantity quantity, Value before, Value now) {
    changes_.push_back({node_, device_.index, device_.uuid, quantity, before, now});
  }
  template <typename T>
  void compare(Quantity quantity,
               std::optional<T>& told,
               const std::optional<T>& now,
               std::pair<std::int64_t, Share> limit) {
    if (!moved(whole(told), whole(now), limit.first, limit.second)) return;
    add(quantity, whole(told), whole(now));
    told = now;
  }

 private:
  const std::string& node_;
  const Device& device_;
  std::vector<DeviceChange>& changes_;
};

void compare(Comparison comparison, Device& told, const Device& now, Share threshold) {
  if (told.usable != now.usable) {
    comparison.add(Quantity::Usable, static_cast<int>(told.usable), static_cast<int>(now.usable));
    told.usable = now.usable;
  }
  comparison.compare(
      Quantity::Utilization, told.utilization_percent, now.utilization_percent, {100, threshold});
  comparison.compare(Quantity::MemoryUsed,
                     told.memory_used,
                     now.memory_used,
                     {now.memory_total.value_or(Memory{}).bytes, threshold});
  comparison.compare(Quantity::Power,
                     told.power_milliwatts,
                     now.power_milliwatts,
                     {now.power_limit_milliwatts.value_or(0), threshold});
}

std::string value_text(Quantity quantity, const Value& value) {
  if (!value) return "unknown";
  switch (quantity) {
    case Quantity::Present:
    case Quantity::Usable:
      return *value != 0 ? "yes" : "no";
    case Quantity::Utilization:
      return fmt::format("{}%", *value);
    case Quantity::MemoryUsed:
      return memory_text(Memory{*value});
    case Quantity::Power:
      return fmt::format("{:.0f} W", static_cast<double>(*value) / 1000);
  }
  return {};
}

}  // namespace

std::string_view quantity_name(DeviceChange::Quantity quantity) {
  constexpr std::array<std::string_view, 5> kNames = {
      "present", "usable", "utilization", "memory_used", "power"};
  return kNames.at(static_cast<std::size_t>(quantity));
}

std::string change_text(const DeviceChange& change) {
  return fmt::format("GPU {} of {}{}: {} {} -> {}",
                     change.gpu,
                     change.node,
                     change.uuid.empty() ? "" : fmt::format(" ({})", change.uuid),
                     quantity_name(change.quantity),
                     value_text(change.quantity, change.before),
                     value_text(change.quantity, change.now));
}

std::vector<DeviceChange> DeviceChanges::see(const Machine& machine, Share threshold) {
  std::vector<DeviceChange> changes;
  const bool is_first = !told_.has_value();
  auto before = std::exchange(told_, std::map<std::string, Device>())
                    .value_or(std::map<std::string, Device>());
  for (const Device& device : machine.devices) {
    auto known = before.extract(key_of(device));
    if (known.empty()) {
      told_->emplace(key_of(device), device);
      if (!is_first) Comparison(machine.name, device, changes).add(Quantity::Present, 0, 1);
      continue;
    }
    compare(Comparison(machine.name, device, changes), known.mapped(), device, threshold);
    told_->insert(std::move(known));
  }
  for (const auto& [key, gone] : before) {
    Comparison(machine.name, gone, changes).add(Quantity::Present, 1, 0);
  }
  return changes;
}

}  // namespace gflow

// SPDX-License-Identifier: Apache-2.0
#include "core/machine.h"

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"

namespace gflow {
namespace {

template <typename Is>
const Drain* find_drain(const std::vector<Drain>& drains, const Is& is) {
  const auto at = std::ranges::find_if(drains, is);
  return at == drains.end() ? nullptr : &*at;
}

/// Nothing new starts on a slice of a GPU that is drained.
bool is_of_its_gpu(const Drain& drain, const Device& device) {
  return device.mig && !drain.uuid.empty() && device.mig->parent == drain.uuid;
}

constexpr std::size_t kLongestNodeName = 64;

bool is_in_node_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes the digits at the front, and returns them without leading zeros.
std::string_view take_number(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

}  // namespace

const Drain* drain_of_node(const std::vector<Drain>& drains, std::string_view node) {
  return find_drain(drains,
                    [&](const Drain& drain) { return drain.node == node && drain.is_of_node(); });
}

const Drain* drain_of_device(const std::vector<Drain>& drains,
                             std::string_view node,
                             const Device& device) {
  return find_drain(drains, [&](const Drain& drain) {
    return drain.node == node && (is_of_device(drain, device) || is_of_its_gpu(drain, device));
  });
}

const Drain* drain_of_cut_gpu(const std::vector<Drain>& drains,
                              std::string_view node,
                              std::string_view uuid) {
  return find_drain(drains, [&](const Drain& drain) {
    return drain.node == node && !uuid.empty() && drain.uuid == uuid;
  });
}

bool is_of_device(const Drain& drain, const Device& device) {
  if (drain.is_of_node()) return false;
  return drain.uuid.empty() || device.uuid.empty() ? drain.gpu == device.index
                                                   : drain.uuid == device.uuid;
}

bool is_cut_gpu(const Machine& machine, std::string_view uuid) {
  if (uuid.empty()) return false;
  const auto is_its = [&](const Device& device) {
    return device.mig && device.mig->parent == uuid;
  };
  return std::ranges::any_of(machine.devices, is_its) ||
         std::ranges::find(machine.mig_gpus, uuid, &MigGpu::uuid) != machine.mig_gpus.end();
}

bool is_present(const Drain& drain, const Machine& machine) {
  if (drain.node != machine.name) return false;
  const auto is_it = [&](const Device& device) { return is_of_device(drain, device); };
  return drain.is_of_node() || std::ranges::any_of(machine.devices, is_it) ||
         is_cut_gpu(machine, drain.uuid);
}

std::string drained_text(std::string_view reason) {
  return reason.empty() ? tr("drained") : tr_format("drained: {}", printable(reason));
}

DeviceBar bar_of(const Device& device, const Drain* drain, OtherUse use) {
  if (!device.usable) return DeviceBar::Broken;
  if (drain != nullptr) return DeviceBar::Drained;
  if (!device.processes.empty() && use == OtherUse::Barred) return DeviceBar::InUse;
  return DeviceBar::None;
}

bool is_node_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestNodeName &&
         std::ranges::all_of(name, is_in_node_name);
}

bool node_name_less(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (!is_digit(a.front()) || !is_digit(b.front())) {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const std::string_view x = take_number(a);
    const std::string_view y = take_number(b);
    if (x.size() != y.size()) return x.size() < y.size();
    if (x != y) return x < y;
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // "n1" and "n01" are two
}

std::string node_name_of(std::string_view host) {
  const std::string_view name = host.substr(0, host.find('.'));
  return is_node_name(name) ? std::string(name) : "localhost";
}

}  // namespace gflow

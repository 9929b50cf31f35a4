// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "os/file.h"
#include "os/user.h"

namespace fake_nvml {
namespace {

using gflow::devices::sim::CallFault;
using gflow::devices::sim::DeviceState;

/// As a call that waits for a driver that never answers, but never outliving a test.
[[noreturn]] void hang() {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (true) (void)::pause();
}

[[noreturn]] void abort_without_core() {
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);
  std::abort();
}

}  // namespace

World& world() {
  static World the_world;
  return the_world;
}

abi::Return World::load() {
  const std::string path = gflow::os::environment("GFLOW_FAKE_NVML").value_or("");
  auto text = gflow::os::read_file(path);
  auto read = text ? gflow::devices::sim::read_machine(*text, path)
                   : gflow::Result<gflow::devices::sim::SimMachine>(
                         std::unexpected<gflow::Error>(text.error()));
  if (!read) {
    (void)std::fprintf(stderr, "fake libnvidia-ml: %s\n", read.error().message.c_str());
    return abi::kDriverNotLoaded;
  }
  machine_ = std::move(*read);
  return abi::kSuccess;
}

abi::Return World::entering(std::string_view call) const {
  const auto& faults = machine_.nvml.faults;
  const auto fault = std::ranges::find(faults, call, &CallFault::call);
  if (fault == faults.end()) return abi::kSuccess;
  if (fault->kind == CallFault::Kind::Hang) hang();
  if (fault->kind == CallFault::Kind::Abort) abort_without_core();
  return static_cast<abi::Return>(fault->code);
}

const SimDevice* World::device(abi::Handle handle) const {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number < 1 || number > machine_.devices.size()) return nullptr;
  return &machine_.devices[number - 1];
}

abi::Handle World::handle_of(std::size_t index) const {
  return reinterpret_cast<abi::Handle>(index + 1);  // NOLINT(performance-no-int-to-ptr): opaque
}

Entry enter(std::string_view call, abi::Handle handle, std::string_view reading) {
  const abi::Return wanted = world().entering(call);
  if (wanted != abi::kSuccess) return {wanted, nullptr};
  const SimDevice* device = world().device(handle);
  if (device == nullptr) return {abi::kInvalidArgument, nullptr};
  if (device->state == DeviceState::Lost) return {abi::kGpuIsLost, nullptr};
  const bool hidden = std::ranges::find(device->unsupported, reading) != device->unsupported.end();
  if (hidden) return {abi::kNotSupported, nullptr};
  return {abi::kSuccess, device};
}

std::string bus_id_of(const SimDevice& device) {
  const std::string& address = device.device.pci_address;  // "0000:3b:00.0"
  std::string wide = std::string(8 - std::min<std::size_t>(address.find(':'), 8), '0') + address;
  std::ranges::transform(wide, wide.begin(), [](char c) {
    return c >= 'a' && c <= 'f' ? static_cast<char>(c - 32) : c;
  });
  return wide;
}

}  // namespace fake_nvml

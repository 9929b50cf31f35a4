// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/device_reader.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "devices/pci_address.h"

namespace gflow::devices::nvml {
namespace {

// Values above these were seen in the field where a driver had none to give.
constexpr std::uint32_t kMaxPercent = 100;
constexpr std::uint32_t kMaxCelsius = 200;
constexpr std::uint32_t kMaxMilliwatts = 20'000'000;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 50;

/// The GPU itself is gone or has to be reset: nothing it says counts any more.
bool is_fatal(abi::Return code) {
  return code == abi::kGpuIsLost || code == abi::kResetRequired || code == abi::kIrqIssue ||
         code == abi::kInsufficientPower;
}

}  // namespace

std::optional<Memory> memory_of(std::uint64_t bytes) {
  if (bytes > kMaxBytes) return std::nullopt;
  return Memory{static_cast<std::int64_t>(bytes)};
}

bool DeviceReader::gave(abi::Return code, const char* reading) {
  if (code == abi::kSuccess) return true;
  const std::string why = library_.error_text(code);
  if (is_fatal(code)) report_.fatal = why;
  report_.missing.push_back({reading, why});
  return false;
}

std::string DeviceReader::text(const char* call) const {
  std::array<char, abi::kNameSize> buffer{};
  const auto size = static_cast<std::uint32_t>(buffer.size());
  if (library_.call<abi::GetText>(call, device_, buffer.data(), size) != abi::kSuccess) return {};
  buffer.back() = '\0';
  return printable(buffer.data());
}

void DeviceReader::identity() {
  report_.name = text("nvmlDeviceGetName");
  report_.uuid = text("nvmlDeviceGetUUID");
  std::uint32_t minor = 0;
  if (library_.call<abi::GetNumber>("nvmlDeviceGetMinorNumber", device_, &minor) == abi::kSuccess) {
    report_.minor = static_cast<int>(minor);
  }
  abi::PciInfo pci{};
  if (library_.call<abi::GetPci>("nvmlDeviceGetPciInfo_v3", device_, &pci) != abi::kSuccess) return;
  std::ranges::end(pci.bus_id)[-1] = '\0';
  report_.pci_address = normal_pci_address(pci.bus_id).value_or("");
}

/// The second version tells what the driver keeps for itself from what is used; the first, which
/// drivers before 510 have alone, counts it as used.
void DeviceReader::memory() {
  abi::MemoryV2 two{abi::kMemoryV2, 0, 0, 0, 0};
  abi::Return code = library_.call<abi::GetMemoryV2>("nvmlDeviceGetMemoryInfo_v2", device_, &two);
  if (code != abi::kSuccess && !is_fatal(code)) {
    abi::MemoryV1 one{};
    code = library_.call<abi::GetMemoryV1>("nvmlDeviceGetMemoryInfo", device_, &one);
    two.total = one.total;
    two.used = one.used;
  }
  if (code == abi::kSuccess && two.total == 0) code = abi::kNotSupported;  // memory is the host's
  if (!gave(code, "memory_total")) {
    report_.missing.push_back({"memory_used", report_.missing.back().why});
    return;
  }
  report_.memory_total = memory_of(two.total);
  report_.memory_used = memory_of(two.used);
  if (!report_.memory_used) report_.missing.push_back({"memory_used", "no plausible value"});
}

abi::Return DeviceReader::temperature() {
  std::uint32_t celsius = 0;
  abi::Return code = library_.call<abi::GetTemperature>(
      "nvmlDeviceGetTemperature", device_, abi::kTemperatureGpu, &celsius);
  if (code != abi::kSuccess && !is_fatal(code)) {
    abi::TemperatureV1 versioned{abi::kTemperatureV1, abi::kTemperatureGpu, 0};
    const abi::Return other =
        library_.call<abi::GetTemperatureV>("nvmlDeviceGetTemperatureV", device_, &versioned);
    if (other != abi::kSuccess) return code;
    code = other;
    celsius = static_cast<std::uint32_t>(versioned.celsius);
  }
  if (code != abi::kSuccess) return code;
  if (celsius > kMaxCelsius) return abi::kUnknown;
  report_.temperature_celsius = static_cast<int>(celsius);
  return code;
}

void DeviceReader::load() {
  abi::Utilization use{};
  abi::Return code =
      library_.call<abi::GetUtilization>("nvmlDeviceGetUtilizationRates", device_, &use);
  if (code == abi::kSuccess && use.gpu > kMaxPercent) code = abi::kUnknown;
  if (gave(code, "utilization")) report_.utilization_percent = static_cast<int>(use.gpu);
  (void)gave(temperature(), "temperature");  // the value is in the report already
}

void DeviceReader::power() {
  const auto read = [&](const char* call, const char* reading) -> std::optional<int> {
    std::uint32_t milliwatts = 0;
    abi::Return code = library_.call<abi::GetNumber>(call, device_, &milliwatts);
    if (code == abi::kSuccess && milliwatts > kMaxMilliwatts) code = abi::kUnknown;
    if (!gave(code, reading)) return std::nullopt;
    return static_cast<int>(milliwatts);
  };
  report_.power_milliwatts = read("nvmlDeviceGetPowerUsage", "power");
  report_.power_limit_milliwatts = read("nvmlDeviceGetEnforcedPowerLimit", "power_limit");
}

void DeviceReader::partitions() {
  std::uint32_t current = 0;
  std::uint32_t pending = 0;
  const abi::Return code =
      library_.call<abi::GetTwoNumbers>("nvmlDeviceGetMigMode", device_, &current, &pending);
  if (code == abi::kSuccess) report_.mig = current == abi::kMigOn;
  // Models without MIG, and drivers that do not know it, say so.
  if (code != abi::kSuccess && code != abi::kNotSupported && code != abi::kFunctionNotFound) {
    report_.mig_unread = library_.error_text(code);
  }
}

}  // namespace gflow::devices::nvml

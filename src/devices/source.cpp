// SPDX-License-Identifier: Apache-2.0
#include "devices/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "devices/nvml/device_nodes.h"
#include "devices/nvml/source.h"
#include "devices/sim/source.h"
#include "os/file.h"

namespace gflow::devices {
namespace {

class NoDevices final : public Source {
 public:
  explicit NoDevices(std::string note) {
    machine_.source = "none";
    machine_.note = std::move(note);
  }
  /// Of a machine with NVIDIA GPUs whose driver does not answer.
  static std::unique_ptr<NoDevices> of_nvidia(std::string note) {
    auto made = std::make_unique<NoDevices>(std::move(note));
    made->machine_.source = "nvml";
    made->machine_.gpu_nodes["nvidia"] = {nvml::nvidia_gpus()};
    return made;
  }
  [[nodiscard]] const Machine& machine() const override { return machine_; }

 private:
  Machine machine_;
};

using Opened = Result<std::unique_ptr<Source>>;

Opened open_none(std::string_view /*rest*/, const SourceOptions& /*options*/) {
  return std::make_unique<NoDevices>("no devices are wanted (--devices none)");
}

Opened open_sim(std::string_view rest, const SourceOptions& /*options*/) {
  return sim::open(std::string(rest));
}

Opened open_nvml(std::string_view /*rest*/, const SourceOptions& options) {
  auto source = GF_TRY(nvml::NvmlSource::open(options));
  if (source->machine().devices.empty()) return fail(Code::Failure, source->machine().note);
  return source;
}

/// Whether a display controller or accelerator of NVIDIA's is plugged in, whatever its driver says.
bool has_nvidia_gpu(const std::string& pci_devices) {
  const auto names = os::names_in(pci_devices);
  if (!names) return false;
  return std::ranges::any_of(*names, [&](const std::string& name) {
    const auto fact = [&](std::string_view file) {
      return os::read_regular_file(fmt::format("{}/{}/{}", pci_devices, name, file)).value_or("");
    };
    const std::string kind = fact("class");
    return (kind.starts_with("0x03") || kind.starts_with("0x12")) &&
           fact("vendor").starts_with("0x10de");
  });
}

/// The first vendor whose driver answers with a device; a driver that hangs or is not installed
/// whole may yet come back, so it is followed. Another vendor is asked here, after NVML.
Opened open_auto(std::string_view /*rest*/, const SourceOptions& options) {
  auto source = nvml::NvmlSource::open(options);
  const bool is_there = has_nvidia_gpu(options.pci_devices);
  if (!source) {
    if (is_there) return NoDevices::of_nvidia(source.error().message);
    return std::make_unique<NoDevices>(source.error().message);
  }
  const Machine& machine = (*source)->machine();
  if (machine.devices.empty() && (*source)->has_answered() && !is_there) {
    return std::make_unique<NoDevices>(machine.note);
  }
  return std::move(*source);
}

/// Every kind of source. A name that ends in ':' is followed by what the source wants to know.
struct Kind {
  std::string_view name;
  Opened (*open)(std::string_view rest, const SourceOptions& options);
};
constexpr std::array<Kind, 4> kKinds = {
    {{"auto", open_auto}, {"none", open_none}, {"nvml", open_nvml}, {"sim:", open_sim}}};

}  // namespace

Opened open_source(const std::string& specification, const SourceOptions& options) {
  for (const Kind& kind : kKinds) {
    const bool takes_more = kind.name.ends_with(':');
    if (takes_more ? specification.starts_with(kind.name) : specification == kind.name) {
      return kind.open(std::string_view(specification).substr(kind.name.size()), options);
    }
  }
  return fail(
      Code::Usage,
      fmt::format("unknown device source '{}': auto, none, nvml, sim:8xH100 or sim:FILE.yaml",
                  printable(specification)));
}

}  // namespace gflow::devices

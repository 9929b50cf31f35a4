// SPDX-License-Identifier: Apache-2.0
#include "devices/slicer.h"

#include "devices/nvml/slicer.h"
#include "devices/sim/slicer.h"

namespace gflow::devices {

Result<std::unique_ptr<Slicer>> open_slicer(const std::string& source,
                                            const SlicerOptions& options) {
  constexpr std::string_view kSimulated = "sim:";
  if (source.starts_with(kSimulated)) return sim::open_slicer(source.substr(kSimulated.size()));
  return nvml::open_slicer(options);
}

}  // namespace gflow::devices

// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/node_devices.h"

#include "os/paths.h"

namespace gflow::deviceplugin {
namespace {

Result<std::unique_ptr<devices::Source>> open_devices(const std::string& specification) {
  devices::SourceOptions wish;
  wish.probe = os::helper_program("gflow-gpumon").value_or("");
  return devices::open_source(specification, wish);
}

}  // namespace

Result<NodeDevices> NodeDevices::open(const std::string& specification) {
  return NodeDevices(specification, GF_TRY(open_devices(specification)));
}

bool NodeDevices::read_again() {
  source_->refresh();
  if (specification_ != "auto" || machine().source != "none") return false;
  auto source = open_devices(specification_);
  if (!source || (*source)->machine().devices.empty()) return false;
  source_ = *std::move(source);
  return true;
}

}  // namespace gflow::deviceplugin

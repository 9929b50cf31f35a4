// SPDX-License-Identifier: Apache-2.0
#include "runner/environment.h"

#include <string_view>

namespace gflow::runner {
namespace {

constexpr std::string_view kPortBase = "GFLOW_PORT_BASE=";
constexpr std::string_view kPortCount = "GFLOW_PORT_COUNT=";

/// What torch.distributed and torchrun read.
void add_rendezvous(std::vector<std::string>& list, const PortBlock& ports) {
  if (ports.count == 0) return;
  const std::string base = std::to_string(ports.base);
  list.push_back(std::string(kPortBase) + base);
  list.push_back(std::string(kPortCount) + std::to_string(ports.count));
  for (const char* prefix : {"", "PET_"}) {
    list.push_back(std::string(prefix) + "MASTER_ADDR=127.0.0.1");
    list.push_back(std::string(prefix) + "MASTER_PORT=" + base);
  }
}

}  // namespace

std::vector<std::string> local_environment(const Surroundings& surroundings) {
  std::vector<std::string> list = {"GFLOW_LOG_FILE=" + surroundings.log_path};
  if (!surroundings.socket.empty()) list.push_back("GFLOW_API=" + surroundings.socket);
  if (!surroundings.config_path.empty()) {
    list.push_back("GFLOW_JOB_CONFIG=" + surroundings.config_path);
  }
  add_rendezvous(list, surroundings.ports);
  return list;
}

}  // namespace gflow::runner

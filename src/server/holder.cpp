// SPDX-License-Identifier: Apache-2.0
#include "server/holder.h"

#include <limits>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace gflow::server {
namespace {

constexpr std::size_t kFixed = 2;  // the program and its option
constexpr std::string_view kHold = "--hold";

void add(std::vector<std::string>& argv, const std::optional<ProcessId>& process) {
  if (!process) return;
  argv.push_back(std::to_string(process->pid));
  argv.push_back(std::to_string(process->start_time));
}

}  // namespace

std::vector<std::string> holder_command(std::string shim, const HeldFor& held_for) {
  std::vector<std::string> argv = {std::move(shim), std::string(kHold)};
  const bool only_waits = !held_for.owner && held_for.waiter;
  add(argv, only_waits ? std::optional(ProcessId{}) : held_for.owner);
  add(argv, held_for.waiter);
  return argv;
}

bool is_holder_command(const std::vector<std::string>& argv) {
  return argv.size() >= kFixed && argv[0].ends_with("/gflow-shim") && argv[1] == kHold;
}

std::vector<ProcessId> waiting_processes(const Payload& payload) {
  std::vector<ProcessId> processes;
  for (std::size_t at = kFixed; at + 1 < payload.argv.size(); at += 2) {
    const auto pid = parse_number(payload.argv[at]);
    const auto start_time = parse_number(payload.argv[at + 1]);
    if (!pid || !start_time || *pid == 0 || *pid > std::numeric_limits<int>::max()) continue;
    processes.push_back({static_cast<int>(*pid), *start_time});
  }
  return processes;
}

}  // namespace gflow::server

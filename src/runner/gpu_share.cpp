// SPDX-License-Identifier: Apache-2.0
#include "runner/gpu_share.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace gflow::runner {
namespace {

constexpr std::string_view kPreload = "LD_PRELOAD=";
constexpr std::string_view kDirectory = "GFLOW_SHARE_DIR=";
constexpr std::string_view kSanitizer = "ASAN_OPTIONS=";
constexpr std::string_view kLibrary = "/libgflow-share.so";
constexpr std::string_view kSeparators = ": ";

/// Takes a variable out: its value, "" if it is not set.
std::string take(std::vector<std::string>& environment, std::string_view start) {
  const auto is_it = [start](const std::string& text) { return text.starts_with(start); };
  const auto found = std::ranges::find_if(environment, is_it);
  if (found == environment.end()) return "";
  std::string value = found->substr(start.size());
  std::erase_if(environment, is_it);
  return value;
}

/// The libraries of a value of LD_PRELOAD but this one, of whatever gflow.
std::vector<std::string> other_libraries(std::string_view value) {
  std::vector<std::string> others;
  while (!value.empty()) {
    const std::size_t end = std::min(value.find_first_of(kSeparators), value.size());
    const std::string_view library = value.substr(0, end);
    if (!library.empty() && !library.ends_with(kLibrary)) others.emplace_back(library);
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return others;
}

}  // namespace

std::vector<share::DeviceLimit> memory_limits(const LaunchOrder& order) {
  if (order.mode == GpuMode::Whole || order.only_holds) return {};
  std::vector<share::DeviceLimit> limits;
  for (const DeviceGrant& grant : order.devices) {
    const bool can_be_kept =
        grant.vendor == "nvidia" && !grant.uuid.empty() && grant.memory > Memory{};
    if (!can_be_kept) return {};
    limits.push_back({grant.uuid, static_cast<std::uint64_t>(grant.memory.bytes)});
  }
  return limits;
}

bool can_be_preloaded(const std::string& library) {
  return library.starts_with('/') && library.find_first_of(kSeparators) == std::string::npos;
}

std::vector<std::string> with_interposer(std::vector<std::string> environment,
                                         const std::string& library,
                                         const std::string& directory) {
  std::vector<std::string> libraries = other_libraries(take(environment, kPreload));
  libraries.push_back(library);
  environment.push_back(std::string(kPreload) + join(libraries, ":"));
  (void)take(environment, kDirectory);
  environment.push_back(std::string(kDirectory) + directory);
  // A program with AddressSanitizer's shared runtime does not start where another library is before
  // it, unless told that it may; this one has nothing of what the runtime takes over.
  std::string options = take(environment, kSanitizer);
  if (!options.empty()) options += ':';
  environment.push_back(std::string(kSanitizer) + options + "verify_asan_link_order=0");
  return environment;
}

std::vector<std::string> without_interposer(std::vector<std::string> environment) {
  (void)take(environment, kDirectory);
  const auto libraries = other_libraries(take(environment, kPreload));
  if (!libraries.empty()) environment.push_back(std::string(kPreload) + join(libraries, ":"));
  return environment;
}

}  // namespace gflow::runner

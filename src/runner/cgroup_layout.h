// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gflow::runner {

/// Where this process stands in the control group trees of the machine: absolute directories, ""
/// where a tree or controller is not there or not visible from here.
struct CgroupLayout {
  std::string unified;  ///< the v2 tree
  std::string memory;   ///< v1 trees, on machines that have them (wholly or beside v2)
  std::string cpu;
  std::string pids;
  std::string cpuset;
  std::string devices;

  friend bool operator==(const CgroupLayout&, const CgroupLayout&) = default;
};

/// Reads the texts of /proc/self/mountinfo and /proc/self/cgroup. A group that lies outside what is
/// mounted here (a container that sees only a part) is left out.
[[nodiscard]] CgroupLayout parse_cgroup_layout(std::string_view mountinfo, std::string_view cgroup);

}  // namespace gflow::runner

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <linux/bpf.h>

#include "base/device_filter.h"
#include "base/result.h"

/// What keeps the processes of a control group from opening devices, whoever they become: root
/// alone can set it up or take it away. It holds for descriptors opened from then on, in groups
/// below as well, and for mknod(2), and goes with the group. docs/design/0029-isolation.md.
namespace gflow::runner {

/// The filter as a program for the kernel (BPF_PROG_TYPE_CGROUP_DEVICE).
[[nodiscard]] std::vector<bpf_insn> filter_program(const DeviceFilter& filter);

/// Of cgroup v2. Errors: the kernel or a container's rules refuse it.
[[nodiscard]] Result<void> attach_filter(const std::string& group, const DeviceFilter& filter);

/// Of cgroup v1, controller `devices`: what its parent may not do it may not, either.
[[nodiscard]] Result<void> deny_devices(const std::string& group, const DeviceFilter& filter);

}  // namespace gflow::runner

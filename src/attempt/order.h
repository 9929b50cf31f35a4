// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/device_filter.h"

namespace gflow::attempt {

/// Version of the order. What a shim leaves has its own: kClaimProtocol.
constexpr std::uint32_t kOrderProtocol = 1;

/// Order::isolation.
inline constexpr std::string_view kByFilter = "filter";
inline constexpr std::string_view kByLandlock = "landlock";

/// What was granted of one device.
struct Grant {
  std::uint32_t index = 0;              ///< on its node
  std::uint32_t share_parts = 0;        ///< of its compute, in 10,000ths
  std::uint32_t share_limit_parts = 0;  ///< the most of it; 0: that
  std::uint64_t memory_bytes = 0;       ///< of its memory; 0: none was set aside
  std::string vendor;                   ///< without spaces; "" if not known
  std::string uuid;                     ///< "" if not known

  friend bool operator==(const Grant&, const Grant&) = default;
};

/// What a shim is told to run: the file `order` of an attempt's directory.
struct Order {
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  std::string node;                ///< it runs on
  std::vector<Grant> devices;      ///< granted, ascending by index
  std::string gpu_mode;            ///< "whole", "fraction" or "time_slice"; "" without devices
  std::uint32_t cpu_limit = 0;     ///< CPUs it may use; 0: not limited
  std::uint64_t memory_limit = 0;  ///< bytes of host memory; 0: not limited
  std::string launch_id;           ///< unique to this launch; also GFLOW_ATTEMPT_ID of the job
  std::uint64_t mark = 0;  ///< RLIMIT_LOCKS of its processes, by which they are known; 0: none
  std::string boot_id;
  std::optional<std::uint32_t> uid;  ///< become this user; empty: stay
  std::string work_dir;
  std::string log_path;
  std::string script;  ///< absolute path of the script to run; "": argv[0] is a program
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::uint32_t umask = 022;
  std::uint64_t open_files = 0;  ///< soft limit of the job (RLIMIT_NOFILE); 0: as it is
  std::optional<std::chrono::seconds> time_limit;
  std::chrono::seconds grace{30};
  std::vector<std::string> cgroups;  ///< directories the job joins
  std::string kill_cgroup;           ///< the one of them with cgroup.kill; "": none
  std::string memory_cgroup;         ///< the one of them that counts memory; "": none
  std::string freeze_cgroup;         ///< the one of them with cgroup.freeze; "": none
  std::vector<std::uint32_t> cpus;   ///< run on these only (sched_setaffinity); empty: on any
  /// What keeps it from the devices of `filter`: its control group has done so, or it is to do so
  /// itself; "": nothing does.
  std::string isolation;
  DeviceFilter filter;

  friend bool operator==(const Order&, const Order&) = default;
};

/// The file: NUL-terminated "key=value" records, the last of them "end=". Errors, in words: a NUL
/// inside a value, which no program can be given.
[[nodiscard]] std::expected<std::string, std::string> encode_order(const Order& order);
/// Errors, in words: another protocol, a record that is not understood, a file cut short.
[[nodiscard]] std::expected<Order, std::string> decode_order(std::string_view text);

}  // namespace gflow::attempt

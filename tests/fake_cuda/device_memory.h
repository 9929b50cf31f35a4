// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

/// What the device memory of this process holds, at the addresses it was given: zeros but for what
/// was copied there. Any thread.
namespace fake_cuda {

constexpr std::uint64_t kFirstAddress = std::uint64_t{1} << 40;

void write_device(std::uint64_t address, const void* from, std::size_t bytes);
void read_device(std::uint64_t address, void* to, std::size_t bytes);

/// What is written, by address.
using DeviceContent = std::map<std::uint64_t, std::string>;
/// Takes it away: the device has it no more.
[[nodiscard]] DeviceContent take_device_content();

}  // namespace fake_cuda

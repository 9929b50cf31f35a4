// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/process_list.h"

#include "devices/nvml/process_entries.h"

namespace gflow::devices::nvml {
namespace {

constexpr std::size_t kWidestEntry = 32;
constexpr std::size_t kFirstRoom = 64;
constexpr std::size_t kMaxRoom = 65'536;

}  // namespace

ProcessList::Raw ProcessList::ask(const Library& library,
                                  abi::Handle device,
                                  const std::string& call,
                                  std::byte fill) {
  for (std::size_t room = kFirstRoom;; room *= 4) {
    Raw raw;
    raw.buffer.assign(room * kWidestEntry, fill);
    auto count = static_cast<std::uint32_t>(room);
    void* entries = raw.buffer.data();
    raw.code = library.call<abi::GetProcesses>(call.c_str(), device, &count, entries);
    raw.count = raw.code == abi::kSuccess && count <= room ? count : 0;
    if (raw.code != abi::kInsufficientSize || room >= kMaxRoom) return raw;
  }
}

ProcessList::Answer ProcessList::read(const Library& library,
                                      abi::Handle device,
                                      const std::string& call) {
  for (Version& version : versions_) {
    const std::string name = call + version.suffix;
    const Raw first = ask(library, device, name, std::byte{0xA5});
    if (first.code == abi::kFunctionNotFound) continue;
    if (first.count > 0 && !version.bytes) {
      const Raw second = ask(library, device, name, std::byte{0x5A});
      if (second.count == first.count) {
        version.bytes = entry_bytes(first.buffer, second.buffer, first.count, version.guess);
      }
    }
    const std::size_t each = version.bytes.value_or(version.guess);
    return {first.code, entries_of(first.buffer, first.count, each)};
  }
  return {abi::kFunctionNotFound, {}};
}

}  // namespace gflow::devices::nvml

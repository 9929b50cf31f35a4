// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "attempt/exit_record.h"

/// Any content decodes or is refused, and what decodes survives being written again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gflow::attempt;
  const std::string content(reinterpret_cast<const char*>(data), size);
  const auto record = decode_exit_file(content);
  if (!record) return 0;
  const SlotBytes slot = encode_slot(*record, 1);
  std::string file(kExitFileSize, '\0');
  file.replace(slot_offset(1), slot.size(), slot.data(), slot.size());
  if (decode_exit_file(file) != record) std::abort();
  return 0;
}

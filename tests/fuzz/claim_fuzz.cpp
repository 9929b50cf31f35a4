// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "attempt/claim.h"
#include "attempt/control.h"
#include "attempt/order.h"
#include "attempt/program.h"
#include "base/proc_text.h"

/// The texts of an attempt's directory and of /proc: any bytes decode or are refused, and what
/// decodes means the same when written again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gflow::attempt;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto claim = decode_claim(text); claim && decode_claim(encode_claim(*claim)) != claim) {
    std::abort();
  }
  if (const auto order = decode_order(text)) {
    const auto again = encode_order(*order);
    if (!again || decode_order(*again) != order) std::abort();
  }
  (void)decode_status(text);
  (void)gflow::parse_proc_stat(text);
  (void)gflow::parse_pids(text);
  (void)gflow::keyed_value(text, "populated");
  (void)parse_shebang(text);
  if (size >= 5) {
    std::int32_t value = 0;
    for (std::size_t i = 1; i < 5; ++i)
      value = static_cast<std::int32_t>((static_cast<std::uint32_t>(value) << 8) | data[i]);
    const auto control = decode_control({data[0], value});
    if (control && encode_control(*control) != ControlSignal{data[0], value}) std::abort();
  }
  return 0;
}

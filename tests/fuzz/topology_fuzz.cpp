// SPDX-License-Identifier: Apache-2.0
// A matrix of links, whatever the input, is a valid topology that is read back as it is printed.
#include "base/text.h"
#include "core/topology.h"
#include "require.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gflow::LinkSpeeds speeds = gflow::speeds_of_model("V100");
  const auto topology = gflow::parse_topology(gflow::fuzz::text_of(data, size), speeds);
  if (!topology) {
    require(gflow::printable(topology.error().message) == topology.error().message);
    return 0;
  }
  require(gflow::check(*topology).has_value());
  const auto again = gflow::parse_topology(gflow::topology_text(*topology), speeds);
  require(again.has_value() && *again == *topology);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A traceparent, whatever a submitter's environment holds, is refused or read as one that can be
// written and read back.
#include "core/trace_context.h"
#include "require.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto context = gflow::parse_traceparent(gflow::fuzz::text_of(data, size));
  if (!context) return 0;
  require(context->trace_id.size() == 32 && context->span_id.size() == 16);
  require(gflow::parse_traceparent(gflow::traceparent_text(*context)) == context);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A request is within its limits and its one canonical text reads back as the same request; a
// mistake lies within the text and is fit to be printed. Names of models settle at once.
#include <algorithm>

#include "base/text.h"
#include "core/catalogue.h"
#include "core/gpu_request.h"
#include "require.h"

using gflow::fuzz::require;

namespace {

void check_request(const gflow::GpuRequest& request) {
  require(request.gpus >= 0 && request.gpus <= gflow::kMaxGpus);
  require(request.share.parts > 0 && request.share <= gflow::Share::whole());
  require(request.memory.bytes >= 0 && request.memory.bytes % (1 << 20) == 0);
  require(std::ranges::is_sorted(request.models));
  const std::string canonical = gflow::gpu_request_text(request);
  const auto again = gflow::parse_gpu_request(canonical);
  require(again.has_value() && *again == request);
  require(gflow::gpu_request_text(*again) == canonical);
  require(!gflow::resource_name(request, {}).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = gflow::fuzz::text_of(data, size);
  if (const auto request = gflow::read_gpu_request(text)) {
    check_request(*request);
  } else {
    const gflow::GpuRequestMistake& mistake = request.error();
    require(mistake.begin <= mistake.end && mistake.end <= text.size());
    const std::string message = gflow::error_of(mistake, text).message;
    require(gflow::printable(message) == message);
  }
  const std::string model = gflow::catalogue::read_model(text);
  require(model.empty() || gflow::catalogue::read_model(model) == model);
  const std::string name = gflow::catalogue::short_model("", text);
  require(gflow::catalogue::short_model("", name) == name);
  return 0;
}

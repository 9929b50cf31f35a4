// SPDX-License-Identifier: Apache-2.0
#include "api/gpu_spec.h"

#include "api/json_writer.h"
#include "core/request_text.h"

namespace gflow::api {

void fields(Writer& io, const GpuSpecView& view) {
  const Request& request = view.request;
  io.field("text", view.text);
  io.field("canonical", view.canonical);
  io.field("words", view.words);
  io.field("gpus", request.gpus);
  io.field("gpu_share_parts", request.share.parts);
  io.field("gpu_share", share_text(request.share));
  io.field("gpu_share_limit_parts", request.share_limit.parts);
  io.known_amount("gpu_memory_bytes", request.gpu_memory);
  io.known_text("gpu_vendor", request.vendor);
  io.field("gpu_models", request.models);
  io.field("gpu_mode", request.mode);
  io.field("see_all", request.see_all);
  io.field("resource_name", view.resource_name);
  io.field("load_mode", view.load_mode);
}

GpuSpecView gpu_spec_view(std::string text, const Request& request, const GpuResources& resources) {
  GpuSpecView view;
  view.text = std::move(text);
  view.canonical = gpu_request_text(request);
  view.words = gpus_in_words(request);
  view.request = request;
  view.resource_name = resource_name(gpu_request_of(request), resources);
  if (request.gpus == 0) return view;
  switch (request.mode) {
    case GpuMode::Whole:
      view.load_mode = "count";
      break;
    case GpuMode::Fraction:
      view.load_mode = "virtual";
      break;
    case GpuMode::TimeSlice:
      view.load_mode = "time_slice";
      break;
  }
  return view;
}

std::string write(const GpuSpecView& view) { return Writer::document("GpuSpec", view); }

}  // namespace gflow::api

// SPDX-License-Identifier: Apache-2.0
#include "cli/spec/spec_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"
#include "command/wrap.h"
#include "core/catalogue.h"

namespace gflow::cli {

namespace {

std::string share_line(const Request& request) {
  if (request.see_all) return tr("none");
  if (request.mode != GpuMode::Fraction) return tr("1, whole GPUs");
  std::string line = tr_format("{} of each, {} of {} parts",
                               share_text(request.share),
                               request.share.parts,
                               Share::kWholeParts);
  if (request.share_limit != Share{}) {
    line += tr_format("; up to {} where others leave it", share_text(request.share_limit));
  }
  return line;
}

std::string memory_line(const Request& request) {
  if (request.see_all) return tr("none reserved");
  if (request.gpu_memory.bytes > 0) {
    return tr_format("{} free on each before the job starts", memory_text(request.gpu_memory));
  }
  return request.mode == GpuMode::Fraction ? tr("its share of the memory of each")
                                           : tr("not declared");
}

/// "A100 (nvidia, 80G), H100 (nvidia, 80G)".
std::string models_line(const Request& request, const GpuConfig& config) {
  std::vector<std::string> all;
  for (const std::string& model : request.models) {
    std::vector<std::string> facts;
    if (const auto vendor = catalogue::vendor_of(model); !vendor.empty()) {
      facts.emplace_back(vendor);
    }
    if (const auto memory = memory_spec(config, model)) facts.push_back(memory_text(*memory));
    if (!catalogue::is_known(model)) facts.emplace_back(tr("not a model gflow knows"));
    all.push_back(facts.empty() ? model : tr_format("{} ({})", model, join(facts, tr(", "))));
  }
  return all.empty() ? tr("any") : join(all, tr(" or "));
}

std::string mode_line(const Request& request) {
  if (request.see_all) return tr("sees every GPU and reserves none, if an administrator allows it");
  if (request.gpus == 0) return tr("runs without GPUs");
  switch (request.mode) {
    case GpuMode::Whole:
      return tr("whole GPUs, exclusive to the job");
    case GpuMode::Fraction:
      return tr("part of a GPU, shared with other jobs");
    case GpuMode::TimeSlice:
      return tr("the whole GPU time-sliced with other jobs, by priority");
  }
  return "";
}

}  // namespace

std::string spec_text(const api::GpuSpecView& view,
                      const GpuConfig& config,
                      const Painter& paint,
                      std::size_t columns) {
  const Request& request = view.request;
  const std::string title = tr_format("{}: {}", printable(view.text), view.words);
  std::string out = fit_lines(paint(Style::Bold, title) + '\n', columns);
  const auto line = [&out, columns](std::string_view name, std::string_view value) {
    out += labelled(fmt::format("  {:<11}  ", name), value, columns);
  };
  line(tr("GPUs"), request.see_all ? tr("all, none reserved") : fmt::format("{}", request.gpus));
  if (request.gpus > 0 || request.see_all) {
    if (request.gpus > 0) line(tr("Share"), share_line(request));
    line(tr("Memory"), memory_line(request));
    line(tr("Vendor"), request.vendor.empty() ? tr("any") : request.vendor);
    line(tr("Models"), models_line(request, config));
  }
  line(tr("Mode"), mode_line(request));
  if (request.gpus > 0 && request.mode != GpuMode::Whole) {
    line(tr("Limits"),
         request.mode == GpuMode::Fraction
             ? tr("memory and compute capped by the interposer on NVIDIA GPUs ('gflow doctor' says "
                  "what is in force here)")
             : tr("memory capped by the interposer on NVIDIA GPUs, compute not limited ('gflow "
                  "doctor' says what is in force here)"));
  }
  line(tr("Resource"), view.resource_name);
  line(tr("Short"), view.canonical);
  return out;
}

std::string marked_text(std::string_view text, const GpuRequestMistake& mistake) {
  const std::string before = printable(text.substr(0, mistake.begin));
  const std::string wrong = printable(text.substr(mistake.begin, mistake.end - mistake.begin));
  return fmt::format("  {}\n  {}{}\n",
                     printable(text),
                     std::string(display_width(before), ' '),
                     std::string(std::max<std::size_t>(display_width(wrong), 1), '^'));
}

}  // namespace gflow::cli

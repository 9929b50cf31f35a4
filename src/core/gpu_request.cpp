// SPDX-License-Identifier: Apache-2.0
#include "core/gpu_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/translate.h"
#include "core/catalogue.h"

namespace gflow {
namespace {

struct Word {
  std::string_view word;
  std::string_view vendor;
};
constexpr std::array kVendors = std::to_array<Word>({{"gpu", ""},
                                                     {"nvidia", "nvidia"},
                                                     {"cuda", "nvidia"},
                                                     {"amd", "amd"},
                                                     {"rocm", "amd"},
                                                     {"intel", "intel"},
                                                     {"xpu", "intel"},
                                                     {"npu", "ascend"},
                                                     {"ascend", "ascend"},
                                                     {"huawei", "ascend"}});

/// The vendor as the documents write it.
std::string_view vendor_word(std::string_view vendor) {
  return vendor == "ascend" ? "npu" : vendor;
}

/// Exact, for whole MiB: the largest unit in which it has at most two decimals.
std::string exact_text(Memory memory) {
  const std::int64_t mib = (memory.bytes + (std::int64_t{1} << 20) - 1) >> 20;
  for (const auto& [letter, size] :
       {std::pair{'T', std::int64_t{1} << 20}, std::pair{'G', std::int64_t{1} << 10}}) {
    if (mib < size || (mib % size) * 4 % size != 0) continue;  // quarters have two decimals
    constexpr std::array<std::string_view, 4> kQuarters = {"", ".25", ".5", ".75"};
    return fmt::format("{}{}{}",
                       mib / size,
                       kQuarters.at(static_cast<std::size_t>((mib % size) * 4 / size)),
                       letter);
  }
  return fmt::format("{}M", mib);
}

std::string kind_text(const GpuRequest& request) {
  if (request.vendor.empty() && request.models.empty()) return "";
  std::string out = fmt::format("({}", vendor_word(request.vendor));
  if (!request.vendor.empty() && !request.models.empty()) out += ',';
  return out + join(request.models, "|") + ")";
}

}  // namespace

std::optional<std::string> read_vendor(std::string_view word, const GpuResources& resources) {
  const std::string lower = to_lower(trim(word));
  const auto known = std::ranges::find(kVendors, lower, &Word::word);
  if (known != kVendors.end()) return std::string(known->vendor);
  const auto named = resources.names.find(lower);
  return named == resources.names.end() ? std::nullopt : std::optional(named->first);
}

std::string gpu_request_text(const GpuRequest& request) {
  if (request.see_all) return "-1" + kind_text(request);
  if (request.gpus == 0) return "0";
  const std::string memory = request.memory.bytes > 0 ? exact_text(request.memory) : "";
  if (request.share == Share::whole()) {
    const std::string devices = fmt::format("{}{}", request.gpus, kind_text(request));
    return memory.empty() ? devices : devices + "," + memory;
  }
  std::string share = share_text(request.share);
  if (request.share_limit != Share{}) share += ".." + share_text(request.share_limit);
  share += kind_text(request);
  const std::string devices = request.gpus == 1 ? share : fmt::format("{}x{}", request.gpus, share);
  return memory.empty() ? devices : memory + "," + devices;
}

std::string gpu_request_text(const Request& request) {
  return gpu_request_text(gpu_request_of(request));
}

std::string resource_name(const GpuRequest& request, const GpuResources& resources) {
  std::string vendor = request.vendor;
  if (vendor.empty() && !request.models.empty()) {
    vendor = catalogue::vendor_of(request.models.front());
  }
  if (vendor.empty()) return resources.default_name;
  for (const auto& [word, name] : resources.names) {
    if (read_vendor(word, resources) == vendor) return name;
  }
  return resources.default_name;
}

namespace {

/// A part of a device is a fraction, the whole of it never.
GpuMode mode_with(Share share, GpuMode mode) {
  if (share < Share::whole()) return GpuMode::Fraction;
  return mode == GpuMode::Fraction ? GpuMode::Whole : mode;
}

Result<void> normalise_share_limit(Request& request) {
  if (request.share_limit == request.share || request.mode != GpuMode::Fraction) {
    request.share_limit = Share{};
  }
  if (request.share_limit == Share{}) return {};
  if (request.share_limit < request.share) {
    return fail(Code::Usage,
                tr_format("gpu_share_limit_parts: {} is less than the share, {}",
                          request.share_limit.parts,
                          request.share.parts));
  }
  if (request.gpus > 1) {
    return fail(Code::Usage, tr("gpu_share_limit_parts: only for a part of one GPU"));
  }
  return {};
}

}  // namespace

void apply(const GpuRequest& from, Request& to) {
  to.gpus = from.gpus;
  to.share = from.share;
  to.share_limit = from.share_limit;
  if (from.memory.bytes > 0) to.gpu_memory = from.memory;
  to.mode = mode_with(from.share, GpuMode::Whole);
  to.vendor = from.vendor;
  to.models = from.models;
  to.see_all = from.see_all;
}

GpuRequest gpu_request_of(const Request& request) {
  return {.gpus = request.gpus,
          .share = request.mode == GpuMode::Fraction ? request.share : Share::whole(),
          .share_limit = request.mode == GpuMode::Fraction ? request.share_limit : Share{},
          .memory = request.gpu_memory,
          .vendor = request.vendor,
          .models = request.models,
          .see_all = request.see_all};
}

Result<void> read_models(std::vector<std::string>& models) {
  if (models.size() > kMaxModels) {
    return fail(Code::Usage, tr_format("more than {} models", kMaxModels));
  }
  for (std::string& model : models) {
    std::string read = catalogue::read_model(model);
    if (read.empty() || printable(model) != model) {
      const auto near = nearest(model, catalogue::known_models());
      return fail(Code::Usage,
                  tr_format("'{}' is not a model of GPUs{}",
                            printable(model),
                            near ? tr_format("; did you mean {}?", *near) : ""));
    }
    model = std::move(read);
  }
  return {};
}

Result<void> normalise(Request& request) {
  const std::string vendor = to_lower(trim(request.vendor));
  const bool word = vendor.size() <= 32 && std::ranges::all_of(vendor, [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
                    });
  if (!word) {
    return fail(Code::Usage,
                tr_format("gpu_vendor: '{}' is not a vendor", printable(request.vendor)));
  }
  request.vendor = read_vendor(vendor).value_or(vendor);
  if (const auto read = read_models(request.models); !read) {
    return fail(read.error().code, tr_format("{}: {}", "gpu_models", read.error().message));
  }
  const auto each_once = [](auto& list) {
    std::ranges::sort(list);
    const auto repeated = std::ranges::unique(list);
    list.erase(repeated.begin(), repeated.end());
  };
  each_once(request.models);
  each_once(request.selector);
  request.mode = mode_with(request.share, request.mode);
  return normalise_share_limit(request);
}

Error error_of(const GpuRequestMistake& mistake, std::string_view text) {
  std::string message =
      tr_format("'{}', column {}: {}", printable(text), mistake.column, mistake.what);
  if (!mistake.instead.empty()) message += "; " + mistake.instead;
  return {Code::Usage, std::move(message)};
}

Result<GpuRequest> parse_gpu_request(std::string_view text, const GpuResources& resources) {
  auto request = read_gpu_request(text, resources);
  if (!request) return std::unexpected(error_of(request.error(), text));
  return *std::move(request);
}

}  // namespace gflow

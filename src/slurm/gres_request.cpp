// SPDX-License-Identifier: Apache-2.0
#include "slurm/gres_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "core/catalogue.h"
#include "slurm/gpu_kinds.h"

namespace gflow::slurm {
namespace {

bool is_called(const GpuKind& kind, const std::string& wanted) {
  return to_lower(wanted) == to_lower(kind.type) || to_lower(wanted) == to_lower(kind.model);
}

/// A model is what is called so; what answers to the name besides counts where nothing is.
bool is_model(const GpuKind& kind, const Request& request, const std::vector<GpuKind>& all) {
  if (request.models.empty()) return true;
  return std::ranges::any_of(request.models, [&](const std::string& wanted) {
    if (is_called(kind, wanted)) return true;
    const bool has_exact =
        std::ranges::any_of(all, [&](const GpuKind& one) { return is_called(one, wanted); });
    return !has_exact && catalogue::answers(wanted, kind.model);
  });
}

/// What no model is known of is of no vendor that could be asked for.
bool is_of_vendor(const GpuKind& kind, const Request& request) {
  return request.vendor.empty() || catalogue::vendor_of(kind.model) == request.vendor;
}

/// Whether a whole one has the memory that is to be free on it; what nothing is known of has not.
bool has_memory(const GpuKind& kind, const Request& request) {
  if (request.gpu_memory.bytes == 0) return true;
  const auto whole = catalogue::memory_of(kind.model);
  return whole && *whole >= request.gpu_memory;
}

std::string names_of(const std::vector<GpuKind>& kinds) {
  std::set<std::string> types;
  for (const GpuKind& kind : kinds) types.insert(kind.type.empty() ? "gpu" : printable(kind.type));
  return join(std::vector<std::string>(types.begin(), types.end()), ", ");
}

Error no_such_gpu(const std::vector<GpuKind>& all) {
  return {Code::Infeasible,
          all.empty() ? tr("no node of Slurm has GPUs")
                      : tr_format("no node of Slurm has such GPUs; there are: {}", names_of(all))};
}

Error name_one(const std::vector<GpuKind>& kinds) {
  return {Code::Usage,
          tr_format("Slurm takes one type of GPU for a job, and several would do: name one of "
                    "them: {}",
                    names_of(kinds))};
}

/// A kind, or any of the GPUs there are if these are all; then it needs no type.
Result<std::string> type_of(const std::vector<GpuKind>& kinds, std::size_t all) {
  if (kinds.size() == all) return std::string();
  if (kinds.size() > 1) return std::unexpected(name_one(kinds));
  if (kinds.front().type.empty()) {
    return fail(Code::Infeasible,
                tr("some GPUs of Slurm have no type, so that these alone cannot be asked for: ask "
                   "for a model that has one"));
  }
  return ":" + kinds.front().type;
}

Result<std::string> whole(const Request& request,
                          std::vector<GpuKind> kinds,
                          const std::vector<GpuKind>& all) {
  std::erase_if(kinds, [&](const GpuKind& kind) { return !has_memory(kind, request); });
  if (kinds.empty()) {
    return fail(Code::Infeasible,
                tr("no such GPU of Slurm is known to have so much memory: name a model"));
  }
  return fmt::format("gpu{}:{}", GF_TRY(type_of(kinds, all.size())), request.gpus);
}

/// How many parts of one GPU, of whichever is more: of its compute or of its memory. Nothing if it
/// has not so much memory, or none that is known.
std::optional<std::int64_t> count_of_parts(const GpuKind& kind, const Request& request) {
  double part = static_cast<double>(request.share.parts) / Share::kWholeParts;
  if (request.gpu_memory.bytes > 0) {
    const auto whole = catalogue::memory_of(kind.model);
    if (!whole) return std::nullopt;
    part = std::max(
        part, static_cast<double>(request.gpu_memory.bytes) / static_cast<double>(whole->bytes));
  }
  if (part > 1) return std::nullopt;
  const double count = std::ceil(part * static_cast<double>(kind.parts_of_gpu) - 1e-9);
  return std::max<std::int64_t>(static_cast<std::int64_t>(count), 1);
}

/// Parts are typed where the same number of them is not the same of any GPU.
Result<std::string> part(const Request& request,
                         std::vector<GpuKind> kinds,
                         const std::vector<GpuKind>& all) {
  const std::size_t asked = kinds.size();
  std::erase_if(kinds, [](const GpuKind& kind) { return kind.parts_of_gpu == 0; });
  if (kinds.empty()) {
    return fail(Code::Infeasible,
                tr("no such GPU of Slurm is shared (its nodes have neither shard nor mps): ask for "
                   "whole ones"));
  }
  std::erase_if(kinds, [](const GpuKind& kind) { return kind.is_uneven; });
  if (kinds.empty()) {
    return fail(Code::Infeasible,
                tr("such GPUs of Slurm are shared in different numbers of parts by different "
                   "nodes, so that no part is the same everywhere: ask for whole ones"));
  }
  std::erase_if(kinds, [&](const GpuKind& kind) { return !count_of_parts(kind, request); });
  if (kinds.empty()) {
    return fail(Code::Infeasible,
                tr("no such GPU of Slurm is known to have so much memory: write the part of it "
                   "instead, such as 0.5"));
  }
  const std::int64_t count = *count_of_parts(kinds.front(), request);
  const bool is_same = std::ranges::all_of(kinds, [&](const GpuKind& kind) {
    return kind.parts == kinds.front().parts && count_of_parts(kind, request) == count;
  });
  if (!is_same) return std::unexpected(name_one(kinds));
  const bool is_any = asked == all.size() && kinds.size() == asked;
  return fmt::format(
      "{}{}:{}", kinds.front().parts, is_any ? "" : GF_TRY(type_of(kinds, all.size())), count);
}

}  // namespace

Result<std::string> gres_for(const Request& request, const std::vector<Node>& nodes) {
  if (request.gpus == 0) return {};
  const std::vector<GpuKind> all = gpu_kinds(nodes);
  std::vector<GpuKind> kinds = all;
  std::erase_if(kinds, [&](const GpuKind& kind) {
    const bool is_named = !request.models.empty();
    return !is_model(kind, request, all) || !is_of_vendor(kind, request) ||
           (kind.is_slice() && !is_named);
  });
  if (kinds.empty()) return std::unexpected(no_such_gpu(all));
  if (request.mode != GpuMode::Fraction) return whole(request, std::move(kinds), all);
  if (request.gpus > 1) {
    return fail(Code::Usage,
                tr("parts of several GPUs cannot be asked for in Slurm: ask for whole ones, or for "
                   "a part of one"));
  }
  return part(request, std::move(kinds), all);
}

}  // namespace gflow::slurm

// SPDX-License-Identifier: Apache-2.0
#include "placement/cutting.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <tuple>

namespace gflow::placement {
namespace {

struct WishedKind {
  const MigKind* kind = nullptr;
  double probability = 0;
};

int slots_of(std::span<const MigKind> kinds) {
  int slots = 0;
  for (const MigKind& kind : kinds) {
    for (const int start : kind.starts) slots = std::max(slots, start + kind.size);
  }
  return std::min(slots, kMaxMigSlots);
}

std::vector<WishedKind> wished_kinds(std::span<const MigKind> kinds,
                                     std::span<const SliceWish> wishes) {
  std::vector<WishedKind> wished;
  double sum = 0;
  for (const MigKind& kind : kinds) {
    double weight = 0;
    for (const SliceWish& wish : wishes) weight += wish.profile == kind.profile ? wish.weight : 0;
    if (weight <= 0) continue;
    wished.push_back({&kind, weight});
    sum += weight;
  }
  if (wished.empty()) {
    for (const MigKind& kind : kinds) wished.push_back({&kind, 1});
    sum = static_cast<double>(kinds.size());
  }
  for (WishedKind& one : wished) one.probability /= sum;
  return wished;
}

/// By what is asked for, and by what may be.
struct Wastes {
  CutWaste wished;
  CutWaste any;
};

/// The waste that is left if one of that kind comes and has the best of its places, or none.
double best_with(std::span<const double> waste, MigSlots taken, const MigKind& kind) {
  double best = waste[taken];
  for (const int start : kind.starts) {
    const MigSlots place = mig_slots(start, kind.size);
    const bool is_free = (taken & place) == 0 && place < waste.size();
    if (is_free) best = std::min(best, waste[taken | place]);
  }
  return best;
}

std::int64_t millionths(double waste) { return std::llround(waste * 1e6); }

/// What stands in the way of a slice at that place; nothing if that may not be removed.
std::optional<std::vector<std::size_t>> in_the_way(const Cuttable& cuttable,
                                                   const MigKind& kind,
                                                   int start) {
  const MigSlots wanted = mig_slots(start, kind.size);
  if ((wanted & cuttable.barred) != 0) return std::nullopt;
  std::vector<std::size_t> found;
  int alike = 0;
  const std::vector<MigInstance>& there = cuttable.gpu->instances;
  for (std::size_t at = 0; at < there.size(); ++at) {
    if ((there[at].slots() & wanted) == 0) {
      if (there[at].profile == kind.profile) ++alike;
      continue;
    }
    if (at >= cuttable.removable.size() || !cuttable.removable[at]) return std::nullopt;
    found.push_back(at);
  }
  if (alike >= kind.most) return std::nullopt;
  return found;
}

/// Every place for one of the profiles.
std::vector<Cut> cuts_of(std::size_t at,
                         const Cuttable& cuttable,
                         std::span<const std::string> profiles) {
  std::vector<Cut> cuts;
  for (const std::string& profile : profiles) {
    const MigKind* kind = kind_of(*cuttable.gpu, profile);
    if (kind == nullptr) continue;
    for (const int start : kind->starts) {
      auto removed = in_the_way(cuttable, *kind, start);
      if (removed) cuts.push_back({at, *kind, start, *std::move(removed)});
    }
  }
  return cuts;
}

/// What is removed, by how much the waste grows, which GPU, and the same where nothing is known of
/// what will be asked for.
using Cost = std::tuple<std::size_t, std::int64_t, std::size_t, std::int64_t>;

Cost cost_of(const Cut& cut, const MigGpu& gpu, const Wastes& wastes) {
  MigSlots left = taken_of(gpu);
  for (const std::size_t one : cut.removed) left &= ~gpu.instances[one].slots();
  const MigSlots then = left | cut.slots();
  return {cut.removed.size(),
          millionths(wastes.wished.of(then) - wastes.wished.of(left)),
          cut.gpu,
          millionths(wastes.any.of(then) - wastes.any.of(left))};
}

}  // namespace

CutWaste::CutWaste(std::span<const MigKind> kinds, std::span<const SliceWish> wishes) {
  const int slots = slots_of(kinds);
  const std::size_t masks = std::size_t{1} << slots;
  const std::vector<WishedKind> wished = wished_kinds(kinds, wishes);
  for (MigSlots taken = 0; taken < masks; ++taken) {
    waste_.push_back(static_cast<double>(slots - std::popcount(taken)));
  }
  for (int offered = 0; offered < 4 * slots; ++offered) {
    const std::vector<double> before = waste_;
    for (MigSlots taken = 0; taken < masks; ++taken) {
      waste_[taken] = 0;
      for (const auto& [kind, probability] : wished) {
        waste_[taken] += probability * best_with(before, taken, *kind);
      }
    }
  }
}

MigSlots taken_of(const MigGpu& gpu) {
  MigSlots taken = 0;
  for (const MigInstance& one : gpu.instances) taken |= one.slots();
  return taken;
}

std::optional<Cut> choose_cut(std::span<const Cuttable> gpus,
                              std::span<const std::string> profiles,
                              std::span<const SliceWish> wishes) {
  std::optional<Cut> best;
  Cost best_cost;
  std::optional<Wastes> wastes;  // of the GPU that is looked at, and those before it of its kinds
  const std::vector<MigKind>* kinds = nullptr;
  for (std::size_t at = 0; at < gpus.size(); ++at) {
    const MigGpu& gpu = *gpus[at].gpu;
    if (kinds != nullptr && *kinds != gpu.kinds) wastes.reset();
    kinds = &gpu.kinds;
    for (Cut& cut : cuts_of(at, gpus[at], profiles)) {
      if (!wastes) wastes = Wastes{{gpu.kinds, wishes}, {gpu.kinds, {}}};
      const Cost cost = cost_of(cut, gpu, *wastes);
      if (best && best_cost <= cost) continue;
      best = std::move(cut);
      best_cost = cost;
    }
  }
  return best;
}

bool has_place(std::span<const Cuttable> gpus, std::span<const std::string> profiles) {
  return std::ranges::any_of(
      gpus, [&](const Cuttable& gpu) { return !cuts_of(0, gpu, profiles).empty(); });
}

std::vector<std::string> room_of(const MigGpu& gpu) {
  std::vector<std::string> profiles;
  for (const MigKind& kind : gpu.kinds) {
    const bool has_room = std::ranges::any_of(
        kind.starts, [&](int start) { return in_the_way({.gpu = &gpu}, kind, start).has_value(); });
    if (has_room) profiles.push_back(kind.profile);
  }
  return profiles;
}

}  // namespace gflow::placement

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/mig_gpu.h"

namespace gflow::placement {

/// A profile that jobs ask for, and how often.
struct SliceWish {
  std::string profile;
  double weight = 0;
};

/// What is expected to stay unused of a GPU with MIG, in memory slices, by which of them are taken:
/// the expected waste of a device (policies/expected_waste.h) for what is not a quantity but has
/// places. Wishes come one after another and may be refused:
///
///     w_0(m) = free slices of m
///     w_t(m) = E min(w_(t-1)(m), min over places p of the wish that are free: w_(t-1)(m | p))
///
/// for four times as many wishes as there are slices: with fewer, what is asked for rarely and
/// needs all of a GPU has none kept whole.
class CutWaste {
 public:
  /// Of wishes the GPU knows nothing of, none counts; without any, all its profiles alike.
  CutWaste(std::span<const MigKind> kinds, std::span<const SliceWish> wishes);
  [[nodiscard]] double of(MigSlots taken) const { return waste_[taken]; }

 private:
  std::vector<double> waste_;  // by what is taken
};

/// A GPU as it stands for one that asks for a slice. Borrows.
struct Cuttable {
  const MigGpu* gpu = nullptr;
  std::vector<bool> removable{};  ///< of its instances: whether it may be taken away for that
  MigSlots barred = 0;            ///< slices nothing is made of, though they may be free
};

/// Where a slice is to be made, and what has to be removed for it first.
struct Cut {
  std::size_t gpu = 0;  ///< which of those asked about
  MigKind kind;
  int start = 0;
  std::vector<std::size_t> removed;  ///< of the GPU's instances

  [[nodiscard]] MigSlots slots() const { return mig_slots(start, kind.size); }
};

/// The slices taken of a GPU.
[[nodiscard]] MigSlots taken_of(const MigGpu& gpu);

/// Where one of these profiles is best made: where least has to be removed, of those where that
/// raises the expected waste least, of those on the first GPU, and there where it would be raised
/// least if any profile were asked for as often. Nothing if no GPU has room.
[[nodiscard]] std::optional<Cut> choose_cut(std::span<const Cuttable> gpus,
                                            std::span<const std::string> profiles,
                                            std::span<const SliceWish> wishes);

/// Whether any GPU has room for one of them.
[[nodiscard]] bool has_place(std::span<const Cuttable> gpus, std::span<const std::string> profiles);

/// The profiles that could be made of what is free of the GPU, in its order.
[[nodiscard]] std::vector<std::string> room_of(const MigGpu& gpu);

}  // namespace gflow::placement

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "placement/policy.h"

namespace gflow::placement {

/// What is left on a node: as it stands, or as it would be.
struct Remains {
  ModelIndex model = -1;  ///< of all devices; -1: look at `models`
  std::int64_t milli_cpus = 0;
  std::span<const std::int32_t> free;   ///< parts of each device
  std::span<const DeviceState> models;  ///< of each device; only their model is looked at
};

/// How much of a node's free compute the typical jobs cannot use (Weng et al., "Beware of
/// Fragmentation", USENIX ATC'23). For a class that asks no GPU, whose model is not there, or that
/// does not fit for want of CPUs or devices, it is all of it; for another what lies on devices with
/// less than the class asks. The sum over classes, weighted by popularity, is the fragmentation.
///
/// Two forms of the same thing: published() in the very arithmetic of the authors' program, so that
/// its rounding can be reproduced, and exact integers from tables, thirty times as fast.
class Fragmentation {
 public:
  Fragmentation() = default;
  Fragmentation(const Ledger& ledger, const Profile& profile);

  /// In thousandths of a GPU.
  [[nodiscard]] double published(const Remains& node) const;

  /// Jobs of the typical classes. Exact amounts count parts times jobs.
  [[nodiscard]] std::int64_t jobs() const { return jobs_; }
  /// Free compute that is not fragmented: jobs() * sum(free) less the exact fragmentation.
  [[nodiscard]] std::int64_t usable(const Remains& node) const;

  /// Whether usable() of this node can be had from a row. Not where models differ within the node,
  /// and not where a class asks for parts of several devices.
  [[nodiscard]] bool has_rows(ModelIndex model) const { return model >= 0 && !wide_fractions_; }

  /// Popularity on a node of one model with so many CPUs free.
  struct Row {
    const std::int32_t* one = nullptr;   // by level(): jobs of one device that could use this one
    const std::int32_t* many = nullptr;  // by idle devices: jobs of several whole devices that fit
  };
  /// REQUIRES: has_rows(model).
  [[nodiscard]] Row row(ModelIndex model, std::int64_t milli_cpus) const;
  /// Sizes asked for by jobs of one device, up to this amount of free compute.
  [[nodiscard]] std::size_t level(std::int32_t parts) const {
    return level_[static_cast<std::size_t>(parts)];
  }
  /// What the idle devices add: those of a row are counted together, beyond what each is by itself.
  [[nodiscard]] std::int64_t of_idle(const Row& row, int idle) const {
    const int counted = std::clamp(idle, 0, max_gpus_);
    return std::int64_t{Share::kWholeParts} * idle * row.many[static_cast<std::size_t>(counted)];
  }

 private:
  struct Class {
    std::int64_t milli_cpus = 0;
    int gpus = 0;
    std::int32_t parts = 0;
    std::int64_t count = 0;
    double popularity = 0;
    std::vector<std::uint8_t> accepts;  // by model
  };

  [[nodiscard]] bool accepts(const Class& kind, const Remains& node, std::size_t device) const {
    const ModelIndex model = node.model >= 0 ? node.model : node.models[device].model;
    return kind.accepts[static_cast<std::size_t>(model)] != 0;
  }
  void make_levels();
  void make_rows(std::size_t models);
  /// Devices of a node as a job of the class sees them.
  struct Offered {
    int accepted = 0;  ///< of a model it takes
    int devices = 0;   ///< of them, those with room for its part
    double small = 0;  ///< compute free on all others, in parts
  };
  [[nodiscard]] Offered offered_to(const Class& kind, const Remains& node) const;

  std::vector<Class> classes_;
  std::int64_t jobs_ = 0;
  bool wide_fractions_ = false;
  int max_gpus_ = 1;
  std::vector<std::int64_t> cpu_steps_;   // what classes ask for, ascending
  std::vector<std::int32_t> part_steps_;  // what classes of one device ask for, ascending
  std::vector<std::uint16_t> level_;      // by parts: how many of part_steps_ are not above
  std::vector<std::int32_t> one_;         // by model, CPU step, level
  std::vector<std::int32_t> many_;        // by model, CPU step, idle devices
};

}  // namespace gflow::placement

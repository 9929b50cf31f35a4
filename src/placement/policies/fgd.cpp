// SPDX-License-Identifier: Apache-2.0
// Fragmentation gradient descent (Weng et al., USENIX ATC'23), as its authors' program does it.
//
// Assumes that the profile tells what is going to be asked for. A node's score is by how much the
// job lowers its fragmentation, through 100 / (1 + exp(-d / 1000)) cut to an integer, d in
// thousandths of a GPU. A job of part of a device tries each device that fits, in order, and takes
// the first of the highest score; one of whole devices takes the lowest idle ones. Ties go to the
// first node. The cut is part of the policy: without it there are no ties, and it places worse.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "placement/fragmentation.h"
#include "placement/policies/policies.h"

namespace gflow::placement {
namespace {

constexpr Score kMaxScore = 100;
constexpr Score kUnchanged = 50;  // of d = 0

Score published_score(double lowered_milli) {
  const double sigmoid = 1.0 / (1.0 + std::exp(-lowered_milli / 1000));
  return static_cast<Score>(sigmoid * kMaxScore);
}

class Fgd final : public Policy {
 public:
  void prepare(const Setting& setting) override;
  [[nodiscard]] std::int64_t worth(const Ledger& ledger, const NodeView& node) const override;
  [[nodiscard]] Score score(const Question& question) const override;
  [[nodiscard]] std::vector<int> devices(const Question& question) const override;
  [[nodiscard]] std::vector<Term> explain(const Question& question) const override;

 private:
  using Row = Fragmentation::Row;

  [[nodiscard]] bool is_in_tables(const Question& question) const {
    const bool shaped = question.demand.gpus == 0 || question.demand.mode == GpuMode::Whole ||
                        question.demand.is_part_of_one();
    return shaped && fragmentation_.has_rows(question.node.model);
  }
  /// What all devices of the node would be worth if only the CPUs were taken, each by itself.
  [[nodiscard]] std::int64_t rest_of(const NodeView& node, const Row& row) const;
  /// What it takes out of fragmentation merely by being there, less what the node is worth now.
  [[nodiscard]] std::int64_t taken(const Question& question) const;
  /// What changes if a device with this much free gives the part asked for.
  [[nodiscard]] std::int64_t gain_of_part(const Question& question,
                                          const Row& row,
                                          std::int32_t parts) const;

  /// The score for a gain in parts times jobs; nothing where rounding in the published arithmetic
  /// might decide.
  [[nodiscard]] std::optional<Score> score_of(std::int64_t gain) const;
  [[nodiscard]] std::optional<Score> exact(const Question& question) const;
  /// By how much fragmentation falls, in thousandths of a GPU, in the authors' arithmetic.
  [[nodiscard]] double lowered(const Question& question, std::span<const int> devices) const;
  [[nodiscard]] Score reference(const Question& question) const;

  Fragmentation fragmentation_;
  std::array<double, kMaxScore + 1> edges_{};  // least gain of each score, in parts times jobs
  double blur_ = 0;                            // how near to an edge rounding might decide
};

Remains remains(const Question& question, std::span<const std::int32_t> free) {
  return {.model = question.node.model,
          .milli_cpus = question.node.milli_cpus_free - question.demand.milli_cpus,
          .free = free,
          .models = question.ledger.state(question.node.index).devices};
}

void Fgd::prepare(const Setting& setting) {
  fragmentation_ = Fragmentation(setting.ledger, setting.profile);
  const double milli = 10.0 * static_cast<double>(fragmentation_.jobs());
  for (std::size_t i = 1; i < edges_.size() - 1; ++i) {
    const double share = static_cast<double>(kMaxScore) / static_cast<double>(i);
    edges_[i] = -1000.0 * std::log(share - 1) * milli;
  }
  edges_.front() = -std::numeric_limits<double>::infinity();
  edges_.back() = std::numeric_limits<double>::infinity();
  blur_ = 1e-9 * milli;
}

std::int64_t Fgd::worth(const Ledger& ledger, const NodeView& node) const {
  return fragmentation_.usable({.model = node.model,
                                .milli_cpus = node.milli_cpus_free,
                                .free = node.free,
                                .models = ledger.state(node.index).devices});
}

std::optional<Score> Fgd::score_of(std::int64_t gain) const {
  const auto d = static_cast<double>(gain);
  const auto above = std::upper_bound(edges_.begin(), edges_.end(), d);
  if (*above - d < blur_ || d - *(above - 1) < blur_) return std::nullopt;
  return static_cast<Score>(above - edges_.begin()) - 1;
}

std::int64_t Fgd::gain_of_part(const Question& question, const Row& row, std::int32_t parts) const {
  const std::int32_t left = parts - question.demand.share.parts;
  const int idle = question.node.idle - (parts == Share::kWholeParts ? 1 : 0);
  return std::int64_t{left} * row.one[fragmentation_.level(left)] -
         std::int64_t{parts} * row.one[fragmentation_.level(parts)] +
         fragmentation_.of_idle(row, idle);
}

std::int64_t Fgd::rest_of(const NodeView& node, const Row& row) const {
  std::int64_t rest = 0;
  for (const std::int32_t parts : node.free) {
    rest += std::int64_t{parts} * row.one[fragmentation_.level(parts)];
  }
  return rest;
}

std::int64_t Fgd::taken(const Question& question) const {
  return question.demand.share.parts * fragmentation_.jobs() * question.demand.gpus -
         question.node.worth;
}

/// The score from tables, where they tell it.
std::optional<Score> Fgd::exact(const Question& question) const {
  const NodeView& node = question.node;
  const Demand& demand = question.demand;
  if (!is_in_tables(question)) return std::nullopt;
  const Row row = fragmentation_.row(node.model, node.milli_cpus_free - demand.milli_cpus);
  if (demand.gpus == 0) {
    const Row before = fragmentation_.row(node.model, node.milli_cpus_free);
    if (node.free_parts == 0 || before.one == row.one) return kUnchanged;
    return score_of(rest_of(node, row) + fragmentation_.of_idle(row, node.idle) - node.worth);
  }
  const std::int64_t rest = rest_of(node, row) + taken(question);
  if (demand.mode == GpuMode::Whole) {
    const std::int32_t whole = Share::kWholeParts;
    const std::int64_t less =
        std::int64_t{whole} * demand.gpus * row.one[fragmentation_.level(whole)];
    return score_of(rest - less + fragmentation_.of_idle(row, node.idle - demand.gpus));
  }
  std::int64_t best = std::numeric_limits<std::int64_t>::min();
  std::int32_t tried = -1;
  for (std::size_t i = 0; i < node.free.size(); ++i) {
    if (question.fits[i] == 0 || node.free[i] == tried) continue;
    tried = node.free[i];
    best = std::max(best, gain_of_part(question, row, tried));
  }
  return score_of(rest + best);
}

double Fgd::lowered(const Question& question, std::span<const int> devices) const {
  Remains before = remains(question, question.node.free);
  before.milli_cpus = question.node.milli_cpus_free;
  const std::vector<std::int32_t> free = free_after(question, devices);
  return fragmentation_.published(before) - fragmentation_.published(remains(question, free));
}

Score Fgd::reference(const Question& question) const {
  return published_score(lowered(question, devices(question)));
}

Score Fgd::score(const Question& question) const {
  const std::optional<Score> fast = exact(question);
  return fast ? *fast : reference(question);
}

std::vector<int> Fgd::devices(const Question& question) const {
  if (!question.demand.is_part_of_one()) return least_free(question);
  const bool tables = is_in_tables(question);
  Row row;
  std::int64_t rest = 0;
  if (tables) {
    row = fragmentation_.row(question.node.model,
                             question.node.milli_cpus_free - question.demand.milli_cpus);
    rest = rest_of(question.node, row) + taken(question);
  }
  Score best = kNoScore;
  int chosen = 0;
  std::int32_t tried = -1;
  for (std::size_t i = 0; i < question.fits.size(); ++i) {
    const std::int32_t parts = question.node.free[i];
    if (question.fits[i] == 0 || parts == tried) continue;
    tried = parts;
    const std::array<int, 1> device{static_cast<int>(i)};
    std::optional<Score> score;
    if (tables) score = score_of(rest + gain_of_part(question, row, parts));
    if (!score) score = published_score(lowered(question, device));
    if (*score <= best) continue;
    best = *score;
    chosen = device.front();
  }
  return {chosen};
}

std::vector<Term> Fgd::explain(const Question& question) const {
  const double gpus = lowered(question, devices(question)) / 1000;
  return {{.name = "fragmentation removed, GPUs", .weight = 1, .value = gpus}};
}

}  // namespace

std::unique_ptr<Policy> make_fgd(const PolicyOptions&) { return std::make_unique<Fgd>(); }

}  // namespace gflow::placement

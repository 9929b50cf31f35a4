// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "placement/policy.h"

/// What spread, pack and balanced score a node by: the four terms of the document
/// "GPU负载方式详解", 0.4 GPU utilisation + 0.3 memory utilisation + 0.2 CPU utilisation + 0.1
/// fragmentation penalty. The weights can be set; which way a term counts is each policy's.
namespace gflow::placement {

constexpr int kPermille = 1000;

/// A node as it would be with the job there, each in thousandths.
struct Utilisation {
  int gpu = 0;     ///< compute of its usable devices in use
  int memory = 0;  ///< memory of its devices set aside; where that is not known, as gpu
  int cpu = 0;     ///< CPUs in use
  /// Free compute that lies on devices partly in use, where no whole-device job can have it, of all
  /// compute.
  int fragmentation = 0;
};
[[nodiscard]] Utilisation utilisation_with(const Question& question, std::span<const int> devices);

/// How good each term is, in thousandths.
struct Merits {
  int gpu = 0;
  int memory = 0;
  int cpu = 0;
  int fragmentation = 0;
};

/// The sum of weight (percent) times merit (thousandths): up to 100,000 for weights that are 100
/// together.
[[nodiscard]] Score weighed(const Merits& merits, const PolicyOptions& weights);
[[nodiscard]] std::vector<Term> terms_of(const Merits& merits, const PolicyOptions& weights);

/// A policy that differs from its like only in what it holds to be good, and in which devices.
class UtilisationPolicy : public Policy {
 public:
  explicit UtilisationPolicy(const PolicyOptions& options) : options_(options) {}

  /// The score of a node that would be like this.
  [[nodiscard]] Score score_of(const Utilisation& with_job) const {
    return weighed(merits(with_job), options_);
  }

  [[nodiscard]] Score score(const Question& question) const final {
    return score_of(utilisation_with(question, devices(question)));
  }
  [[nodiscard]] std::vector<Term> explain(const Question& question) const final {
    return terms_of(merits(utilisation_with(question, devices(question))), options_);
  }

 protected:
  [[nodiscard]] virtual Merits merits(const Utilisation& with_job) const = 0;

 private:
  PolicyOptions options_;
};

}  // namespace gflow::placement

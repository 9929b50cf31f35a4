// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/job_query.h"
#include "engine/glance.h"

namespace gflow::server {

/// Where a job stands in an order: what it is sorted by, then its id. One that compares equal to no
/// other, and that means the same when the job is gone.
struct SortPlace {
  std::int64_t number = 0;
  std::string text;
  JobId id;

  friend bool operator==(const SortPlace&, const SortPlace&) = default;
};

/// A moment by what passes alone: a clock that is set moves it nowhere.
struct Moment {
  MonoTime mono;
  std::chrono::milliseconds lived{0};  ///< engine::State::lived() then
};

/// The first jobs in an order, or the first behind a place, of however many it is shown: it keeps
/// no more than it was asked for.
class TopJobs {
 public:
  /// For one who sees so much: names they are not shown are as none.
  TopJobs(JobOrder order,
          std::size_t most,
          std::optional<SortPlace> after = {},
          const JobSight& sight = {})
      : order_(order), most_(most), after_(std::move(after)), sight_(sight) {}

  /// Run times are those of a moment, so that who asks for page after page finds all in one order.
  void add(const engine::Glance& job, Moment as_of);
  /// Takes them all, in their order.
  [[nodiscard]] std::vector<SortPlace> take();

 private:
  /// A place that owns nothing.
  struct Key {
    std::int64_t number = 0;
    std::string_view text;
    JobId id;
  };
  [[nodiscard]] static Key key_of(const SortPlace& place) {
    return {place.number, place.text, place.id};
  }
  [[nodiscard]] std::int64_t number_of(const engine::Glance& job, Moment as_of) const;
  [[nodiscard]] bool is_before(const Key& a, const Key& b) const;

  JobOrder order_;
  std::size_t most_;
  std::optional<SortPlace> after_;
  JobSight sight_;
  std::vector<SortPlace> heap_;  ///< the last of them is its first
};

}  // namespace gflow::server

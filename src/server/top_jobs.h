// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/job.h"
#include "core/job_query.h"
#include "engine/glance.h"

namespace gflow::server {

/// The first jobs in an order, of however many it is shown: it keeps no more than it was asked for.
class TopJobs {
 public:
  TopJobs(JobOrder order, std::size_t most) : order_(order), most_(most) {}

  void add(const engine::Glance& job, Now now);
  /// Takes them all, in their order.
  [[nodiscard]] std::vector<JobId> take();

 private:
  struct Entry {
    std::int64_t number = 0;
    std::string text;
    JobId id;
  };
  [[nodiscard]] Entry entry_of(const engine::Glance& job, Now now) const;
  [[nodiscard]] bool is_before(const Entry& a, const Entry& b) const;

  JobOrder order_;
  std::size_t most_;
  std::vector<Entry> heap_;  ///< the last of them is its first
};

}  // namespace gflow::server

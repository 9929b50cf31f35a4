// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/memory.h"
#include "base/time.h"
#include "core/job.h"
#include "core/status.h"

namespace gflow::server {

/// An observation that stands for others like it: which job it was.
struct Exemplar {
  std::uint64_t job = 0;
  std::string trace_id;  ///< "" if it has none
  double value = 0;
  WallTime at;
};

/// How often something was how large.
class Histogram {
 public:
  /// Upper bounds, ascending; what is larger is counted, too.
  explicit Histogram(std::span<const double> bounds);
  void observe(double value, std::optional<Exemplar> exemplar = {});
  /// Takes in what was counted elsewhere: so many in a bucket, and all together.
  void count(std::size_t bucket, std::uint64_t many) { buckets_.at(bucket).count += many; }
  void add_sum(double sum) { sum_ += sum; }

  struct Bucket {
    std::optional<double> upper;  ///< empty: everything larger
    std::uint64_t count = 0;      ///< in this one alone
    std::optional<Exemplar> exemplar{};
  };
  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  [[nodiscard]] double sum() const { return sum_; }

 private:
  std::vector<Bucket> buckets_;
  double sum_ = 0;
};

/// Why an attempt was no end of its job.
enum class Requeue { Preempted, Failed, Lost };
constexpr std::array<const char*, 3> kRequeueNames = {"preempted", "failed", "lost"};

/// What happened since the daemon started. Kept as it happens, so that reading it costs the same
/// however many jobs there are.
struct Counters {
  Counters();

  std::uint64_t submitted = 0;                      ///< jobs taken
  std::array<std::uint64_t, kStatusSlots> ended{};  ///< by the state they ended in
  std::uint64_t started = 0;                        ///< attempts
  std::array<std::uint64_t, kRequeueNames.size()> requeued{};
  double gpu_seconds = 0;  ///< that jobs which ended held, a share counting as its part
  Histogram wait;          ///< from submission to the first start, seconds
  Histogram run_time;      ///< of jobs that ended, seconds
  Histogram pass;          ///< of the loop: decision and commit, seconds
};

/// GPUs such a job has while it runs, a share counting as its part.
[[nodiscard]] double gpus_held(const JobSpec& spec);

/// How the daemon is now.
struct Vitals {
  std::optional<Memory> disk_free{};
  std::optional<Memory> database{};
  bool disk_is_full = false;
  std::optional<WallTime> last_reading{};  ///< of devices that are read again and again
  std::optional<double> cpu_seconds{};
  std::optional<Memory> resident{};
  std::uint64_t spans_sent = 0;     ///< of traces
  std::uint64_t spans_dropped = 0;  ///< which the collector did not take in time
};

}  // namespace gflow::server

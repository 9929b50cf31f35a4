// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/job.h"
#include "store/store.h"

/// What the tests of the store share.
namespace gflow::store::samples {

/// A directory of its own, gone with all in it at the end.
class Directory {
 public:
  Directory();
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A WallTime so many seconds after a fixed one.
[[nodiscard]] WallTime at(int seconds);
/// A small queued job.
[[nodiscard]] Job queued(std::uint64_t id);
/// A job in which no field has the value it starts with, in this state.
[[nodiscard]] Job full(std::uint64_t id, JobState state);
[[nodiscard]] Attempt attempt();
[[nodiscard]] Outcome outcome();
/// A payload with bytes no text has.
[[nodiscard]] Payload payload();
constexpr int kNewestSchema = 23;
/// Every shape of JobState, each with ids of its own: what tests/upgrade/schema_<schema>.db holds,
/// ascending by id.
[[nodiscard]] std::vector<Job> every_state(int schema = kNewestSchema);
/// From schema 16 on: arrays, in each of the ways their tasks are called, and what they run.
[[nodiscard]] std::vector<JobRange> ranges();
/// What their tasks, numbered from 5 on by 2, run, beside this; borrowed.
[[nodiscard]] std::vector<SavedArray> arrays_of(const std::vector<JobRange>& ranges,
                                                const Payload& payload);
/// What that is for the i-th of them where it is payload().
[[nodiscard]] Payload payload_of(const JobRange& range, std::uint64_t i);
/// From schema 2 on; with UUIDs from 11 on.
[[nodiscard]] std::vector<Drain> drains(int schema = kNewestSchema);

/// From schema 7 on.
[[nodiscard]] std::vector<NodeHealth> unhealthy();

/// From schema 22 on.
[[nodiscard]] std::vector<MadeSlice> slices();

/// From schema 13 on.
[[nodiscard]] std::vector<Token> tokens();

/// Makes PATH.ids that of a run of which nothing is known but that it did not end in order.
void forget_run(const std::string& path);
/// Opens or fails the test.
[[nodiscard]] std::unique_ptr<Store> open(const std::string& path);
/// All jobs, or fails the test.
[[nodiscard]] std::vector<Job> jobs_of(Store& store);
/// A batch that saves them and a payload for each of them.
[[nodiscard]] Batch batch_of(const std::vector<Job>& jobs, const Payload& payload);

}  // namespace gflow::store::samples

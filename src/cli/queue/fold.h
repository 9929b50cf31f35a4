// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "api/types.h"

namespace gflow::cli {

/// A row of a screen: a job, or the tasks of one array that wait for the same. Of all but the first
/// it keeps numbers alone.
class FoldedJobs {
 public:
  explicit FoldedJobs(std::shared_ptr<const api::JobView> first);
  void add(const api::JobView& job);

  [[nodiscard]] const api::JobView& first() const { return *first_; }
  [[nodiscard]] const std::vector<std::uint64_t>& jobs() const { return ids_; }
  /// "12", "14-31", "14,16-31".
  [[nodiscard]] std::string ids() const;
  /// "eval", "eval_[3-20]"; "group-1a2b (18 jobs)" where names have nothing in common.
  [[nodiscard]] std::string name() const;

 private:
  std::shared_ptr<const api::JobView> first_;
  std::vector<std::uint64_t> ids_;
  std::vector<std::uint64_t> tasks_;  ///< of those that are called like the first
};

/// What the tasks of an array that stand together have in common besides their request.
enum class Folding { None, Waiting, SameDependencies };

/// Makes rows of jobs that come one after the other: those of one group that wait with the same
/// request stand together where the first of them stood.
class ArrayFolder {
 public:
  explicit ArrayFolder(Folding folding) : folding_(folding) {}

  void add(std::shared_ptr<const api::JobView> job);
  /// Takes the first rows, up to one that jobs to come may join: they do while no thousand others
  /// stand between.
  [[nodiscard]] std::vector<FoldedJobs> take_complete();
  /// Takes all rows.
  [[nodiscard]] std::vector<FoldedJobs> take_all();

 private:
  using Key = std::tuple<std::string, std::string, Status, std::vector<JobId>>;
  struct Row;
  using Rows = std::multimap<Key, Row*>;
  struct Row {
    FoldedJobs jobs;
    std::size_t last = 0;  ///< which of all jobs joined it last
    Rows::iterator known;  ///< end() if none can join it
  };
  [[nodiscard]] Row* row_for(const Key& key, const api::JobView& job);
  [[nodiscard]] bool is_complete(const Row& row) const;
  [[nodiscard]] FoldedJobs take_first();

  Folding folding_;
  std::deque<Row> rows_;
  Rows open_;
  std::size_t seen_ = 0;
};

/// All of them at once. They have to outlive the rows.
[[nodiscard]] std::vector<FoldedJobs> fold_arrays(const std::vector<const api::JobView*>& jobs,
                                                  Folding folding = Folding::Waiting);
/// Each in a row of its own.
[[nodiscard]] std::vector<FoldedJobs> unfolded(const std::vector<const api::JobView*>& jobs);

}  // namespace gflow::cli

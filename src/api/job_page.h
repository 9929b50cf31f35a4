// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "api/types.h"

namespace gflow::api {

/// Errors: Usage naming the one that no job has.
[[nodiscard]] Result<void> check_job_fields(std::span<const std::string> fields);

/// Writes a JobPage job by job, so that it ends where it would get too large, whatever the jobs
/// hold: a page that is written can be read.
class JobPageWriter {
 public:
  /// `fields`: what is shown of each job, as in JobQuery.
  explicit JobPageWriter(std::size_t max_bytes, std::span<const std::string> fields = {});
  ~JobPageWriter();
  JobPageWriter(const JobPageWriter&) = delete;
  JobPageWriter& operator=(const JobPageWriter&) = delete;

  /// False: the page is full, and this job is not on it. The first job always is.
  [[nodiscard]] bool add(const JobView& job);
  /// There are more after the last job added; in the order by id, or in another from there on.
  void more();
  void more(std::string cursor);
  /// What the next page begins after; empty if there is none.
  [[nodiscard]] const std::string& next() const;
  [[nodiscard]] std::string finish(std::uint64_t revision);

 private:
  struct Page;
  std::unique_ptr<Page> page_;
  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  JobId last_;
};

/// The text of a JobPage in pieces, for who has no room for all of it: one behind the other they
/// are write() of the page.
class JobPagePieces {
 public:
  explicit JobPagePieces(std::uint64_t revision);

  [[nodiscard]] std::string begin() const { return begin_; }
  [[nodiscard]] std::string add(std::span<const JobView> jobs);
  [[nodiscard]] std::string end() const { return end_; }

 private:
  std::string begin_;
  std::string end_;
  bool has_jobs_ = false;
};

}  // namespace gflow::api

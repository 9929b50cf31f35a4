// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/job_id.h"

namespace gflow::daemon {

/// Which jobs are on which GPU, for dcgm-exporter's --hpc-job-mapping-dir: a file a GPU, named by
/// its index, with the id of a job in each line; none for a GPU without jobs. Whole files take the
/// place of those before, under names that dcgm-exporter does not read until then. They are written
/// on a thread of their own, so that a slow disk keeps no decision waiting.
class HpcJobs {
 public:
  HpcJobs();
  ~HpcJobs();  ///< what is there stays: the jobs run on
  HpcJobs(const HpcJobs&) = delete;
  HpcJobs& operator=(const HpcJobs&) = delete;

  /// Writes into this directory from now on, which is made if it is not there and rid of what an
  /// earlier daemon left; "" for none. What was written to another one before is removed.
  void set_directory(const std::string& directory);
  [[nodiscard]] bool is_on() const { return !directory_.empty(); }
  /// The jobs on each GPU; what did not change is not written again.
  void show(const std::map<int, std::vector<JobId>>& jobs);
  /// Why the last change could not be written; "" if it was.
  [[nodiscard]] std::string trouble() const;
  /// Waits until all that was shown is written: for tests.
  void drain();

 private:
  struct Task {
    std::string directory;
    std::map<int, std::string> files;  ///< text by GPU, "" to remove it
    bool is_first = false;             ///< what else is there goes
  };
  void serve();
  void put(Task task);

  std::string directory_;
  std::map<int, std::string> shown_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task> tasks_;  // guarded by mutex_, as all that follows
  std::string trouble_;
  bool busy_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gflow::daemon

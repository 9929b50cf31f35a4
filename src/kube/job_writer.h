// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/batch_job.h"
#include "kube/workers.h"

namespace gflow::kube {

/// Makes Jobs, holds them and takes them away, with the rights of who runs this, on a thread of its
/// own; what became of it is told on the loop. What is told is not to outlive who asked: let go of
/// this first.
class JobWriter {
 public:
  JobWriter(boost::asio::io_context& io, const Access& access, Credentials& credentials)
      : io_(io), workers_(access, credentials, 1) {}

  struct New {
    std::string name_space;
    std::string name;
    std::string submission;  ///< what it is known again by
    std::string document;
  };
  using Made = std::function<void(const Result<std::vector<BatchJob>>&)>;
  /// One that is there already, of the same submission, was made by an earlier try. Errors:
  /// KeyReused where it is of another one; as the API server has it. Those before it are made then.
  void make(std::vector<New> jobs, Made then);

  struct Old {
    std::string path;  ///< of the object
    std::string uid;
  };
  using Done = std::function<void(const Result<void>&)>;
  /// With their pods, as long as these take to end. One that is gone is no error.
  void remove(std::vector<Old> objects, Done then);
  /// Jobs that are not to start, or are to start after all, as they are then. Of one that has a
  /// pod the Job controller takes it away. Errors: as the API server has it, those before it are
  /// done then.
  void hold(std::vector<Old> objects, bool is_held, Made then);

 private:
  struct Making {
    std::vector<New> jobs;
    std::vector<BatchJob> made;  ///< of the first of these
    Made then;
    int tries = 0;  ///< of the next, which the server was too busy for
  };
  void make_rest(Api& api, Making making);

  boost::asio::io_context& io_;
  Workers workers_;
};

/// "/apis/batch/v1/namespaces/NAME/jobs"
[[nodiscard]] std::string jobs_path(const std::string& name_space);
[[nodiscard]] std::string pods_path(const std::string& name_space);

}  // namespace gflow::kube

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/job_manifest.h"
#include "kube/job_writer.h"
#include "kube/moves_asker.h"
#include "kube/picture.h"
#include "kube/pod_log.h"
#include "server/facade.h"

namespace gflow::kube {

/// A cluster as it was told of, drawn anew when that changed, at most a tenth of the time. What is
/// submitted or cancelled, and which moves are asked for, is written there, and nothing else.
class ClusterReader : public server::Facade {
 public:
  struct About {
    std::string scheduler;   ///< schedulerName of its pods
    std::string cluster;     ///< for people: URL and where that is from
    std::string name_space;  ///< of what is submitted
    std::string image;       ///< of jobs that name none; "": they have to
  };
  /// What it has written, read and asked for.
  struct Hands {
    JobWriter& jobs;
    PodLogs& logs;
    MovesAsker& moves;
  };
  ClusterReader(boost::asio::io_context& io, const Hands& hands, About about);

  void put(Node node);
  void node_gone(const std::string& uid);
  void put(Pod pod);
  void pod_gone(const std::string& uid);
  void put(BatchJob job);
  void job_gone(const std::string& uid);
  /// Some of what happened to Jobs may not be told: what is made here and is not in the list that
  /// comes now is gone.
  void jobs_are_listed_anew();
  void jobs_were_listed();
  void put(Budget budget);
  void budget_gone(const std::string& uid);
  /// Why they cannot be read now, "" once they can: no moves are asked for meanwhile, and all else
  /// is shown.
  void budgets_trouble(std::string why) { no_budgets_ = std::move(why); }
  void put(EndedPod pod);
  void ended_gone(const std::string& uid);
  /// Jobs cannot be read: none is submitted, as nobody could follow it.
  void cannot_submit(Error why) { no_jobs_ = std::move(why); }
  void limit(engine::GpuQuota quota, Levels levels, bool are_levels_unread);
  /// All there is was told: from now on it is shown.
  void begin();
  [[nodiscard]] const ClusterFacts& facts() const { return facts_; }

  // server::Service
  [[nodiscard]] std::string log_path(JobId /*job*/) const override { return {}; }
  [[nodiscard]] std::optional<DistantLog> distant_log(const Job& job) const override;
  void submit(api::SubmitRequest request,
              const Principal& by,
              Answer answer,
              server::SubmitIf condition = {}) override;

 private:
  void changed();
  void draw_soon(std::chrono::milliseconds most);
  void draw();
  [[nodiscard]] JobPlace place() const;
  [[nodiscard]] Result<std::vector<JobWriter::New>> jobs_of(api::SubmitRequest request) const;
  void made(const Result<std::vector<BatchJob>>& jobs, const Answer& answer);
  [[nodiscard]] Result<std::vector<JobId>> numbers_of(const std::vector<std::string>& uids) const;
  [[nodiscard]] const std::string* uid_of(JobId id) const;
  void cancel(const engine::event::Cancel& asked, const Answer& answer) override;
  void hold(const engine::event::Hold& asked, const Answer& answer) override;
  void release(const engine::event::Release& asked, const Answer& answer) override;
  void move(const engine::event::ApplyDefrag& asked, const Answer& answer) override;
  [[nodiscard]] Result<MovesAsked> moves_for(const engine::event::ApplyDefrag& asked) const;
  [[nodiscard]] Result<void> check_budgets(const std::vector<PodName>& moves) const;
  [[nodiscard]] Result<PodName> pod_of(JobId id) const;
  void suspend(const std::vector<JobId>& ids, bool is_held, const Answer& answer);
  [[nodiscard]] Result<JobWriter::Old> object_of(JobId id) const;
  [[nodiscard]] Result<JobWriter::Old> suspendable(JobId id, bool is_held) const;

  About about_;
  JobWriter& writer_;
  PodLogs& logs_;
  MovesAsker& asker_;
  std::optional<Error> no_jobs_;
  std::string no_budgets_;                ///< why they are not known; "": they are
  std::size_t under_way_ = 0;             ///< submissions
  std::set<std::string> gone_meanwhile_;  ///< uids of Jobs
  std::set<std::string> untold_;          ///< of those made here that nobody has told of yet
  std::set<std::string> in_doubt_;        ///< of these, those that a list has to name
  std::vector<std::function<void()>> after_draw_;
  ClusterFacts facts_;
  std::map<std::string, JobId> numbers_;  ///< as in Picture
  bool has_begun_ = false;
  bool is_due_ = false;  ///< to be drawn, once its time has come
  boost::asio::steady_timer next_;
  std::chrono::steady_clock::time_point not_before_{};
};

}  // namespace gflow::kube

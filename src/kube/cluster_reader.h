// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/job_manifest.h"
#include "kube/job_writer.h"
#include "kube/picture.h"
#include "kube/pod_log.h"
#include "server/change_feed.h"
#include "server/event_journal.h"
#include "server/service.h"

namespace gflow::kube {

/// What the routes are answered from: a cluster as it was told of, drawn anew when that changed, at
/// most a tenth of the time. What is submitted or cancelled is written there, and nothing else. The
/// loop's one thread owns it.
class ClusterReader : public server::Service {
 public:
  struct About {
    std::string scheduler;   ///< schedulerName of its pods
    std::string cluster;     ///< for people: URL and where that is from
    std::string name_space;  ///< of what is submitted
    std::string image;       ///< of jobs that name none; "": they have to
  };
  ClusterReader(boost::asio::io_context& io, JobWriter& writer, PodLogs& logs, About about);

  void put(Node node);
  void node_gone(const std::string& uid);
  void put(Pod pod);
  void pod_gone(const std::string& uid);
  void put(BatchJob job);
  void job_gone(const std::string& uid);
  void put(EndedPod pod);
  void ended_gone(const std::string& uid);
  /// Jobs cannot be read: none is submitted, as nobody could follow it.
  void cannot_submit(Error why) { no_jobs_ = std::move(why); }
  void limit(engine::GpuQuota quota);
  /// Something of a kind of objects is not told any more; "": it is.
  void trouble(const std::string& kind, const std::string& what);
  /// All there is was told: from now on it is shown.
  void begin();
  [[nodiscard]] const ClusterFacts& facts() const { return facts_; }
  void listens_at(std::string url) { api_url_ = std::move(url); }

  // server::Service
  [[nodiscard]] const engine::State& state() const override { return picture_.state; }
  [[nodiscard]] Now now() const override;
  [[nodiscard]] std::string log_path(JobId /*job*/) const override { return {}; }
  [[nodiscard]] std::optional<DistantLog> distant_log(const Job& job) const override;
  [[nodiscard]] GpuLimits gpu_limits(const Job& /*job*/) const override { return {}; }
  [[nodiscard]] PortBlock ports(const Job& /*job*/) const override { return {}; }
  [[nodiscard]] Result<void> serves(const server::Route& route) const override;
  [[nodiscard]] std::optional<std::string> told(const Job& job) const override;
  [[nodiscard]] bool decides() const override { return false; }
  void submit(api::SubmitRequest request, const Principal& by, Answer answer) override;
  void request(engine::Event event, Answer answer, Check check) override;
  [[nodiscard]] std::shared_ptr<void> on_change(std::uint64_t revision,
                                                std::optional<JobId> job,
                                                std::chrono::milliseconds most,
                                                std::function<void()> then) override;
  [[nodiscard]] server::EventJournal& events() override { return events_; }
  [[nodiscard]] api::DaemonView daemon(OthersJobs shown) const override;
  [[nodiscard]] const server::Counters& counters() const override { return counters_; }
  [[nodiscard]] std::vector<api::SettingView> settings() const override { return {}; }
  [[nodiscard]] const server::TokenTable& tokens() const override { return tokens_; }
  [[nodiscard]] Result<void> keep_tokens(std::vector<Token> tokens) override;
  void stop() override {}
  Result<void> reload() override;

 private:
  void changed();
  void draw_soon(std::chrono::milliseconds most);
  void draw();
  [[nodiscard]] JobPlace place() const;
  [[nodiscard]] Result<std::vector<JobWriter::New>> jobs_of(api::SubmitRequest request) const;
  void made(const Result<std::vector<BatchJob>>& jobs, const Answer& answer);
  [[nodiscard]] Result<std::vector<JobId>> numbers_of(const std::vector<std::string>& uids) const;
  [[nodiscard]] const std::string* uid_of(JobId id) const;
  void take(const engine::event::Cancel& cancel, const Answer& answer);
  void take(const engine::event::Hold& hold, const Answer& answer);
  void take(const engine::event::Release& release, const Answer& answer);
  void suspend(const std::vector<JobId>& ids, bool is_held, const Answer& answer);
  [[nodiscard]] Result<JobWriter::Old> object_of(JobId id) const;
  [[nodiscard]] Result<JobWriter::Old> suspendable(JobId id, bool is_held) const;

  About about_;
  JobWriter& writer_;
  PodLogs& logs_;
  std::optional<Error> no_jobs_;
  std::size_t under_way_ = 0;             ///< submissions
  std::set<std::string> gone_meanwhile_;  ///< uids of Jobs
  std::vector<std::function<void()>> after_draw_;
  ClusterFacts facts_;
  Picture picture_;
  std::uint64_t revision_ = 0;
  Now started_;
  bool has_begun_ = false;
  bool is_due_ = false;  ///< to be drawn, once its time has come
  boost::asio::steady_timer next_;
  std::chrono::steady_clock::time_point not_before_{};
  std::map<std::string, std::string> troubles_;  ///< by kind
  std::string api_url_;
  server::ChangeFeed feed_;
  server::EventJournal events_;
  server::Counters counters_;
  server::TokenTable tokens_;
};

}  // namespace gflow::kube

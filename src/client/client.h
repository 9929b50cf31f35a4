// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/defrag.h"
#include "api/explanation.h"
#include "api/json.h"
#include "api/placement_view.h"
#include "api/queue.h"
#include "api/snapshot.h"
#include "api/statistics.h"
#include "api/token.h"
#include "api/types.h"
#include "base/result.h"

namespace gflow::client {

/// Whether what is written later comes, too.
enum class Follow { No, Yes };

/// The last bytes of a log.
struct LogEnd {
  std::uint64_t first = 0;  ///< where in the log they begin
  std::string bytes;
};

/// Of which jobs statistics are wanted; what is empty is not asked about.
struct StatisticsWish {
  std::optional<WallTime> since;  ///< of when they ended
  std::optional<WallTime> until;
  std::vector<std::string> users;
  std::string project;
  std::string group;
  std::string by{api::usage_by_name(api::UsageBy::None)};  ///< parts, too: of kUsageByNames
};

/// Talks to gflowd over its unix socket, or to what answers for it: a gflowd of another machine, or
/// who reads a cluster (client/cluster.h). Every call fails with
/// Code::Unreachable, naming the socket and the command that starts the daemon, if nobody answers.
class Client {
 public:
  explicit Client(std::string socket_path);
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// One more, for another thread, to whatever this one talks to: a cluster is read once for both.
  [[nodiscard]] Client another() const;
  /// The namespace of pods named without one; empty where it is no cluster. Errors: as of any call.
  [[nodiscard]] Result<std::optional<std::string>> name_space();
  /// Has `tell` called, once a request, when the daemon is silent longer than it ever is, with who
  /// it is and how it stands: "gflowd (pid 12) does not answer; it is stopped (T)...".
  void on_silence(std::function<void(const std::string&)> tell);
  /// A silence of so long is a Timeout from now on, where it is not said otherwise (90 s before).
  void give_up_after(std::chrono::seconds silence);
  /// Sentences in answers are English from now on, whatever language messages of this process are
  /// in: for listings that programs read.
  void ask_in_english();
  /// Any request; the body as it came. An HTTP status of 400 and more is the Error it carries.
  [[nodiscard]] Result<std::string> call(const std::string& method,
                                         const std::string& target,
                                         const std::string& body = {},
                                         const std::string& idempotency_key = {});

  [[nodiscard]] Result<api::SubmitAnswer> submit(const api::SubmitRequest& request);
  /// POST /api/v1/jobs/check: whether these would be taken now. Errors: as submit() fails.
  [[nodiscard]] Result<void> check(const api::SubmitRequest& request);
  [[nodiscard]] Result<api::JobPage> jobs(const JobQuery& query);
  /// Everything that matches, page by page as it comes, in the order of the query; at most `most`
  /// jobs. The daemon makes the next page while `take` has this one, which says whether it wants
  /// more.
  [[nodiscard]] Result<void> job_pages(JobQuery query,
                                       std::size_t most,
                                       const std::function<bool(api::JobPage)>& take);
  [[nodiscard]] Result<api::JobView> job(JobId id);
  /// GET /api/v1/jobs/{id}/explain: why it waits, and what would start it sooner.
  [[nodiscard]] Result<api::Explanation> explain(JobId id);
  /// GET /api/v1/queue: the first jobs of the queue, in its order, and when they should start.
  [[nodiscard]] Result<api::QueueView> queue(std::size_t most);
  /// GET /api/v1/defrag: for the same jobs, which moves of running ones would start them.
  [[nodiscard]] Result<api::DefragView> defrag(std::size_t most);
  /// POST /api/v1/defrag. Returns those who move.
  [[nodiscard]] Result<std::vector<JobId>> apply_defrag(const api::DefragRequest& request);
  /// "@" or "@~N" of the caller: GET /api/v1/jobs/newest?back=N.
  [[nodiscard]] Result<JobId> newest(std::uint64_t back);
  /// What the job wrote from that byte on, and with `follow` what it writes until it has ended,
  /// given to `take` as it comes, until that says false. Errors: Unreachable, too, where the
  /// connection is cut before the end.
  [[nodiscard]] Result<void> log(JobId id,
                                 std::uint64_t from,
                                 Follow follow,
                                 const std::function<bool(std::string_view)>& take);
  /// Up to `most` bytes, the last of what the job wrote by now.
  [[nodiscard]] Result<LogEnd> end_of_log(JobId id, std::uint64_t most);
  /// POST /api/v1/jobs/ID/move.
  [[nodiscard]] Result<std::vector<JobId>> move(JobId job, const api::MoveRequest& request);
  /// POST /api/v1/jobs/VERB: "cancel", "hold", "suspend", ... The jobs it was done to.
  [[nodiscard]] Result<std::vector<JobId>> act(std::string_view verb,
                                               const api::JobsRequest& request);
  [[nodiscard]] Result<std::vector<JobId>> update(const api::UpdateRequest& request);
  [[nodiscard]] Result<api::MachineView> machine();
  [[nodiscard]] Result<api::StatisticsView> statistics(const StatisticsWish& wish);
  /// What is drained: GET /api/v1/drain.
  [[nodiscard]] Result<std::vector<api::DrainView>> drains();
  /// Where such a job would run now.
  [[nodiscard]] Result<api::PlacementView> place(const api::PlaceRequest& request);
  [[nodiscard]] Result<api::DaemonView> daemon();
  [[nodiscard]] Result<void> stop_daemon();
  [[nodiscard]] Result<void> reload_daemon();

  [[nodiscard]] Result<std::vector<api::TokenView>> tokens();
  [[nodiscard]] Result<api::NewToken> create_token(const api::TokenRequest& request);
  /// `user`: whose; "" is the caller's own, or the only one of that name.
  [[nodiscard]] Result<void> revoke_token(const std::string& name, const std::string& user);
  /// Whether it answers at all. `late` is called once, if it did not within `usual`, with who it is
  /// and how it stands.
  [[nodiscard]] Result<void> health(std::chrono::seconds usual,
                                    const std::function<void(const std::string&)>& late);
  /// Returns when something changed after `revision` (of `job`, if given), at the latest after 60
  /// s; the revision now. Long poll: the server answers when there is news.
  [[nodiscard]] Result<std::uint64_t> wait_change(std::uint64_t revision, std::optional<JobId> job);
  /// The same; `still_waiting` is called once, if there is no news for 2 s.
  [[nodiscard]] Result<std::uint64_t> wait_change(std::uint64_t revision,
                                                  std::optional<JobId> job,
                                                  const std::function<void()>& still_waiting);

 private:
  struct Core;
  class Pages;
  std::unique_ptr<Core> core_;
};

}  // namespace gflow::client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/access.h"
#include "kube/connection.h"
#include "kube/credentials.h"

namespace gflow::kube {

struct Request {
  std::string method = "GET";
  std::string path;  ///< "/api/v1/nodes?limit=500"
  std::string body = {};
  std::string content_type = "application/json";
  std::chrono::milliseconds limit{
      15'000};  ///< from connecting to the last byte, both tries together
};

struct Answer {
  int status = 0;
  std::string body;
  std::optional<std::chrono::seconds> retry_after;
  bool is_repeated = false;  ///< it was asked for twice, and nobody answered the first

  [[nodiscard]] bool is_ok() const { return status >= 200 && status < 300; }
  /// Whether another try may go otherwise: the server is busy, or has a bad time.
  [[nodiscard]] bool is_passing() const { return status == 429 || status >= 500; }
};

constexpr std::string_view kSchedulerRights =
    "; apply packaging/kubernetes/rbac-scheduler.yaml, and to evict rbac-preempt.yaml or "
    "rbac-defrag.yaml";

constexpr std::string_view kMovesRights = "; apply packaging/kubernetes/rbac-defrag.yaml";

constexpr std::string_view kSubmitterRights =
    "; an administrator grants that with packaging/kubernetes/rbac-submitter.yaml";

/// What an answer that is no success means, in a sentence that says what to do. 401 and 403 are
/// Permission, 404 NotFound, 409 WrongState, 410 and 429 Exhausted, 422 and 400 Usage, 5xx
/// Unreachable. `rights`: where those are that a 403 misses.
[[nodiscard]] Error error_of(const Answer& answer,
                             std::string_view doing,
                             std::string_view rights = kSchedulerRights);

/// Asks an API server, over one connection that is kept. One thread at a time, but for cancel().
class Api {
 public:
  Api(const Access& access, Credentials& credentials)
      : access_(access), credentials_(credentials) {}

  /// The answer, whatever its status; asked once more where a connection that was kept turns out to
  /// be closed, or the server did not know who asked. Errors: Unreachable, Timeout, Permission (the
  /// server is not the one expected): whether it was done is not known then.
  [[nodiscard]] Result<Answer> ask(const Request& request);
  /// A watch: each line that comes, until the server ends it or `take` says false. `silence` is
  /// what may lie between two. `begun`: the server lets it be followed, before anything has come.
  /// An answer that is no success is returned and nothing is taken.
  [[nodiscard]] Result<Answer> follow(const Request& request,
                                      std::chrono::seconds silence,
                                      const std::function<bool(std::string_view)>& take,
                                      const std::function<void()>& begun = {});
  /// A log: its bytes as they come, as follow() has lines.
  [[nodiscard]] Result<Answer> stream(const Request& request,
                                      std::chrono::seconds silence,
                                      const std::function<bool(std::string_view)>& take,
                                      const std::function<void()>& begun = {});
  /// From another thread: what is under way ends, and all to come.
  void cancel();

 private:
  [[nodiscard]] Result<void> connect(Deadline deadline);
  [[nodiscard]] Result<Answer> exchange(const Request& request, Deadline deadline, bool& reached);
  [[nodiscard]] Result<void> send(const Request& request, Deadline deadline);
  void hang_up();
  void abandon();

  const Access& access_;
  Credentials& credentials_;
  std::optional<Identity> identity_;
  std::optional<Trust> trust_;
  std::optional<Connection> connection_;
  std::atomic<bool> is_cancelled_ = false;
  std::atomic<int> socket_ = -1;
};

}  // namespace gflow::kube

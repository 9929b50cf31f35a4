// SPDX-License-Identifier: Apache-2.0
#include "kube/serve.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "kube/cluster_reader.h"
#include "kube/fields.h"
#include "kube/follower.h"
#include "kube/limits.h"
#include "os/fd.h"
#include "server/channel.h"
#include "server/http_server.h"
#include "server/voice.h"

namespace gflow::kube {
namespace {

namespace asio = boost::asio;

constexpr int kChannel = STDIN_FILENO;
constexpr const char* kBudgets = "disruption budgets";

constexpr std::string_view kEndedOnly =
    "&fieldSelector=status.phase%21%3DPending%2Cstatus.phase%21%3DRunning%2Cstatus.phase%21%3D"
    "Unknown";
/// As a query has it.
constexpr std::string_view kSubmittedOnly = "&labelSelector=gflow%2Fsubmitted%3Dtrue";
static_assert(kSubmittedLabel == "gflow/submitted");

/// A kind of objects: how it is asked for, and who is told of it.
struct Kind {
  std::string name;  ///< for people
  Followed followed;
  std::function<void(const nlohmann::json&)> put;    ///< by the thread that follows it
  std::function<void(const std::string& uid)> gone;  ///< by the loop's
  // Empty: nobody asks; by the loop's thread.
  std::function<void()> lists_anew = {};  ///< what happened meanwhile is not told
  std::function<void()> works = {};       ///< all that is there was told
};

/// Reads a cluster on threads of their own, and answers on this one.
class Serving {
 public:
  Serving(const ServeOptions& options,
          const Access& access,
          const server::Voice& voice,
          std::ostream& out)
      : options_(options),
        access_(access),
        credentials_(access_),
        voice_(voice),
        out_(out),
        channel_(
            io_,
            [this](os::Fd connection) { welcome(std::move(connection)); },
            [this](Result<void> how) { end(std::move(how)); }),
        writer_(io_, access_, credentials_),
        logs_(access_, credentials_),
        asker_(io_, access_, credentials_, {options.name_space, options.name}),
        reader_(io_,
                {writer_, logs_, asker_},
                {options.name,
                 fmt::format("{} ({})", access.url(), access.source),
                 name_space(),
                 options.image}) {}

  Result<void> run() {
    std::vector<Kind> kinds = GF_TRY(readable_kinds());
    channel_.watch_signals();
    if (options_.has_channel) channel_.watch(kChannel);
    to_come_ = kinds.size();
    for (Kind& kind : kinds) follow(std::move(kind));
    io_.run();
    channel_.forget_signals();  // one more ends it at once
    for (const auto& follower : followers_) follower->stop();
    followers_.clear();
    server_.reset();
    return end_;
  }

 private:
  [[nodiscard]] std::string name_space() const {
    return access_.name_space.empty() ? "default" : access_.name_space;
  }

  /// What is read of an object is what the reader has of it.
  template <typename Read>
  [[nodiscard]] auto puts(Read read) {
    return [this, read](const nlohmann::json& object) {
      on_loop([this, one = read(object)]() mutable { reader_.put(std::move(one)); });
    };
  }

  [[nodiscard]] Kind nodes() {
    return {.name = "nodes",
            .followed = {"/api/v1/nodes", ""},
            .put = puts(node_of),
            .gone = [this](const std::string& uid) { reader_.node_gone(uid); }};
  }

  [[nodiscard]] Kind pods() {
    return {.name = "pods",
            .followed = {"/api/v1/pods", std::string(kNotEnded)},
            .put = puts(pod_of),
            .gone = [this](const std::string& uid) { reader_.pod_gone(uid); }};
  }

  [[nodiscard]] Kind jobs() {
    return {.name = "jobs",
            .followed = {"/apis/batch/v1/jobs", std::string(kSubmittedOnly)},
            .put = puts(batch_job_of),
            .gone = [this](const std::string& uid) { reader_.job_gone(uid); },
            .lists_anew = [this] { reader_.jobs_are_listed_anew(); },
            .works = [this] { reader_.jobs_were_listed(); }};
  }

  /// Those of jobs: what became of a job is said by its pod.
  [[nodiscard]] Kind ended_pods() {
    return {.name = "pods that ended",
            .followed = {"/api/v1/pods", std::string(kSubmittedOnly) + std::string(kEndedOnly)},
            .put = puts(ended_pod_of),
            .gone = [this](const std::string& uid) { reader_.ended_gone(uid); }};
  }

  [[nodiscard]] Kind budgets() {
    return {.name = kBudgets,
            .followed = {"/apis/policy/v1/poddisruptionbudgets", ""},
            .put = puts(budget_of),
            .gone = [this](const std::string& uid) { reader_.budget_gone(uid); }};
  }

  [[nodiscard]] Kind limits() {
    return {.name = "limits",
            .followed = {fmt::format("/api/v1/namespaces/{}/configmaps", options_.name_space),
                         "&fieldSelector=metadata.name%3D" + limits_name_of(options_.name),
                         1},
            .put =
                [this](const nlohmann::json& object) {
                  on_loop([this, object] { take_limits(object); });
                },
            .gone =
                [this](const std::string& uid) {
                  if (uid == limits_uid_) take_limits({});  // another has its name otherwise
                }};
  }

  /// Disruption budgets are nothing that is shown: only moves go by them.
  void note_trouble(const std::string& kind, const std::string& what) {
    if (kind == kBudgets) return reader_.budgets_trouble(what);
    reader_.trouble(kind, what);
  }

  /// Asked for one of each first: what cannot be read at all is not waited for. Jobs, limits and
  /// disruption budgets are extras.
  Result<std::vector<Kind>> readable_kinds() {
    voice_.waits(tr_format("asking {}", access_.url()));
    Api api(access_, credentials_);
    std::vector<Kind> kinds = {nodes(), pods()};
    for (const Kind& kind : kinds) GF_CHECK(try_kind(api, kind));
    if (auto can = try_kind(api, jobs())) {
      kinds.push_back(jobs());
      kinds.push_back(ended_pods());
    } else {
      reader_.trouble("jobs", can.error().message);
      reader_.cannot_submit(std::move(can).error());
    }
    std::array<Kind, 2> extras = {limits(), budgets()};
    for (Kind& extra : extras) {
      if (auto can = try_kind(api, extra)) {
        kinds.push_back(std::move(extra));
      } else {
        note_trouble(extra.name, can.error().message);
      }
    }
    return kinds;
  }

  Result<void> try_kind(Api& api, const Kind& kind) {
    const auto answer =
        api.ask({.path = fmt::format("{}?limit=1{}", kind.followed.path, kind.followed.selector)});
    if (!answer) return std::unexpected(answer.error());
    if (answer->is_ok()) return {};
    const Error error = error_of(*answer, fmt::format("list {}", kind.name), "");
    constexpr int kForbidden = 403;
    if (answer->status != kForbidden) return std::unexpected(error);
    return fail(Code::Permission,
                tr_format("{}. Who looks at a cluster needs the ClusterRole gflow-viewer of "
                          "packaging/kubernetes/rbac-viewer.yaml: an administrator grants it with "
                          "'kubectl create clusterrolebinding NAME --clusterrole gflow-viewer "
                          "--user USER'",
                          error.message));
  }

  void follow(Kind kind) {
    Listener listener;
    listener.put = std::move(kind.put);
    listener.gone = [this, gone = std::move(kind.gone)](const std::string& uid) {
      on_loop([gone, uid] { gone(uid); });
    };
    listener.synced = [this] { on_loop([this] { synced(); }); };
    listener.trouble = [this, name = kind.name](const std::string& what) {
      on_loop([this, name, what] { trouble(name, what); });
    };
    listener.works = [this, name = kind.name, works = std::move(kind.works)] {
      on_loop([this, name, works] {
        note_trouble(name, "");
        if (works) works();
      });
    };
    listener.restarts = [this, lists_anew = std::move(kind.lists_anew)](WatchEnd why) {
      if (why == WatchEnd::Expired && lists_anew) on_loop(lists_anew);
    };
    listener.listed = [this, name = kind.name](std::size_t count) {
      if (count == 0) return;
      voice_.waits(tr_format("reading {}: {} {} by now", access_.url(), count, name));
    };
    followers_.push_back(std::make_unique<Follower>(
        access_, credentials_, std::move(kind.followed), std::move(listener)));
  }

  template <typename Work>
  void on_loop(Work work) {
    asio::post(io_, std::move(work));
  }

  void take_limits(const nlohmann::json& config_map) {
    limits_uid_ = text(part(config_map, "metadata"), "uid");
    Limits limits = limits_of(config_map, reader_.facts().quota, reader_.facts().levels);
    reader_.trouble("what limits say", join(limits.mistakes, "; "));
    reader_.limit(std::move(limits.quota), std::move(limits.levels), limits.are_levels_unread);
  }

  /// Before all is read nothing is answered that could be wrong.
  void trouble(const std::string& kind, const std::string& what) {
    if (to_come_ == 0) return note_trouble(kind, what);
    end(fail(Code::Unreachable, what));
  }

  void synced() {
    if (--to_come_ > 0) return;
    reader_.begin();
    if (auto listens = listen(); !listens) return end(std::move(listens));
    voice_.ready(name_space());
  }

  Result<void> listen() {
    server::HttpServer::Options options;
    options.own_uid = ::geteuid();
    options.loopback = options_.loopback;
    server_ = GF_TRY(server::HttpServer::listen(io_, std::move(options), reader_));
    if (!server_->listen_trouble().empty()) {
      return fail(Code::Failure, server_->listen_trouble());
    }
    const auto at = server_->loopback();
    if (!at) return {};
    const std::string url = "http://" + to_text(*at);
    reader_.listens_at(url);
    out_ << tr_format("{} is answered about at {}, to this user", access_.url(), url) << std::endl;
    return {};
  }

  void welcome(os::Fd connection) {
    if (server_) server_->welcome(std::move(connection));
  }

  void end(Result<void> how) {
    end_ = std::move(how);
    io_.stop();
  }

  const ServeOptions& options_;
  const Access& access_;
  Credentials credentials_;
  const server::Voice& voice_;
  std::ostream& out_;
  asio::io_context io_{1};
  server::Channel channel_;
  JobWriter writer_;
  PodLogs logs_;
  MovesAsker asker_;
  ClusterReader reader_;
  std::unique_ptr<server::HttpServer> server_;
  std::vector<std::unique_ptr<Follower>> followers_;
  std::size_t to_come_ = 0;  ///< first lists
  std::string limits_uid_;   ///< of the ConfigMap that is there; "" if none is
  Result<void> end_;
};

}  // namespace

Result<void> serve_api(const ServeOptions& options, std::ostream& out) {
  const server::Voice voice(options.has_channel ? kChannel : -1);
  const auto serve = [&]() -> Result<void> {
    const Access access = GF_TRY(find_access(options.access));
    return Serving(options, access, voice, out).run();
  };
  auto served = serve();
  if (!served) voice.error(served.error());
  return served;
}

}  // namespace gflow::kube

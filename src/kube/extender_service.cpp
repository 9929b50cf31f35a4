// SPDX-License-Identifier: Apache-2.0
#include "kube/extender_service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <list>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "kube/binding.h"
#include "kube/credentials.h"
#include "kube/extender.h"
#include "kube/extender_answers.h"
#include "kube/fields.h"
#include "kube/follower.h"
#include "kube/health.h"
#include "kube/log.h"
#include "kube/request_server.h"
#include "kube/status_pages.h"
#include "kube/workers.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/tcp.h"

namespace gflow::kube {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// When room came for a pod that had been refused.
constexpr std::string_view kRoomSeenAnnotation = "gflow/room-seen";
constexpr int kBinders = 16;
constexpr auto kMostPause = 1s;  // between two tries of a binding
/// A binding is sent no longer than that after kube-scheduler asked for it. One that cannot reach
/// the API server gives up its lease after 10 s, another may have it after 15, and may give the
/// devices to another pod.
constexpr auto kSendFor = 5s;
/// After which kube-scheduler is told that nobody knows yet. Its own patience is to be longer.
constexpr auto kAnswerBy = 20s;
constexpr auto kConfirmEach = 5s;
/// Before it answers: what one that was killed had asked for just now has arrived by then.
constexpr auto kSettle = 1s;
constexpr RequestServer::Limits kMostAsked{
    .body = std::size_t{64} << 20, .bodies = std::size_t{256} << 20, .connections = 1024};

Page page_of(Result<std::string> document) {
  if (!document) return {400, document.error().message + "\n"};
  return {200, *std::move(document), "application/json"};
}

/// A pod that is to be bound, and who waits to be told.
struct Binding {
  Bind bind;
  std::shared_ptr<RequestServer::Then> then;  ///< called once, by the loop's thread
  MonoTime send_until{};
  BindTries tries{};
  std::chrono::milliseconds pause{100};  ///< before the next try
};

/// Where kube-scheduler connects.
struct Door {
  explicit Door(asio::io_context& io) : acceptor(io), pause(io) {}
  tcp::acceptor acceptor;
  asio::steady_timer pause;
};

class ExtenderService {
 public:
  ExtenderService(const ExtenderOptions& options, const Access& access, std::ostream& log)
      : options_(options),
        access_(access),
        log_(log),
        credentials_(access_),
        signals_(io_, SIGTERM, SIGINT),
        confirms_(io_),
        settles_(io_),
        server_(io_,
                kMostAsked,
                [this](const Asked& asked, RequestServer::Then then) {
                  answer(asked, std::move(then));
                }),
        workers_(access_, credentials_, kBinders) {}

  Result<void> run() {
    tell_health();
    for (const ListenAddress& address : options_.listen) GF_CHECK(listen(address));
    follow(
        "/api/v1/nodes", "", node_of, [this](const std::string& uid) { extender_.node_gone(uid); });
    follow("/api/v1/pods", std::string(kNotEnded), pod_of, [this](const std::string& uid) {
      extender_.pod_gone(uid);
    });
    settles_.expires_after(kSettle);
    settles_.async_wait([this](const error_code& /*never*/) { come(); });
    confirm();
    signals_.async_wait([this](const error_code&, int) { io_.stop(); });
    io_.run();
    followers_.clear();
    log_.info("ended by a signal");
    return {};
  }

 private:
  Result<void> listen(ListenAddress address) {
    os::Fd socket = GF_TRY(os::listen_tcp(address));
    Door& door = doors_.emplace_back(io_);
    error_code error;
    const tcp family = address.host.contains(':') ? tcp::v6() : tcp::v4();
    door.acceptor.assign(family, socket.get(), error);
    if (error) return fail(Code::Failure, "listen at " + to_text(address) + ": " + error.message());
    (void)socket.release();  // the acceptor's now
    accept(door);
    log_.info(fmt::format("answers a kube-scheduler at http://{} about {} ({})",
                          to_text(address),
                          access_.url(),
                          access_.source));
    return {};
  }

  void accept(Door& door) {
    door.acceptor.async_accept([this, &door](const error_code& error, tcp::socket socket) {
      if (error) return accept_later(door);
      error_code ignored;
      os::Fd connection(socket.release(ignored));
      welcome(std::move(connection));
      accept(door);
    });
  }

  /// Most likely it is out of descriptors: asking again at once would spin.
  void accept_later(Door& door) {
    door.pause.expires_after(100ms);
    door.pause.async_wait([this, &door](const error_code& /*never*/) { accept(door); });
  }

  void welcome(os::Fd connection) {
    const auto owner = os::owner_of_other_end(connection.get());
    if (owner && (*owner == ::geteuid() || *owner == 0)) {
      return server_.welcome(std::move(connection));
    }
    log_.warn_again(owner ? fmt::format("the user with uid {} is not answered: kube-scheduler is "
                                        "to run as the user of this program (uid {}) or as root",
                                        *owner,
                                        ::geteuid())
                          : "who connects is not known: " + owner.error().message);
  }

  template <typename Read, typename Gone>
  void follow(const char* path, std::string selector, Read read, Gone gone) {
    Listener listener;
    listener.put = [this, read](const nlohmann::json& object) {
      on_loop([this, one = read(object)] {
        extender_.put(one);
        wake_overlooked();
      });
    };
    listener.gone = [this, gone](const std::string& uid) {
      on_loop([this, gone, uid] {
        gone(uid);
        wake_overlooked();
      });
    };
    listener.synced = [this] { on_loop([this] { come(); }); };
    listener.trouble = [this, path](const std::string& what) {
      log_.warn_again(what);
      on_loop([this, path, what] {
        troubles_[path] = what;
        tell_health();
      });
    };
    listener.works = [this, path] {
      on_loop([this, path] {
        troubles_.erase(path);
        tell_health();
      });
    };
    listener.restarts = [](WatchEnd) {};
    followers_.push_back(std::make_unique<Follower>(
        access_, credentials_, Followed{path, std::move(selector), 500}, std::move(listener)));
  }

  void come() {
    if (--to_come_ == 0) log_.info("knows all nodes and pods");
    tell_health();
  }

  void tell_health() {
    const std::string why = troubles_.empty() ? "" : troubles_.begin()->second;
    if (to_come_ > 0) {
      health_.not_ready("it waits for the first lists of nodes and pods" +
                        (why.empty() ? "" : ": " + why));
    } else if (!why.empty()) {
      health_.not_ready("what it knows may be old: " + why);
    } else {
      health_.ready();
    }
  }

  template <typename Work>
  void on_loop(Work work) {
    asio::post(io_, std::move(work));
  }

  void answer(const Asked& asked, RequestServer::Then then) {
    const bool is_page = asked.path == "/healthz" || asked.path == "/readyz";
    if (is_page && asked.is_post) return then({405, "this is asked for with GET\n"});
    if (asked.path == "/healthz") return then(verdict(""));
    if (asked.path == "/readyz") return then(verdict(health_.unready()));
    const bool is_verb =
        asked.path == "/filter" || asked.path == "/prioritize" || asked.path == "/bind";
    if (!is_verb) return then({404, "there is no such page\n"});
    if (!asked.is_post) return then({405, "kube-scheduler sends this with POST\n"});
    // What is not known yet would be taken for free.
    if (to_come_ > 0) return then(verdict(health_.unready()));
    if (asked.path == "/filter")
      return then(page_of(filter(extender_, asked.body, os::now().mono)));
    if (asked.path == "/prioritize") return then(page_of(prioritize(extender_, asked.body)));
    bind(asked.body, std::move(then));
  }

  void bind(const std::string& asked, RequestServer::Then then) {
    const auto args = binding_args_of(asked);
    if (!args) return then({400, args.error().message + "\n"});
    const MonoTime now = os::now().mono;
    auto bind = extender_.reserve(args->uid, args->node, now);
    if (!bind) {
      const std::string pod = args->name_space + "/" + args->name;
      return then(page_of(binding_result(fmt::format("bind {}: {}", pod, bind.error().message))));
    }
    const auto told = std::make_shared<RequestServer::Then>(std::move(then));
    const auto patience = std::make_shared<asio::steady_timer>(io_, kAnswerBy);
    patience->async_wait([told, patience](const error_code& /*never*/) {
      answer_once(told, "nobody knows yet what became of its binding");
    });
    try_later(0ms, {.bind = *std::move(bind), .then = told, .send_until = now + kSendFor});
  }

  void try_later(std::chrono::milliseconds pause, Binding binding) {
    const auto task = [this, binding = std::move(binding)](Api& api) { try_now(api, binding); };
    if (pause == 0ms) return workers_.urgent(task);
    workers_.urgent_after(pause, task);
  }

  /// By a worker. Its devices are nobody else's until somebody knows where the pod is, and that it
  /// does not come there any more.
  void try_now(Api& api, Binding binding) {
    const Bind& bind = binding.bind;
    const std::string doing = fmt::format("bind {}/{}", bind.name_space, bind.name);
    std::string why = doing + ": nobody answered in time";
    Standing standing = Standing::Waits;
    const MonoTime now = os::now().mono;  // what is seen is as of then, or later
    if (now < binding.send_until) {
      const auto answer = ask_to_bind(api, bind, binding.send_until - now);
      standing = standing_after(api, bind, answer, binding.tries);
      why = answer ? error_of(*answer, doing, "").message : doing + ": " + answer.error().message;
    } else if (binding.tries.may_come) {
      standing = standing_of(api, bind);
    }
    if (standing == Standing::There) return tell_bound(binding);
    log_.warn_again(why);
    const bool may_be_sent = now < binding.send_until;
    const auto& until = binding.tries.may_come;
    const bool may_come = until && (now < *until || standing == Standing::Unknown);
    const bool is_never = standing == Standing::Elsewhere || standing == Standing::Runs;
    if (is_never || (!may_be_sent && !may_come)) return refuse(binding, why);
    const auto pause = std::min<std::chrono::milliseconds>(binding.pause, kMostPause);
    binding.pause = pause * 2;
    try_later(pause, std::move(binding));
  }

  void tell_bound(const Binding& binding) {
    log_.info(bound_text(binding.bind));
    on_loop([then = binding.then] { answer_once(then, ""); });
  }

  void refuse(const Binding& binding, const std::string& why) {
    on_loop([this, uid = binding.bind.uid, then = binding.then, why] {
      extender_.not_bound(uid);
      answer_once(then, why);
      wake_overlooked();
    });
  }

  static void answer_once(const std::shared_ptr<RequestServer::Then>& then,
                          const std::string& why_not) {
    if (auto told = std::exchange(*then, nullptr)) told(page_of(binding_result(why_not)));
  }

  /// A pod that kube-scheduler sent, and that was gone before a watch could tell of it, is told of
  /// by nobody.
  void confirm() {
    for (const Pod& pod : extender_.unconfirmed(os::now().mono)) {
      workers_.later([this, pod](Api& api) {
        const auto answer = api.ask({.path = pod_path(pod.name_space, pod.name)});
        if (!answer || (!answer->is_ok() && answer->status != 404)) return;
        const auto there = nlohmann::json::parse(answer->body, nullptr, false);
        const std::string phase = text(part(there, "status"), "phase");
        const bool is_there = answer->is_ok() && phase != "Succeeded" && phase != "Failed" &&
                              text(part(there, "metadata"), "uid") == pod.uid;
        if (is_there) return;
        on_loop([this, uid = pod.uid] {
          extender_.pod_gone(uid);
          wake_overlooked();
        });
      });
    }
    confirms_.expires_after(kConfirmEach);
    confirms_.async_wait([this](const error_code& /*never*/) { confirm(); });
  }

  /// kube-scheduler asks again about pods that change.
  void wake_overlooked() {
    for (const Pod& pod : extender_.overlooked(os::now().mono)) {
      workers_.later([this, pod](Api& api) { wake(api, pod); });
    }
  }

  /// By a worker. By the status, as kube-scheduler may write that of pods, and nothing else.
  void wake(Api& api, const Pod& pod) {
    const nlohmann::json patch = {
        {"metadata",
         {{"uid", pod.uid},
          {"annotations", {{std::string(kRoomSeenAnnotation), rfc3339(os::now().wall)}}}}}};
    const auto answer = api.ask({.method = "PATCH",
                                 .path = pod_path(pod.name_space, pod.name) + "/status",
                                 .body = patch.dump(),
                                 .content_type = "application/merge-patch+json"});
    const std::string doing = "have kube-scheduler ask about " + pod.full_name() + " again";
    if (!answer) return log_.warn_again(doing + ": " + answer.error().message);
    const bool is_gone = answer->status == 404 || answer->status == 409;
    if (!answer->is_ok() && !is_gone) log_.warn_again(error_of(*answer, doing, "").message);
  }

  const ExtenderOptions& options_;
  const Access& access_;
  Log log_;
  Health health_;
  Credentials credentials_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  asio::steady_timer confirms_;
  asio::steady_timer settles_;
  std::list<Door> doors_;
  Extender extender_;
  RequestServer server_;
  std::vector<std::unique_ptr<Follower>> followers_;
  int to_come_ = 3;                              ///< first lists of nodes and pods, and kSettle
  std::map<std::string, std::string> troubles_;  ///< what does not work now, by path
  Workers workers_;                              ///< last: it ends before what its tasks use
};

}  // namespace

Result<void> serve_extender(const ExtenderOptions& options, std::ostream& log) {
  const Access access = GF_TRY(find_access(options.access));
  return ExtenderService(options, access, log).run();
}

}  // namespace gflow::kube

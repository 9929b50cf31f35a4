// SPDX-License-Identifier: Apache-2.0
#include "kube/pod_log.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "kube/api.h"
#include "kube/batch_job.h"
#include "kube/containers.h"
#include "kube/fields.h"
#include "kube/job_writer.h"
#include "os/file.h"
#include "server/body.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

/// The newest of some pods that has begun, else the newest.
struct Newest {
  std::string name;  ///< "" where there is none
  std::string container;
  bool has_begun = false;
  bool has_ended = false;
  std::string version;  ///< where a watch of them goes on
};

bool has_begun(const Json& pod) {
  const Json& state = state_of_main(pod);
  return state.is_object() && !part(state, "waiting").is_object();
}

Result<Newest> newest_of(Api& api, const PodsOfLog& pods) {
  const Answer answer =
      GF_TRY(api.ask({.path = fmt::format("{}?{}", pods_path(pods.name_space), pods.selector)}));
  if (!answer.is_ok())
    return std::unexpected(error_of(answer, "list the pods of a job", kSubmitterRights));
  const Json list = Json::parse(answer.body, nullptr, false);
  Newest newest;
  newest.version = text(part(list, "metadata"), "resourceVersion");
  std::pair<bool, std::string> best;
  for (const Json& pod : part(list, "items")) {
    const Json& metadata = part(pod, "metadata");
    std::pair<bool, std::string> its{has_begun(pod), text(metadata, "creationTimestamp")};
    if (its < best) continue;
    best = std::move(its);
    const std::string phase = text(part(pod, "status"), "phase");
    newest.name = text(metadata, "name");
    newest.container = main_container_of(pod);
    newest.has_begun = best.first;
    newest.has_ended = phase == "Failed" || phase == "Succeeded";
  }
  return newest;
}

std::string log_path(const PodsOfLog& pods, const Newest& pod) {
  return fmt::format("{}/{}/log?container={}", pods_path(pods.name_space), pod.name, pod.container);
}

/// A file that nobody else has, with these bytes.
Result<os::Fd> file_with(std::string_view bytes) {
  os::Fd file(::memfd_create("log", MFD_CLOEXEC));
  if (!file.valid()) return os::errno_error("memfd_create");
  GF_CHECK(os::write_all(file.get(), bytes));
  return file;
}

Result<os::Fd> read_log(Api& api, const PodsOfLog& pods) {
  const Newest newest = GF_TRY(newest_of(api, pods));
  if (!newest.has_begun) return fail(Code::NotFound, "it has not begun");
  const Answer answer = GF_TRY(api.ask({.path = log_path(pods, newest)}));
  if (answer.is_ok()) return file_with(answer.body);
  Error error = error_of(answer, fmt::format("read the log of {}", newest.name), kSubmitterRights);
  if (error.code == Code::Unreachable) error.code = Code::Failure;  // it is the node that is away
  return std::unexpected(std::move(error));
}

/// A log as it is written, between who reads it and the thread that has it from the API server: of
/// a slow reader no more is here than a few pieces.
class LogPipe {
 public:
  using Then = server::Body::Then;

  LogPipe(const Access& access, Credentials& credentials, PodsOfLog pods, std::uint64_t from)
      : api_(access, credentials), pods_(std::move(pods)), skip_(from) {}

  void next(Then then) {
    std::unique_lock lock(mutex_);
    if (pieces_.empty() && !end_) {
      waits_ = std::move(then);
      return;
    }
    server::Piece piece = pieces_.empty() ? *end_ : server::piece_of(std::move(pieces_.front()));
    if (!pieces_.empty()) pieces_.pop_front();
    lock.unlock();
    has_room_.notify_all();
    then(std::move(piece));
  }

  void let_go() {
    {
      const std::lock_guard lock(mutex_);
      is_let_go_ = true;
    }
    has_room_.notify_all();
    api_.cancel();
  }

  /// The thread's.
  void run(std::optional<std::uint64_t> lines) {
    const auto pod = begun_pod();
    bool is_whole = pod.has_value();
    if (pod && *pod) {
      constexpr std::chrono::hours kSilent{24 * 365};
      std::string path = log_path(pods_, **pod) + "&follow=true";
      if (lines) path += fmt::format("&tailLines={}", *lines);
      const auto ended = api_.stream(
          {.path = path}, kSilent, [this](std::string_view bytes) { return put(bytes); });
      is_whole = ended && ended->is_ok();
    }
    end(is_whole ? server::last_piece() : server::cut_piece());
  }

 private:
  static constexpr std::size_t kMostPieces = 16;

  /// Waits for it; nothing where none will come.
  Result<std::optional<Newest>> begun_pod() {
    while (true) {
      const Newest newest = GF_TRY(newest_of(api_, pods_));
      if (newest.has_begun) return newest;
      const bool is_none_left = newest.name.empty() || newest.has_ended;
      if (is_none_left && !GF_TRY(makes_more())) return std::nullopt;
      GF_CHECK(await_news(newest.version));
    }
  }

  /// Whether the Job of the pods is there, and is not over.
  Result<bool> makes_more() {
    if (pods_.owner.empty()) return false;
    constexpr int kGone = 404;
    const Answer owner = GF_TRY(api_.ask({.path = pods_.owner}));
    if (owner.status == kGone) return false;
    const Json job = Json::parse(owner.body, nullptr, false);
    return !owner.is_ok() || !batch_job_of(job).verdict;
  }

  /// Of the pods; or for half a minute, as of the owner nothing is told here.
  Result<void> await_news(const std::string& version) {
    const std::string path = fmt::format("{}?watch=1&timeoutSeconds=30&{}&resourceVersion={}",
                                         pods_path(pods_.name_space),
                                         pods_.selector,
                                         version);
    constexpr std::chrono::seconds kSilent{60};
    GF_TRY(api_.follow({.path = path}, kSilent, [](std::string_view) { return false; }));
    return {};
  }

  bool put(std::string_view bytes) {
    const std::size_t skipped = std::min<std::uint64_t>(skip_, bytes.size());
    skip_ -= skipped;
    bytes.remove_prefix(skipped);
    if (bytes.empty()) return true;
    std::unique_lock lock(mutex_);
    has_room_.wait(lock, [this] { return is_let_go_ || pieces_.size() < kMostPieces; });
    if (is_let_go_) return false;
    if (!waits_) {
      pieces_.emplace_back(bytes);
      return true;
    }
    const Then then = std::exchange(waits_, {});
    lock.unlock();
    then(server::piece_of(std::string(bytes)));
    return true;
  }

  void end(server::Piece how) {
    Then then;
    {
      const std::lock_guard lock(mutex_);
      end_ = how;
      then = std::exchange(waits_, {});
    }
    if (then) then(std::move(how));
  }

  Api api_;
  const PodsOfLog pods_;
  std::uint64_t skip_;  ///< bytes that are not wanted; the thread's
  std::mutex mutex_;
  std::condition_variable has_room_;
  std::deque<std::string> pieces_;
  std::optional<server::Piece> end_;  ///< after these
  Then waits_;
  bool is_let_go_ = false;
};

/// May be let go of by the thread itself, so it does not wait for that.
class FollowedLog : public server::Body {
 public:
  explicit FollowedLog(std::shared_ptr<LogPipe> pipe) : pipe_(std::move(pipe)) {}
  ~FollowedLog() override { pipe_->let_go(); }
  FollowedLog(const FollowedLog&) = delete;
  FollowedLog& operator=(const FollowedLog&) = delete;
  void next(Then then) override { pipe_->next(std::move(then)); }

 private:
  std::shared_ptr<LogPipe> pipe_;
};

}  // namespace

PodsOfLog one_pod(const std::string& name_space, const std::string& name) {
  return {name_space, "fieldSelector=metadata.name%3D" + name, ""};
}

PodsOfLog pods_of_job(const std::string& name_space, const std::string& job) {
  return {name_space,
          "labelSelector=batch.kubernetes.io%2Fjob-name%3D" + job,
          jobs_path(name_space) + "/" + job};
}

PodLogs::~PodLogs() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return threads_ == 0; });
}

server::Service::DistantLog PodLogs::of(const PodsOfLog& pods) {
  return {.read = [this, pods]() -> Result<os::Fd> {
            Api api(access_, credentials_);
            return read_log(api, pods);
          },
          .follow = [this, pods](
                        std::uint64_t from,
                        std::optional<std::uint64_t> lines) { return follow(pods, from, lines); }};
}

std::shared_ptr<server::Body> PodLogs::follow(const PodsOfLog& pods,
                                              std::uint64_t from,
                                              std::optional<std::uint64_t> lines) {
  auto pipe = std::make_shared<LogPipe>(access_, credentials_, pods, from);
  {
    const std::lock_guard lock(mutex_);
    ++threads_;
  }
  std::thread([this, pipe, lines]() mutable {
    pipe->run(lines);
    pipe.reset();
    const std::lock_guard lock(mutex_);
    --threads_;
    ended_.notify_all();
  }).detach();
  return std::make_shared<FollowedLog>(std::move(pipe));
}

}  // namespace gflow::kube

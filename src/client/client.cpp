// SPDX-License-Identifier: Apache-2.0
#include "client/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "api/query.h"
#include "base/text.h"
#include "base/translate.h"
#include "client/cluster.h"
#include "client/http_exchange.h"
#include "os/random.h"

namespace gflow::client {
namespace {

// A server that has no news says so after this, at the latest.
constexpr std::chrono::seconds kNoNews{55};
constexpr std::size_t kKeyBytes = 16;
/// For how long, and how often, what was sent and not answered is asked again.
constexpr std::chrono::seconds kAsksAgain{5};
constexpr std::chrono::milliseconds kBetween{100};

std::string jobs_target(const JobQuery& query) {
  const std::string parameters = api::write_query(query);
  return parameters.empty() ? "/api/v1/jobs" : fmt::format("/api/v1/jobs?{}", parameters);
}

/// "bytes FIRST-LAST/SIZE": FIRST.
Result<std::uint64_t> first_byte(std::string_view content_range) {
  constexpr std::string_view kUnit = "bytes ";
  if (content_range.starts_with(kUnit)) content_range.remove_prefix(kUnit.size());
  if (const auto first = parse_number(content_range.substr(0, content_range.find('-')))) {
    return *first;
  }
  return fail(Code::Failure, tr("gflowd does not say which bytes of the log it sent"));
}

}  // namespace

struct Client::Core {
  std::string socket_path;
  std::shared_ptr<Cluster> cluster = {};  ///< in place of it
  std::function<void(const std::string&)> tell = {};
  std::optional<std::chrono::seconds> patience = {};
  bool asks_in_english = false;

  [[nodiscard]] Result<std::string> call(HttpRequest request) const {
    Silence silence;
    silence.tell = tell;
    if (patience) silence.most = silence.head = *patience;
    return call(std::move(request), silence);
  }
  [[nodiscard]] Result<PendingAnswer> ask(HttpRequest request, const Silence& silence) const {
    const MessageCatalogue* messages = messages_in_use();
    if (messages != nullptr && !asks_in_english) request.language = messages->language();
    if (cluster) return client::ask(*cluster, std::move(request), silence);
    return client::ask(socket_path, std::move(request), silence);
  }
  /// Whatever its status.
  [[nodiscard]] Result<HttpResponse> answer(HttpRequest request, const Silence& silence) const {
    return GF_TRY(ask(std::move(request), silence)).receive();
  }
  [[nodiscard]] Result<std::string> call(HttpRequest request, const Silence& silence) const {
    return body_of(GF_TRY(answer(std::move(request), silence)));
  }
  [[nodiscard]] static Result<std::string> body_of(HttpResponse response) {
    if (response.status >= 300) {
      return std::unexpected(api::read_problem(response.status, response.body));
    }
    return std::move(response.body);
  }
  /// Asks again where nobody answers, which its key makes safe: for some seconds if it was sent, as
  /// then it is not known whether it was done, and what serves may be on its way back.
  [[nodiscard]] Result<std::string> call_with_key(const HttpRequest& request) const {
    const auto end = std::chrono::steady_clock::now() + kAsksAgain;
    bool was_sent = false;
    for (bool is_first = true;; is_first = false) {
      Silence silence;
      silence.tell = tell;
      auto pending = ask(request, silence);
      was_sent = was_sent || pending;
      auto response = pending ? pending->receive() : std::unexpected(pending.error());
      if (response) return body_of(*std::move(response));
      if (response.error().code != Code::Unreachable || (!was_sent && !is_first)) {
        return std::unexpected(response.error());
      }
      if (std::chrono::steady_clock::now() >= end) return unknown(response.error());
      if (is_first && was_sent) tell_again();
      if (cluster) cluster->begin_anew();
      if (!is_first) std::this_thread::sleep_for(kBetween);
    }
  }
  void tell_again() const {
    if (!tell) return;
    tell(cluster ? tr("the cluster did not answer; asking again")
                 : tr("gflowd did not answer; asking again"));
  }
  [[nodiscard]] static std::unexpected<Error> unknown(const Error& error) {
    return fail(error.code,
                tr_format("{}. Whether the jobs were submitted is not known: see 'gqueue --me' "
                          "before you submit them again",
                          error.message));
  }
  [[nodiscard]] Result<std::vector<JobId>> change(const std::string& method,
                                                  const std::string& path,
                                                  std::string body) const {
    return api::read_job_ids(GF_TRY(call({method, path, std::move(body), {}})));
  }
};

Client::Client(std::string socket_path)
    : core_(std::make_unique<Core>(Core{std::move(socket_path)})) {
  if (is_cluster(core_->socket_path)) {
    core_->cluster = std::make_shared<Cluster>(core_->socket_path);
  }
}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Client Client::another() const {
  Client client(core_->socket_path);
  client.core_->cluster = core_->cluster;
  return client;
}

Result<std::optional<std::string>> Client::name_space() {
  if (!core_->cluster || is_slurm(core_->cluster->server())) return std::nullopt;
  Silence silence;
  silence.tell = core_->tell;
  return GF_TRY(core_->cluster->name_space(silence));
}

void Client::on_silence(std::function<void(const std::string&)> tell) {
  core_->tell = std::move(tell);
}

void Client::give_up_after(std::chrono::seconds silence) { core_->patience = silence; }

void Client::ask_in_english() { core_->asks_in_english = true; }

Result<std::string> Client::call(const std::string& method,
                                 const std::string& target,
                                 const std::string& body,
                                 const std::string& idempotency_key) {
  return core_->call({method, target, body, idempotency_key});
}

Result<api::SubmitAnswer> Client::submit(const api::SubmitRequest& request) {
  const std::string& key = request.idempotency_key;
  const HttpRequest asked = {
      "POST", "/api/v1/jobs", api::write(request), key.empty() ? os::random_hex(kKeyBytes) : key};
  return api::read_submit_answer(GF_TRY(core_->call_with_key(asked)));
}

Result<void> Client::check(const api::SubmitRequest& request) {
  GF_CHECK(core_->change("POST", "/api/v1/jobs/check", api::write(request)));
  return {};
}

Result<api::JobPage> Client::jobs(const JobQuery& query) {
  return api::read_job_page(GF_TRY(core_->call({"GET", jobs_target(query), {}, {}})));
}

/// One page after the other, of which the next is asked for as soon as it is known where it is.
class Client::Pages {
 public:
  Pages(const Core& core, JobQuery query, std::size_t left)
      : core_(core), query_(std::move(query)), left_(left) {
    silence_.tell = core.tell;
    aim();
  }
  [[nodiscard]] bool is_over() const { return target_.empty(); }

  Result<api::JobPage> next() {
    const HttpResponse response = GF_TRY(receive());
    if (response.status >= 300) {
      return std::unexpected(api::read_problem(response.status, response.body));
    }
    ask_ahead(response.next);
    api::JobPage page = GF_TRY(api::read_job_page(response.body));
    left_ -= std::min(left_, page.jobs.size());
    query_.cursor = page.next_after ? std::string() : page.next;
    query_.after = page.next_after.value_or(JobId());
    if (page.next.empty() || left_ == 0) {
      target_.clear();
    } else if (!ahead_) {
      aim();
    }
    return page;
  }

 private:
  void aim() {
    query_.most = std::min(api::kMaxJobsOnPage, left_);
    target_ = jobs_target(query_);
  }
  /// Only for one that is as large as this: of another size it has to be known what this one holds.
  void ask_ahead(const std::string& target) {
    if (target.empty() || left_ / 2 < query_.most) return;
    auto asked = core_.ask({"GET", target, {}, {}}, silence_);
    if (!asked) return;  // is told where it is missed
    ahead_ = *std::move(asked);
    target_ = target;
  }
  /// Who is shown pages may take hours for one, and the daemon does not wait for ever until the
  /// next is read: then it is asked for again.
  Result<HttpResponse> receive() {
    if (auto ahead = std::exchange(ahead_, std::nullopt)) {
      auto response = ahead->receive();
      if (response || response.error().code != Code::Unreachable) return response;
    }
    return core_.answer({"GET", target_, {}, {}}, silence_);
  }

  const Core& core_;
  JobQuery query_;
  std::size_t left_;
  Silence silence_;
  std::string target_;  ///< of the next page; empty: there is none
  std::optional<PendingAnswer> ahead_;
};

Result<void> Client::job_pages(JobQuery query,
                               std::size_t most,
                               const std::function<bool(api::JobPage)>& take) {
  Pages pages(*core_, std::move(query), most);
  while (!pages.is_over()) {
    if (!take(GF_TRY(pages.next()))) return {};
  }
  return {};
}

Result<api::JobView> Client::job(JobId id) {
  const std::string target = fmt::format("/api/v1/jobs/{}", id.value);
  return api::read_job(GF_TRY(core_->call({"GET", target, {}, {}})));
}

Result<api::Explanation> Client::explain(JobId id) {
  const std::string target = fmt::format("/api/v1/jobs/{}/explain", id.value);
  return api::read_explanation(GF_TRY(core_->call({"GET", target, {}, {}})));
}

Result<api::QueueView> Client::queue(std::size_t most) {
  const std::string target = fmt::format("/api/v1/queue?limit={}", most);
  return api::read_queue(GF_TRY(core_->call({"GET", target, {}, {}})));
}

Result<api::DefragView> Client::defrag(std::size_t most) {
  const std::string target = fmt::format("/api/v1/defrag?limit={}", most);
  return api::read_defrag(GF_TRY(core_->call({"GET", target, {}, {}})));
}

Result<std::vector<JobId>> Client::apply_defrag(const api::DefragRequest& request) {
  return core_->change("POST", "/api/v1/defrag", api::write(request));
}

Result<JobId> Client::newest(std::uint64_t back) {
  const std::string target = fmt::format("/api/v1/jobs/newest?back={}", back);
  const std::string body = GF_TRY(core_->call({"GET", target, {}, {}}));
  return GF_TRY(api::read_job(body)).id;
}

Result<void> Client::log(JobId id,
                         std::uint64_t from,
                         Follow follow,
                         const std::function<bool(std::string_view)>& take) {
  // Who follows waits for a job that may write nothing for days; a cut is noticed by the tunnel.
  constexpr std::chrono::hours kMost{24 * 7};
  Silence silence;
  if (follow == Follow::Yes) silence = {.most = kMost, .is_followed = true, .usual = kMost};
  silence.tell = core_->tell;
  std::string target = fmt::format("/api/v1/jobs/{}/log?from={}", id.value, from);
  if (follow == Follow::Yes) target += "&follow=true";
  HttpRequest request{"GET", std::move(target), {}, {}};
  request.take = take;
  GF_CHECK(core_->call(std::move(request), silence));
  return {};
}

Result<LogEnd> Client::end_of_log(JobId id, std::uint64_t most) {
  HttpRequest request{"GET", fmt::format("/api/v1/jobs/{}/log", id.value), {}, {}};
  request.range = fmt::format("bytes=-{}", most);
  Silence silence;
  silence.tell = core_->tell;
  HttpResponse response = GF_TRY(core_->answer(std::move(request), silence));
  constexpr int kOutside = 416;  // there is no byte
  if (response.status == kOutside) return LogEnd{};
  if (response.status >= 300) {
    return std::unexpected(api::read_problem(response.status, response.body));
  }
  return LogEnd{GF_TRY(first_byte(response.content_range)), std::move(response.body)};
}

Result<std::vector<JobId>> Client::act(std::string_view verb, const api::JobsRequest& request) {
  return core_->change("POST", fmt::format("/api/v1/jobs/{}", verb), api::write(request));
}

Result<std::vector<JobId>> Client::move(JobId job, const api::MoveRequest& request) {
  return core_->change("POST", fmt::format("/api/v1/jobs/{}/move", job.value), api::write(request));
}

Result<std::vector<JobId>> Client::update(const api::UpdateRequest& request) {
  return core_->change("PATCH", "/api/v1/jobs", api::write(request));
}

Result<std::vector<api::DrainView>> Client::drains() {
  return api::read_drains(GF_TRY(core_->call({"GET", "/api/v1/drain", {}, {}})));
}

Result<api::MachineView> Client::machine() {
  return api::read_machine(GF_TRY(core_->call({"GET", "/api/v1/machine", {}, {}})));
}

Result<api::StatisticsView> Client::statistics(const StatisticsWish& wish) {
  std::string query;
  if (wish.since) api::append_parameter(query, "since", rfc3339(*wish.since));
  if (wish.until) api::append_parameter(query, "until", rfc3339(*wish.until));
  if (!wish.users.empty()) api::append_parameter(query, "user", join(wish.users, ","));
  if (!wish.project.empty()) api::append_parameter(query, "project", wish.project);
  if (!wish.group.empty()) api::append_parameter(query, "group", wish.group);
  api::append_parameter(query, "by", wish.by);
  return api::read_statistics(GF_TRY(core_->call({"GET", "/api/v1/statistics?" + query, {}, {}})));
}

Result<api::PlacementView> Client::place(const api::PlaceRequest& request) {
  return api::read_placement(
      GF_TRY(core_->call({"POST", "/api/v1/place", api::write(request), {}})));
}

Result<api::DaemonView> Client::daemon() {
  return api::read_daemon(GF_TRY(core_->call({"GET", "/api/v1/daemon", {}, {}})));
}

Result<void> Client::stop_daemon() {
  GF_CHECK(core_->call({"POST", "/api/v1/daemon/stop", {}, {}}));
  return {};
}

Result<void> Client::reload_daemon() {
  GF_CHECK(core_->call({"POST", "/api/v1/daemon/reload", {}, {}}));
  return {};
}

Result<std::vector<api::TokenView>> Client::tokens() {
  return api::read_tokens(GF_TRY(core_->call({"GET", "/api/v1/tokens", {}, {}})));
}

Result<api::NewToken> Client::create_token(const api::TokenRequest& request) {
  return api::read_new_token(
      GF_TRY(core_->call({"POST", "/api/v1/tokens", api::write(request), {}})));
}

Result<void> Client::revoke_token(const std::string& name, const std::string& user) {
  std::string target = fmt::format("/api/v1/tokens/{}", name);
  std::string query;
  if (!user.empty()) api::append_parameter(query, "user", user);
  if (!query.empty()) target += "?" + query;
  GF_CHECK(core_->call({"DELETE", target, {}, {}}));
  return {};
}

namespace {

HttpRequest change_request(std::uint64_t revision, std::optional<JobId> job) {
  std::string target = fmt::format("/api/v1/changes?revision={}", revision);
  if (job) target += fmt::format("&job={}", job->value);
  return {"GET", std::move(target), {}, {}};
}

}  // namespace

Result<void> Client::health(std::chrono::seconds usual,
                            const std::function<void(const std::string&)>& late) {
  Silence silence;
  silence.usual = usual;
  silence.tell = late;
  GF_CHECK(core_->call({"GET", "/healthz", {}, {}}, silence));
  return {};
}

Result<std::uint64_t> Client::wait_change(std::uint64_t revision, std::optional<JobId> job) {
  Silence silence;
  silence.usual += kNoNews;
  silence.tell = core_->tell;
  return api::read_revision(GF_TRY(core_->call(change_request(revision, job), silence)));
}

Result<std::uint64_t> Client::wait_change(std::uint64_t revision,
                                          std::optional<JobId> job,
                                          const std::function<void()>& still_waiting) {
  Silence silence;
  silence.tell = [&still_waiting](const std::string& /*who*/) { still_waiting(); };
  return api::read_revision(GF_TRY(core_->call(change_request(revision, job), silence)));
}

}  // namespace gflow::client

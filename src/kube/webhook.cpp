// SPDX-License-Identifier: Apache-2.0
#include "kube/webhook.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <memory>
#include <utility>

#include "kube/credentials.h"
#include "kube/health.h"
#include "kube/limits.h"
#include "kube/log.h"
#include "kube/request_server.h"
#include "kube/status_pages.h"
#include "kube/webhook_trust.h"
#include "server/tls_context.h"
#include "server/tls_front.h"

namespace gflow::kube {
namespace {

namespace asio = boost::asio;
using server::TlsFront;

/// An API server opens as many connections as it has questions at once, which may be hundreds.
constexpr TlsFront::Limits kMostConnections{.connections = 2048, .of_each = 1024};

Page answer_to(const Asked& asked, const AdmissionRules& rules, const Health& health) {
  if (!asked.is_post && asked.path == "/healthz") return verdict("");
  if (!asked.is_post && asked.path == "/readyz") return verdict(health.unready());
  if (asked.path != "/pods") return {404, "there is no such page\n"};
  if (!asked.is_post) return {405, "an AdmissionReview is sent with POST\n"};
  auto reviewed = review(rules, asked.body);
  if (!reviewed) return {400, reviewed.error().message + "\n"};
  return {200, *std::move(reviewed), "application/json"};
}

/// POST /pods is a review(); GET /healthz is 200, and /readyz once it is trusted.
class Webhook {
 public:
  Webhook(const WebhookOptions& options, const Access& access, std::ostream& log)
      : options_(options),
        log_(log),
        credentials_(access),
        signals_(io_, SIGTERM, SIGINT),
        server_(io_,
                {},
                [this](const Asked& asked, const RequestServer::Then& then) {
                  then(answer_to(asked, options_.rules, health_));
                }),
        trust_(access, credentials_, name(), log_, health_) {}

  Result<void> run() {
    server::TlsPair pair = GF_TRY(server::own_certificate(name(), {host()}));
    TlsFront front(
        GF_TRY(server::make_tls_context(pair)),
        kMostConnections,
        [this](TlsFront::Arrival arrival) { welcome(std::move(arrival.plain)); },
        [this](const std::string& line) { log_.warn(line); });
    ListenAddress address = options_.listen;
    GF_CHECK(front.listen(address));
    front.start();
    log_.info(fmt::format("answers for new pods at {}, as {}", to_text(address), host()));
    trust_.keep(std::move(pair.certificate));
    signals_.async_wait([this](const boost::system::error_code&, int) { io_.stop(); });
    const auto work = asio::make_work_guard(io_);
    io_.run();
    front.finish();
    return {};
  }

 private:
  [[nodiscard]] std::string name() const { return webhook_name_of(options_.rules.scheduler); }
  [[nodiscard]] std::string host() const {
    return options_.host.empty() ? fmt::format("{}.{}.svc", name(), options_.name_space)
                                 : options_.host;
  }

  /// On the front's thread.
  void welcome(os::Fd connection) {
    asio::post(io_, [this, given = std::make_shared<os::Fd>(std::move(connection))] {
      server_.welcome(std::move(*given));
    });
  }

  const WebhookOptions& options_;
  Log log_;
  Health health_;
  Credentials credentials_;
  asio::io_context io_{1};
  asio::signal_set signals_;
  RequestServer server_;
  WebhookTrust trust_;
};

}  // namespace

std::string webhook_name_of(const std::string& scheduler) {
  return name_in_cluster(scheduler) + "-webhook";
}

Result<void> serve_webhook(const WebhookOptions& options, std::ostream& log) {
  const Access access = GF_TRY(find_access(options.access));
  return Webhook(options, access, log).run();
}

}  // namespace gflow::kube

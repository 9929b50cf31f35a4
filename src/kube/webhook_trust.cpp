// SPDX-License-Identifier: Apache-2.0
#include "kube/webhook_trust.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "api/base64.h"
#include "kube/fields.h"

namespace gflow::kube {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr std::string_view kConfigurations =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/";
constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
/// Each that starts adds its own: those of the ones that are gone go in time.
constexpr std::size_t kMostCertificates = 16;
constexpr auto kLookAgain = 5s;
constexpr std::string_view kRights = "; apply packaging/kubernetes/webhook.yaml, which grants it";

std::size_t count_of(std::string_view bundle) {
  std::size_t count = 0;
  for (std::size_t at = bundle.find(kBegin); at != std::string_view::npos;
       at = bundle.find(kBegin, at + 1)) {
    ++count;
  }
  return count;
}

/// With this bundle in each of its webhooks, if it is still as it was read.
Json patch_of(const Json& configuration, const std::string& bundle) {
  Json webhooks = Json::array();
  for (const Json& one : part(configuration, "webhooks")) {
    webhooks.push_back({{"name", text(one, "name")},
                        {"clientConfig", {{"caBundle", api::base64_encode(bundle)}}}});
  }
  return {
      {"metadata", {{"resourceVersion", text(part(configuration, "metadata"), "resourceVersion")}}},
      {"webhooks", webhooks}};
}

}  // namespace

std::optional<std::string> bundle_with(const std::string& bundle, const std::string& certificate) {
  if (bundle.contains(certificate)) return std::nullopt;
  std::string_view kept = bundle;
  for (std::size_t count = count_of(kept); count >= kMostCertificates; --count) {
    kept.remove_prefix(kept.find(kBegin, kept.find(kBegin) + 1));
  }
  std::string all(kept);
  if (!all.empty() && !all.ends_with('\n')) all += '\n';
  return all + certificate;
}

WebhookTrust::WebhookTrust(const Access& access,
                           Credentials& credentials,
                           std::string configuration,
                           Log& log,
                           Health& health)
    : api_(access, credentials),
      configuration_(std::move(configuration)),
      log_(log),
      health_(health) {}

WebhookTrust::~WebhookTrust() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  api_.cancel();
  changed_.notify_all();
}

void WebhookTrust::keep(std::string certificate) {
  certificate_ = std::move(certificate);
  thread_ = std::jthread([this] { look_again_and_again(); });
}

bool WebhookTrust::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return ends_; });
}

void WebhookTrust::look_again_and_again() {
  bool is_trusted = false;
  do {
    const auto found = look();
    if (found) {
      health_.ready();
      if (!std::exchange(is_trusted, true)) {
        log_.info(fmt::format("the API server trusts it: {} has its certificate", configuration_));
      }
      continue;
    }
    // What it was told last stays so while the API server does not answer.
    const Code code = found.error().code;
    if (code == Code::Unreachable || code == Code::Timeout) {
      if (!is_trusted) health_.not_ready(found.error().message);
    } else {
      is_trusted = false;
      health_.not_ready(found.error().message);
    }
    log_.warn_again(found.error().message);
  } while (pause(kLookAgain));
}

Result<void> WebhookTrust::look() {
  const std::string path = fmt::format("{}{}", kConfigurations, configuration_);
  const std::string called = "MutatingWebhookConfiguration " + configuration_;
  const Answer found = GF_TRY(api_.ask({.path = path}));
  if (!found.is_ok()) return std::unexpected(error_of(found, "read the " + called, kRights));
  const Json configuration = Json::parse(found.body, nullptr, false);
  const Json& webhooks = part(configuration, "webhooks");
  if (!webhooks.is_array() || webhooks.empty()) {
    return fail(Code::WrongState,
                fmt::format("the {} has no webhook: apply packaging/kubernetes/webhook.yaml again",
                            called));
  }
  const std::string bundle =
      api::base64_decode(text(part(webhooks.front(), "clientConfig"), "caBundle")).value_or("");
  const auto with_it = bundle_with(bundle, certificate_);
  if (!with_it) return {};
  const Answer written =
      GF_TRY(api_.ask({.method = "PATCH",
                       .path = path,
                       .body = patch_of(configuration, *with_it).dump(),
                       .content_type = "application/strategic-merge-patch+json"}));
  if (written.is_ok()) return {};
  return std::unexpected(error_of(written, "write the certificate into the " + called, kRights));
}

}  // namespace gflow::kube

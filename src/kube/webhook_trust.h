// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "kube/api.h"
#include "kube/health.h"
#include "kube/log.h"

namespace gflow::kube {

/// The bundle (PEM) with the certificate as its last one, and none of the first ones that would be
/// too many; empty where it has that already.
[[nodiscard]] std::optional<std::string> bundle_with(const std::string& bundle,
                                                     const std::string& certificate);

/// Keeps the API server's trust in the certificate that this webhook shows: in the caBundle of a
/// MutatingWebhookConfiguration, beside those of the others that answer for it. What is secret of
/// it stays in the memory of this process. On a thread of its own; ready once it is trusted.
class WebhookTrust {
 public:
  WebhookTrust(const Access& access,
               Credentials& credentials,
               std::string configuration,
               Log& log,
               Health& health);
  ~WebhookTrust();
  WebhookTrust(const WebhookTrust&) = delete;
  WebhookTrust& operator=(const WebhookTrust&) = delete;

  /// `certificate`: PEM.
  void keep(std::string certificate);

 private:
  void look_again_and_again();
  /// Errors: why it is not trusted, as far as this one knows.
  [[nodiscard]] Result<void> look();
  [[nodiscard]] bool pause(std::chrono::milliseconds time);

  Api api_;
  std::string configuration_;
  std::string certificate_;
  Log& log_;
  Health& health_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::jthread thread_;
};

}  // namespace gflow::kube

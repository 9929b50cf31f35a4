// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "base/listen_address.h"
#include "base/result.h"
#include "kube/access.h"
#include "kube/admission.h"

namespace gflow::kube {

struct WebhookOptions {
  AccessWish access;
  AdmissionRules rules;
  std::string name_space = "gflow-system";  ///< of its Service
  std::string host;                         ///< as the API server calls it; "": by its Service
  ListenAddress listen{"0.0.0.0", 8443};
};

/// What its Service and its MutatingWebhookConfiguration are called, for pods of this
/// schedulerName.
[[nodiscard]] std::string webhook_name_of(const std::string& scheduler);

/// Answers the API server's questions about new pods, by HTTPS, until a signal ends it. Errors:
/// those of find_access(), what os::listen_tcp says of an address.
[[nodiscard]] Result<void> serve_webhook(const WebhookOptions& options, std::ostream& log);

}  // namespace gflow::kube

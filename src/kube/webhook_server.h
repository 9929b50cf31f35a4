// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <memory>

#include "kube/admission.h"
#include "kube/health.h"
#include "os/fd.h"

namespace gflow::kube {

/// Answers those who were let in, over HTTP/1.1: POST /pods is a review(); GET /healthz is 200, and
/// /readyz once it is trusted. The loop's one thread.
class WebhookServer {
 public:
  /// REQUIRES: `io` and `health` outlive it.
  WebhookServer(boost::asio::io_context& io, AdmissionRules rules, const Health& health);

  /// Talks over this socket until the other end is done, is silent for long or asks for what is too
  /// large. All together have so many bytes under way; beyond, who sends more is cut.
  void welcome(os::Fd connection);

 private:
  class Session;
  /// What sessions have in common; they end with the loop.
  struct Common {
    AdmissionRules rules;
    const Health& health;
    std::size_t held = 0;  ///< bytes of requests that are not whole yet
  };

  boost::asio::io_context& io_;
  std::shared_ptr<Common> common_;
};

}  // namespace gflow::kube

// SPDX-License-Identifier: Apache-2.0
#include "kube/status_pages.h"

#include "base/text.h"
#include "kube/health.h"
#include "kube/metrics.h"
#include "os/clock.h"

namespace gflow::kube {

Page verdict(const std::string& trouble) {
  if (trouble.empty()) return {200, "ok"};
  return {503, printable(trouble) + "\n"};
}

Pages status_pages(const Health& health, const Metrics& metrics) {
  return {{"/healthz", [&health] { return verdict(health.stuck(os::now().mono)); }},
          {"/readyz", [&health] { return verdict(health.unready()); }},
          {"/metrics", [&metrics] {
             return Page{200, metrics.text(), "text/plain; version=0.0.4; charset=utf-8"};
           }}};
}

}  // namespace gflow::kube

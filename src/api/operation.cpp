// SPDX-License-Identifier: Apache-2.0
#include "api/operation.h"

#include "base/translate.h"

namespace gflow::api {

const std::array<Tag, 5>& tags() {
  static constexpr std::array<Tag, 5> kTags = {{
      {"gpu", tr_later("What is free, and GPUs for programs that run outside the queue")},
      {"jobs", tr_later("Jobs: submit, list, show, change, end")},
      {"machine", tr_later("Nodes and devices, drains, where a job would run")},
      {"daemon", tr_later("The daemon itself, and who is asking")},
      {"health", tr_later("For what watches over services")},
  }};
  return kTags;
}

}  // namespace gflow::api

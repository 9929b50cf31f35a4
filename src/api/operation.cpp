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

const std::array<HeaderParameter, 4>& header_parameters() {
  static constexpr std::array<HeaderParameter, 4> kHeaders = {{
      {"Idempotency-Key",
       "IdempotencyKey",
       tr_later("of your choice: repeated with it within 24 hours, the request gives the same "
                "answer and does nothing again"),
       &Operation::takes_key,
       false,
       200},
      {"If-Match",
       "IfMatch",
       tr_later("ETag of what is to be changed: 412 if it is another by now"),
       &Operation::takes_match,
       false},
      {"Range",
       "Range",
       tr_later("the part that is wanted: bytes=0-1023; not with tail, from or follow"),
       &Operation::takes_range},
      {"Last-Event-ID",
       "LastEventID",
       tr_later("id of the latest event that came: those after it follow"),
       &Operation::takes_place},
  }};
  return kHeaders;
}

}  // namespace gflow::api

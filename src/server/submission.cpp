// SPDX-License-Identifier: Apache-2.0
#include "server/submission.h"

#include <memory>
#include <utility>

namespace gflow::server {
namespace {

/// Of each item. What others are like is shared by them and the one they are like.
std::vector<TaskPayload> payloads_of(std::vector<api::SubmitRequest::Item>& items) {
  std::vector<TaskPayload> payloads(items.size());
  for (const api::SubmitRequest::Item& item : items) {
    if (!item.like || payloads[*item.like].shared) continue;
    payloads[*item.like].shared =
        std::make_shared<const Payload>(std::exchange(items[*item.like].payload, {}));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].like) payloads[i].shared = payloads[*items[i].like].shared;
    payloads[i].own = std::move(items[i].payload);
    if (!items[i].tasks) continue;
    payloads[i].tasks = items[i].tasks;
    if (payloads[i].shared) continue;  // there is nothing of its own
    payloads[i].shared = std::make_shared<const Payload>(std::exchange(payloads[i].own, {}));
  }
  return payloads;
}

}  // namespace

Submission submission_of(std::vector<api::SubmitRequest::Item> items, const Principal& by) {
  Submission submission;
  submission.payloads = payloads_of(items);
  engine::event::Submit& event = submission.event;
  event.payload_bytes = bytes_of_each(submission.payloads);
  for (api::SubmitRequest::Item& item : items) {
    for (const std::size_t sibling : item.depends_on_siblings) {
      item.spec.dependencies.jobs.emplace_back(engine::event::kSibling + sibling);
    }
    event.specs.push_back(std::move(item.spec));
    event.tasks.push_back(item.tasks);
  }
  event.by = by;
  return submission;
}

}  // namespace gflow::server

// SPDX-License-Identifier: Apache-2.0
#include "server/admission.h"

#include <fmt/format.h>

#include "base/translate.h"

namespace gflow::server {

Result<void> Admission::take_connection(std::uint32_t uid) {
  Use& use = users_[uid];
  if (use.connections >= max_connections_per_user_) {
    return fail(
        Code::Exhausted,
        tr_format("uid {} has {} connections open; close some first", uid, use.connections));
  }
  if (connections_ >= max_connections_) {
    if (use.connections == 0) users_.erase(uid);
    return fail(Code::Exhausted,
                tr_format("all {} connections are in use; try again", max_connections_));
  }
  ++use.connections;
  ++connections_;
  return {};
}

void Admission::give_connection(std::uint32_t uid) {
  const auto user = users_.find(uid);
  if (user == users_.end()) return;
  --connections_;
  if (--user->second.connections == 0) users_.erase(user);
}

Result<void> Admission::take_body(std::uint32_t uid, Memory size) {
  Use& use = users_[uid];
  if (use.bodies + size > kMaxBodiesPerUser) {
    return fail(Code::Exhausted,
                tr_format("requests of uid {} already use {}; wait for their answers",
                          uid,
                          memory_text(use.bodies)));
  }
  use.bodies += size;
  return {};
}

void Admission::give_body(std::uint32_t uid, Memory size) {
  const auto user = users_.find(uid);
  if (user != users_.end()) user->second.bodies -= size;
}

Result<void> Admission::take_reply(std::uint32_t uid, Memory size) {
  Use& use = users_[uid];
  if (use.replies + size > kMaxRepliesPerUser) {
    return fail(Code::Exhausted,
                tr_format("uid {} already has {} of unread answers; read them first",
                          uid,
                          memory_text(use.replies)));
  }
  use.replies += size;
  return {};
}

void Admission::give_reply(std::uint32_t uid, Memory size) {
  const auto user = users_.find(uid);
  if (user != users_.end()) user->second.replies -= size;
}

}  // namespace gflow::server

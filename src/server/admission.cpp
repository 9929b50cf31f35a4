// SPDX-License-Identifier: Apache-2.0
#include "server/admission.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/translate.h"

namespace gflow::server {
namespace {

/// What is left of `all` for who comes this way: commands come by the socket, and find room however
/// many connections programs and strangers keep open over TCP, their own user's, too.
std::size_t open_to(Via via, std::size_t all) {
  if (via != Via::Tcp || all < 2) return all;
  return all - std::max<std::size_t>(all / 4, 1);
}

}  // namespace

Admission::Admission(Limits here, Limits elsewhere, std::size_t max_connections_per_user)
    : max_connections_per_user_(max_connections_per_user) {
  core_->here.most = here;
  core_->elsewhere.most = elsewhere;
}

Result<Admission::Lease> Admission::take_connection(const Guest& guest) {
  const std::string who = counted_as(guest);
  if (const auto use = core_->users.find(who);
      use != core_->users.end() &&
      use->second.connections >= open_to(guest.via, max_connections_per_user_)) {
    return fail(
        Code::Exhausted,
        tr_format("{} has {} connections open; close some first", who, use->second.connections));
  }
  const All& all = core_->all_of(guest.via);
  const std::size_t most = open_to(guest.via, all.most.connections);
  if (all.use.connections >= most) {
    return fail(Code::Exhausted, tr_format("all {} connections are in use; try again", most));
  }
  return lend(guest, {.connections = 1, .bodies = {}, .replies = {}});
}

Result<Admission::Lease> Admission::take_body(const Guest& guest, Memory size) {
  const std::string who = counted_as(guest);
  const auto use = core_->users.find(who);
  const Memory bodies = use == core_->users.end() ? Memory{} : use->second.bodies;
  if (bodies + size > kMaxBodiesPerUser) {
    return fail(
        Code::Exhausted,
        tr_format(
            "requests of {} already use {}; wait for their answers", who, memory_text(bodies)));
  }
  const All& all = core_->all_of(guest.via);
  if (all.use.bodies + size > all.most.bodies) {
    return fail(
        Code::Exhausted,
        tr_format("requests of all already use {}; try again", memory_text(all.use.bodies)));
  }
  return lend(guest, {.connections = 0, .bodies = size, .replies = {}});
}

Result<Admission::Lease> Admission::take_reply(const Guest& guest, Memory size) {
  const std::string who = counted_as(guest);
  const auto use = core_->users.find(who);
  const Memory replies = use == core_->users.end() ? Memory{} : use->second.replies;
  if (replies + size > kMaxRepliesPerUser) {
    return fail(
        Code::Exhausted,
        tr_format(
            "{} already has {} of unread answers; read them first", who, memory_text(replies)));
  }
  return lend(guest, {.connections = 0, .bodies = {}, .replies = size});
}

Admission::Lease Admission::lend(const Guest& guest, const Use& what) {
  const auto add = [](Use& use, const Use& more) {
    use.connections += more.connections;
    use.bodies += more.bodies;
    use.replies += more.replies;
  };
  const auto take = [](Use& use, const Use& less) {
    use.connections -= less.connections;
    use.bodies -= less.bodies;
    use.replies -= less.replies;
  };
  std::string who = counted_as(guest);
  add(core_->users[who], what);
  add(core_->all_of(guest.via).use, what);
  void* const any = core_.get();
  return {any, [core = core_, who = std::move(who), via = guest.via, what, take](void* /*any*/) {
            take(core->all_of(via).use, what);
            const auto user = core->users.find(who);
            take(user->second, what);
            if (user->second == Use{}) core->users.erase(user);
          }};
}

}  // namespace gflow::server

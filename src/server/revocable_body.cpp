// SPDX-License-Identifier: Apache-2.0
#include "server/revocable_body.h"

#include <mutex>
#include <utility>

namespace gflow::server {

struct RevocableBody::State {
  std::mutex mutex;
  bool is_revoked = false;  // guarded by the mutex
  Then waiting;             // the same: for the piece asked for
};

RevocableBody::RevocableBody(std::shared_ptr<Body> body)
    : body_(std::move(body)), state_(std::make_shared<State>()) {}

void RevocableBody::next(Then then) {
  {
    const std::scoped_lock lock(state_->mutex);
    if (!state_->is_revoked) state_->waiting = std::exchange(then, {});
  }
  if (then) return then(cut_piece());
  body_->next([state = state_](Piece piece) {
    Then told;
    {
      const std::scoped_lock lock(state->mutex);
      told = std::exchange(state->waiting, {});
    }
    if (told) told(std::move(piece));
  });
}

void RevocableBody::revoke() {
  Then told;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->is_revoked = true;
    told = std::exchange(state_->waiting, {});
  }
  if (told) told(cut_piece());
}

}  // namespace gflow::server

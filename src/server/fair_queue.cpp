// SPDX-License-Identifier: Apache-2.0
#include "server/fair_queue.h"

#include <algorithm>

namespace gflow::server {

bool FairQueue::ready() const {
  return std::ranges::any_of(users_,
                             [this](const auto& user) { return !blocked_.contains(user.first); });
}

FairQueue::Work FairQueue::pop() {
  auto user = users_.upper_bound(last_);
  while (user == users_.end() || blocked_.contains(user->first)) {
    user = user == users_.end() ? users_.begin() : std::next(user);
  }
  last_ = user->first;
  Work work = std::move(user->second.front());
  user->second.pop_front();
  if (user->second.empty()) users_.erase(user);
  return work;
}

}  // namespace gflow::server

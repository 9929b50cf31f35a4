// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>

namespace gflow::server {

/// Pieces of work of several users, taken in turns: one of each user who has any, whoever has how
/// many. Within one user the order is that in which they came.
class FairQueue {
 public:
  using Work = std::function<void()>;

  void push(std::uint32_t uid, Work work) { users_[uid].push_back(std::move(work)); }
  /// Before everything else of this user: the rest of what was begun.
  void push_front(std::uint32_t uid, Work work) { users_[uid].push_front(std::move(work)); }
  /// Nothing of this user is taken until unblock().
  void block(std::uint32_t uid) { blocked_.insert(uid); }
  void unblock(std::uint32_t uid) { blocked_.erase(uid); }

  [[nodiscard]] bool ready() const;
  /// The next piece. REQUIRES: ready().
  [[nodiscard]] Work pop();

 private:
  std::map<std::uint32_t, std::deque<Work>> users_;  ///< those who have any
  std::set<std::uint32_t> blocked_;
  std::uint32_t last_ = 0;  ///< whose piece was taken last
};

}  // namespace gflow::server

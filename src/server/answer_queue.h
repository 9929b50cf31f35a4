// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "server/body.h"
#include "server/exchange.h"
#include "server/terms.h"
#include "server/worker.h"

namespace gflow::server {

/// Makes answers ready to be sent, on a thread of its own: written, digested, compressed. Users
/// take turns, a piece each, so that nobody waits for all that another one has asked for.
class AnswerQueue {
 public:
  AnswerQueue();
  /// Drops what has not begun and waits for what has.
  ~AnswerQueue();
  AnswerQueue(const AnswerQueue&) = delete;
  AnswerQueue& operator=(const AnswerQueue&) = delete;

  /// `then` is given it, on the thread.
  void finish(std::uint32_t uid, Terms terms, Reply reply, std::function<void(Reply)> then);
  /// The body with its pieces made there, in this user's turn. Asked when the queue is no more, it
  /// is cut.
  [[nodiscard]] std::shared_ptr<Body> in_turn(std::uint32_t uid, std::shared_ptr<Body> body);

 private:
  struct Answer;
  class BodyInTurn;
  /// The thread, for bodies that may outlive it.
  struct Door {
    std::mutex mutex;
    Worker* worker = nullptr;  // guarded by mutex; null: the queue is no more
  };
  void go_on(std::shared_ptr<Answer> answer);

  Worker worker_;
  std::shared_ptr<Door> door_;
};

}  // namespace gflow::server

// SPDX-License-Identifier: Apache-2.0
#include "server/answer_queue.h"

#include <utility>

#include "server/conventions.h"

namespace gflow::server {

class AnswerQueue::BodyInTurn : public Body {
 public:
  BodyInTurn(std::shared_ptr<Door> door, std::uint32_t uid, std::shared_ptr<Body> body)
      : door_(std::move(door)), uid_(uid), body_(std::move(body)) {}

  void next(Then then) override {
    std::unique_lock lock(door_->mutex);
    if (door_->worker != nullptr) {
      return door_->worker->run(uid_, [body = body_, then = std::move(then)] { body->next(then); });
    }
    lock.unlock();
    then(cut_piece());
  }

 private:
  std::shared_ptr<Door> door_;
  std::uint32_t uid_;
  std::shared_ptr<Body> body_;
};

AnswerQueue::AnswerQueue() : door_(std::make_shared<Door>()) { door_->worker = &worker_; }

AnswerQueue::~AnswerQueue() {
  const std::scoped_lock lock(door_->mutex);
  door_->worker = nullptr;
}

struct AnswerQueue::Answer {
  std::uint32_t uid;
  Finishing finishing;
  std::function<void(Reply)> then;
};

void AnswerQueue::finish(std::uint32_t uid,
                         Terms terms,
                         Reply reply,
                         std::function<void(Reply)> then) {
  auto answer = std::make_shared<Answer>(
      Answer{uid, Finishing(std::move(terms), std::move(reply)), std::move(then)});
  worker_.run(uid, [this, answer = std::move(answer)] { go_on(answer); });
}

void AnswerQueue::go_on(std::shared_ptr<Answer> answer) {
  if (answer->finishing.step()) return answer->then(answer->finishing.take());
  const std::uint32_t uid = answer->uid;
  worker_.go_on(uid, [this, answer = std::move(answer)] { go_on(answer); });
}

std::shared_ptr<Body> AnswerQueue::in_turn(std::uint32_t uid, std::shared_ptr<Body> body) {
  return std::make_shared<BodyInTurn>(door_, uid, std::move(body));
}

}  // namespace gflow::server

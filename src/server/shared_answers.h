// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "server/exchange.h"

namespace gflow::server {

/// Answers that are for several. Who asks what somebody else of the same rights asks, too, is
/// answered with the same, if both asked before it was begun to be made: so that no answer is older
/// than its question, whoever asked first. On the loop's thread.
class SharedAnswers {
 public:
  using Respond = std::function<void(Reply)>;
  struct Question {
    Principal caller;
    Request request;  ///< without its terms, which are of each answer

    friend bool operator==(const Question&, const Question&) = default;
  };

  /// A request has come. Returns its number: each is larger than the one before.
  std::uint64_t arrived() { return ++last_; }
  /// Whether an answer to that request is there or being made. Then `respond` is given it, now or
  /// once it is.
  [[nodiscard]] bool join(const Question& question, std::uint64_t number, const Respond& respond);
  /// An answer is begun, for all who have arrived by now. Returns what is to be given it: that
  /// answers with `respond`, and all who joined. If it is let go of without an answer, so are they.
  [[nodiscard]] Respond begin(Question question, Respond respond);
  /// All who arrived were answered or have joined: nobody else will.
  void let_go() { answers_.clear(); }

 private:
  struct Answer;

  std::vector<std::shared_ptr<Answer>> answers_;  ///< the last that were begun
  std::uint64_t last_ = 0;
};

}  // namespace gflow::server

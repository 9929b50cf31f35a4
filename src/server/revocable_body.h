// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "server/body.h"

namespace gflow::server {

/// A body that is sent only as long as who asked may have it.
class RevocableBody : public Body {
 public:
  explicit RevocableBody(std::shared_ptr<Body> body);
  void next(Then then) override;
  /// The connection is cut, also while nothing comes. From any thread.
  void revoke();

 private:
  struct State;
  std::shared_ptr<Body> body_;
  std::shared_ptr<State> state_;  // shared with the piece that is asked for
};

}  // namespace gflow::server

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>
#include <utility>

#include "kube/reflector.h"

namespace gflow::kube {

/// Follows one kind of objects in a thread of its own, until it is let go of.
class Follower {
 public:
  Follower(const Access& access, Credentials& credentials, Followed followed, Listener listener)
      : api_(access, credentials), reflector_(api_, std::move(followed), std::move(listener)) {
    thread_ = std::jthread([this] { reflector_.run(); });
  }
  ~Follower() { stop(); }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;
  /// It tells nothing any more, and ends before long.
  void stop() { reflector_.stop(); }

 private:
  Api api_;
  Reflector reflector_;
  std::jthread thread_;
};

/// Pods that have ended hold nothing, and are none here.
constexpr std::string_view kNotEnded =
    "&fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

}  // namespace gflow::kube

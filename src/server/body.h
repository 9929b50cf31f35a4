// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace gflow::server {

/// What comes next of a body. Many may send the same bytes.
struct Piece {
  /// Null: there is nothing more. Empty: nothing yet, ask again.
  std::shared_ptr<const std::string> bytes;
  /// Where there is nothing more: whether that was all. If not, the connection is cut, so that
  /// nobody takes what came for the whole.
  bool is_whole = true;
};

[[nodiscard]] inline Piece piece_of(std::string bytes) {
  return {std::make_shared<const std::string>(std::move(bytes))};
}
[[nodiscard]] inline Piece last_piece() { return {}; }
[[nodiscard]] inline Piece cut_piece() { return {nullptr, false}; }

/// Where a body comes from that is sent in pieces: the next is asked for when the one before is
/// sent, so that a slow reader costs one piece, whatever there is to read. Let go of when it is
/// sent, or nobody is there to send it to.
class Body {
 public:
  using Then = std::function<void(Piece)>;

  virtual ~Body() = default;
  /// Calls `then` once, now or later, on any thread. Not asked again before.
  virtual void next(Then then) = 0;
};

/// A body in pieces, and how it is sent.
struct Streamed {
  std::shared_ptr<Body> body;
  /// How long all of it is; empty: not known (chunked, or until the connection is closed).
  std::optional<std::uint64_t> length = {};
  /// It has no end of its own: when the daemon stops it is ended in order, and not cut.
  bool is_endless = false;
  /// Sent while there is nothing else for some time, so that both ends know of each other; "" for
  /// a body in which it would be read.
  std::string heartbeat = {};
  /// Its pieces are made when they are asked for, which is work: in turns with that of others.
  bool is_work = false;
};

}  // namespace gflow::server

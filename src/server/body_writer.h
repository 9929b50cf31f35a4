// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "server/body.h"
#include "server/listener.h"

namespace gflow::server {

/// How the end of a body is told.
enum class Framing {
  Length,   ///< by its length, which the headers say
  Chunked,  ///< by an empty chunk
  Close,    ///< by closing the connection
};

/// Chunks are not known to clients of HTTP/1.0.
[[nodiscard]] Framing framing_of(const Streamed& streamed, bool is_http10);

/// Sends the headers and then the pieces of a body, each once the one before is written. Runs on
/// the connection's thread; the body may give pieces on any.
class BodyWriter : public std::enable_shared_from_this<BodyWriter> {
 public:
  using Stream = boost::beast::basic_stream<Listener::Protocol, Listener::Executor>;
  /// How it went: Sent, and another request may follow; or the connection is to be closed.
  enum class End { Sent, Broken };

  static constexpr std::chrono::seconds kHeartbeat{15};
  struct Limits {
    std::chrono::milliseconds write;      ///< for one piece to be taken
    std::chrono::milliseconds heartbeat;  ///< between pieces, where the body has a heartbeat
  };

  /// `owner` has the stream, and is kept while something is written; `done` is called once.
  BodyWriter(Stream& stream, std::weak_ptr<void> owner, Streamed what, Framing framing);
  void start(std::string head, Limits limits, std::function<void(End)> done);
  /// No more pieces: the daemon stops. What is being written still goes out.
  void stop();
  /// Calls nothing any more: the connection is closed.
  void abandon();

 private:
  void ask();
  void take(Piece piece);
  void write(std::shared_ptr<const std::string> bytes);
  void beat_later();
  void finish(bool is_whole);
  template <typename Buffers, typename Then>
  void send(const Buffers& buffers, Then then);
  void end(End how);

  Stream& stream_;
  std::weak_ptr<void> owner_;
  Streamed what_;
  Framing framing_;
  Limits limits_{};
  std::function<void(End)> done_;
  boost::asio::steady_timer timer_;
  std::string head_;                          // of the answer, then of each chunk
  std::shared_ptr<const std::string> bytes_;  // being written
  bool writing_ = false;
  bool asked_ = false;            // a piece is on its way
  std::optional<Piece> waiting_;  // came while a heartbeat was written
  bool stopping_ = false;
};

}  // namespace gflow::server

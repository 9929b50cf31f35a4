// SPDX-License-Identifier: Apache-2.0
// Includes Beast, which takes long to compile: for edge.cpp.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "server/admission.h"
#include "server/answer_queue.h"
#include "server/body_writer.h"
#include "server/desk.h"
#include "server/guest.h"
#include "server/http_counters.h"
#include "server/http_message.h"
#include "server/listener.h"

namespace gflow::server {

class Session;

/// What the connections of a server have in common, on their thread.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  [[nodiscard]] virtual Admission& admission() = 0;
  [[nodiscard]] virtual HttpCounters& counters() = 0;
  /// For a request's headers to arrive, or the next request; twice that for its body.
  [[nodiscard]] virtual std::chrono::milliseconds idle() const = 0;
  /// Of those who did not come by the socket.
  [[nodiscard]] virtual std::shared_ptr<const WebRules> web_rules(Via via) const = 0;
  /// Nothing new is begun, and what is answered is the last of its connection.
  [[nodiscard]] virtual bool is_closing() const = 0;
  /// Hands a request to the desk; as Desk::ask().
  [[nodiscard]] virtual std::shared_ptr<void> ask(Guest guest,
                                                  Request request,
                                                  Desk::Asker asker) = 0;
  /// Runs it on the connections' thread; called from the desk's.
  virtual void on_edge(std::function<void()> work) = 0;
  /// Runs it in this user's turn, on the connections' thread, from which it is called.
  virtual void in_turn(std::uint32_t uid, std::function<void()> work) = 0;
  /// What makes answers ready that take long.
  [[nodiscard]] virtual AnswerQueue& answers() = 0;
  /// It was refused, or failed.
  virtual void note(const Guest& guest, const Terms& terms, int status) = 0;
  /// Whether it shows who asks, as far as can be told before it is decided: what strangers send is
  /// not read.
  [[nodiscard]] virtual bool shows_somebody(
      const Guest& guest, const std::optional<std::string>& authorization) const = 0;
  /// It has closed.
  virtual void forget(const std::shared_ptr<Session>& session) = 0;
};

/// One connection: read a request, have it answered, again. Owned by its host while it is open, and
/// by the handlers that are pending for it; the answer awaited does not keep it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  using Stream = BodyWriter::Stream;

  /// `connection`: what it takes of the admission.
  Session(SessionHost& host, Guest guest, Listener::Socket socket, Admission::Lease connection)
      : host_(host),
        guest_(std::move(guest)),
        connection_(std::move(connection)),
        stream_(std::move(socket)),
        deadline_(stream_.get_executor()),
        look_again_(stream_.get_executor()) {}

  void read_header();
  [[nodiscard]] Via via() const { return guest_.via; }
  [[nodiscard]] bool is_idle() const { return idle_; }
  [[nodiscard]] bool is_sending() const { return finishing_ || response_ || writer_; }
  /// Ends an answer that is sent in pieces.
  void stop_streaming();
  /// For news, which a daemon that stops has none of.
  [[nodiscard]] bool waits_for_news() const { return waits_for_news_; }
  /// Hangs up and gives back what was taken. The session may be gone when this returns.
  void close();

 private:
  using error_code = boost::system::error_code;  // NOLINT(readability-identifier-naming): as there

  void on_header(const error_code& error);
  [[nodiscard]] bool is_undelivered(const error_code& error);
  [[nodiscard]] bool skip_empty_line();
  [[nodiscard]] bool is_to_be_read();
  [[nodiscard]] Result<void> take_body();
  void invite_body();
  void read_body();
  void on_body(const error_code& error);
  void begin_request(bool is_unread);
  void take_request(HttpRequest message, bool is_unread);
  void on_bad_request(const error_code& error);
  void expect_within(std::chrono::milliseconds time);
  void refuse(Refusal why, Reply reply);
  void count(int status);
  void end_stream();
  [[nodiscard]] bool is_awaiting() const { return ticket_ != nullptr; }
  void ask(Request request);
  [[nodiscard]] Desk::Asker asker();
  void watch();
  void watch_again();
  void look_at_other_end();
  void wait_for_news(std::uint64_t number);
  void answer(std::uint64_t number, Reply reply);
  void send(Reply reply);
  void send_later(std::uint32_t uid, Reply reply);
  void send_finished(Reply reply);
  [[nodiscard]] Result<void> take_reply(const Reply& reply);
  void send_streamed(std::uint32_t uid, Reply reply);
  void on_sent(const error_code& error);
  void lose_receipt();

  static constexpr std::size_t kMaxBufferBytes =
      std::size_t{2} * kMaxHeaderBytes;             // and the start of a body
  static constexpr std::size_t kUsualBytes = 4096;  // most requests, in one piece

  SessionHost& host_;
  Guest guest_;
  Admission::Lease connection_;
  Stream stream_;
  boost::asio::steady_timer deadline_;    // of what is read
  boost::asio::steady_timer look_again_;  // at the other end
  bool too_late_ = false;
  boost::beast::flat_buffer buffer_{kMaxBufferBytes};
  std::optional<HttpParser> parser_;
  std::optional<HttpResponse> response_;
  std::shared_ptr<BodyWriter> writer_;  // of an answer in pieces
  std::shared_ptr<Receipt> receipt_;    // of what was sent last, until the next request
  Admission::Lease body_;
  Admission::Lease reply_;
  std::shared_ptr<void> ticket_;  // of the request awaited
  std::uint64_t number_ = 0;      // of the request awaited; an answer to another one is dropped
  const MessageCatalogue* messages_ = nullptr;  // in whose language it is refused
  Terms terms_;                                 // of it
  std::size_t route_ = 0;                       // the same
  std::optional<std::chrono::steady_clock::time_point> asked_at_;  // none: it is not read yet
  bool finishing_ = false;                                         // an answer is made ready
  bool streaming_ = false;
  bool idle_ = true;
  bool watching_ = false;
  bool waits_for_news_ = false;
  bool keep_alive_ = false;
  bool is_head_ = false;
  bool is_http10_ = false;
  int empty_lines_ = 0;  ///< that were skipped before this request
  bool closed_ = false;
};

}  // namespace gflow::server

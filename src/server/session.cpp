// SPDX-License-Identifier: Apache-2.0
#include "server/session.h"

#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <sstream>
#include <utility>

#include "base/translate.h"
#include "os/tcp.h"
#include "server/conventions.h"
#include "server/language.h"
#include "server/request_id.h"
#include "server/routes.h"
#include "server/target.h"

namespace gflow::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

constexpr int kLeastRefused = 400;
constexpr unsigned kHttp11 = 11;

/// Whether what was sent came to a socket that is closed.
bool has_failed(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0;
}

/// How the other end is. A client may close its sending half and still read.
enum class OtherEnd { Open, HalfClosed, Gone };
OtherEnd other_end(int socket) {
  pollfd watched{socket, POLLIN | POLLRDHUP, 0};
  if (::poll(&watched, 1, 0) != 1) return OtherEnd::Open;
  if ((watched.revents & (POLLHUP | POLLERR)) != 0) return OtherEnd::Gone;
  return (watched.revents & POLLRDHUP) != 0 ? OtherEnd::HalfClosed : OtherEnd::Open;
}

}  // namespace

void Session::read_header() {
  buffer_.reserve(kUsualBytes);  // it reads no more at once than there is room for
  idle_ = true;
  route_ = routes().size();
  asked_at_.reset();
  messages_ = nullptr;
  terms_ = {};
  is_head_ = false;
  parser_.emplace();
  parser_->header_limit(kMaxHeaderBytes);
  parser_->body_limit(static_cast<std::uint64_t>(kMaxBody.bytes));
  expect_within(host_.idle());
  http::async_read_header(stream_,
                          buffer_,
                          *parser_,
                          [self = shared_from_this()](const error_code& error, std::size_t) {
                            self->on_header(error);
                          });
}

void Session::on_header(const error_code& error) {
  deadline_.cancel();
  if (closed_) return;
  if (error && is_undelivered(error)) lose_receipt();
  receipt_.reset();
  if (error && skip_empty_line()) return read_header();
  if (error) return on_bad_request(error);
  empty_lines_ = 0;
  idle_ = false;
  join_lists(parser_->get());
  terms_ = terms_of(parser_->get());
  is_head_ = parser_->get().method() == http::verb::head;
  messages_ = messages_wanted(parser_->get()[http::field::accept_language]);
  const MessagesOfThread language(messages_);
  if (!reads_coding(parser_->get()[http::field::transfer_encoding])) {
    return refuse(
        Refusal::Malformed,
        problem(Error{Code::Usage, tr("the only transfer coding taken is chunked")}, 501));
  }
  if (!is_to_be_read()) return begin_request(true);
  if (auto taken = take_body(); !taken) {
    return refuse(Refusal::Memory, problem(taken.error(), 429));
  }
  // HTTP/1.0 knows no answer before the answer (RFC 9110, 10.1.1).
  const bool waits = parser_->get().version() >= kHttp11 &&
                     beast::iequals(parser_->get()[http::field::expect], "100-continue");
  return waits ? invite_body() : read_body();
}

/// Whether of the answer before something was not read, by all that is known at the end of the
/// connection. The socket is reset by one that closes it without having read what was sent. Over
/// TCP others do that, too: there it counts whether the other machine took all of it in.
bool Session::is_undelivered(const error_code& error) {
  const bool is_local = guest_.via != Via::Tcp;  // with TLS it is a pair of sockets
  if (is_local && error == asio::error::connection_reset) return true;
  if (guest_.via == Via::Unix) return false;
  return os::is_unsent(stream_.socket().native_handle()) ||
         (guest_.has_some_to_come && *guest_.has_some_to_come);
}

/// RFC 9112, 2.2: some send one after a body. Not for ever: each begins the time anew.
bool Session::skip_empty_line() {
  constexpr int kMost = 4;
  constexpr std::string_view kEmpty = "\r\n";
  const auto held = beast::buffers_to_string(buffer_.data());
  if (empty_lines_ == kMost || !std::string_view(held).starts_with(kEmpty)) return false;
  ++empty_lines_;
  buffer_.consume(kEmpty.size());
  return true;
}

/// What is small is read from anybody, so that the connection ends in order.
bool Session::is_to_be_read() {
  constexpr std::uint64_t kSmall = 64 * 1024;
  if (!parser_->chunked() && parser_->content_length().value_or(0) <= kSmall) return true;
  return host_.shows_somebody(guest_, authorization_of(parser_->get()));
}

Result<void> Session::take_body() {
  // A chunked body does not say how large it gets.
  const auto length = parser_->content_length();
  const Memory size =
      parser_->chunked() ? kMaxBody : Memory{static_cast<std::int64_t>(length.value_or(0))};
  body_ = GF_TRY(host_.admission().take_body(guest_, size));
  return {};
}

void Session::invite_body() {
  static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
  stream_.expires_after(host_.idle());
  asio::async_write(stream_,
                    asio::buffer(kGoOn.data(), kGoOn.size()),
                    [self = shared_from_this()](const error_code& error, std::size_t) {
                      if (error) return self->close();
                      self->read_body();
                    });
}

void Session::read_body() {
  expect_within(2 * host_.idle());
  http::async_read(
      stream_,
      buffer_,
      *parser_,
      [self = shared_from_this()](const error_code& error, std::size_t) { self->on_body(error); });
}

void Session::on_body(const error_code& error) {
  deadline_.cancel();
  if (closed_) return;
  const MessagesOfThread language(messages_);
  if (error) return on_bad_request(error);
  if (host_.is_closing()) {
    return refuse(Refusal::Stopping,
                  problem(Error{Code::Unreachable, tr("gflowd is stopping; try again")}));
  }
  begin_request(false);
}

/// Who has asked on many connections at once has them looked at with others in between.
void Session::begin_request(bool is_unread) {
  host_.in_turn(guest_.peer.uid, [session = weak_from_this(), is_unread] {
    const auto self = session.lock();
    if (!self || self->closed_) return;
    const MessagesOfThread language(self->messages_);
    HttpParser& parser = *self->parser_;
    self->take_request(is_unread ? std::move(parser.get()) : parser.release(), is_unread);
  });
}

/// `is_unread`: its body is not read, so that nothing after it can be, either.
void Session::take_request(HttpRequest message, bool is_unread) {
  asked_at_ = std::chrono::steady_clock::now();
  keep_alive_ = !is_unread && message.keep_alive();
  is_http10_ = message.version() < kHttp11;
  if (auto taken = check_headers(message); !taken) return send(problem(taken.error()));
  auto target = read_target(message.target());
  if (!target) return send(problem(target.error()));
  std::optional<WebHeaders> web;
  if (guest_.via != Via::Unix) web = web_headers_of(message, host_.web_rules(guest_.via));
  if (web && !target->authority.empty()) web->host = target->authority;
  Request request = request_of(std::move(message));
  request.path = std::move(target->path);
  route_ = route_number(request.method, request.path);
  request.query = std::move(target->query);
  request.web = std::move(web);
  request.terms = terms_;
  request.is_unread = is_unread;
  ask(std::move(request));
}

/// What is not read by then is not waited for: what came of it stays in the buffer.
void Session::expect_within(std::chrono::milliseconds time) {
  too_late_ = false;
  stream_.expires_never();
  deadline_.expires_after(time);
  deadline_.async_wait([session = weak_from_this()](const error_code& error) {
    const auto self = session.lock();
    if (error || !self || self->closed_) return;
    self->too_late_ = true;
    self->stream_.cancel();
  });
}

void Session::on_bad_request(const error_code& error) {
  const bool has_begun = !idle_ || buffer_.size() > 0 || parser_->got_some();
  if (too_late_ && has_begun) {
    return refuse(Refusal::Timeout,
                  problem(Error{Code::Timeout, tr("the request did not come in time")}, 408));
  }
  if (const auto reply = reply_to(error)) return refuse(Refusal::Malformed, *reply);
  close();
}

/// Answers without having understood the request, so that nothing after it can be read either.
void Session::refuse(Refusal why, Reply reply) {
  host_.counters().refused(why);
  keep_alive_ = false;
  send(std::move(reply));
}

void Session::ask(Request request) {
  stream_.expires_never();
  ++number_;
  ticket_ = host_.ask(guest_, std::move(request), asker());
  watch();
}

/// It may outlive the session, but not its host.
Desk::Asker Session::asker() {
  const auto session = weak_from_this();
  const std::uint64_t number = number_;
  return {
      [&host = host_, session, number](Reply reply) {
        host.on_edge([&host, session, number, reply = std::move(reply)]() mutable {
          const auto known = session.lock();
          if (!known) return;
          const std::uint32_t uid = reply.uid.value_or(known->guest_.peer.uid);
          host.in_turn(uid, [session, number, answer = std::move(reply)]() mutable {
            if (const auto self = session.lock()) self->answer(number, std::move(answer));
          });
        });
      },
      [&host = host_, session, number] {
        host.on_edge([session, number] {
          if (const auto self = session.lock()) self->wait_for_news(number);
        });
      },
  };
}

void Session::wait_for_news(std::uint64_t number) {
  if (!is_awaiting() || number != number_) return;
  if (host_.is_closing()) return close();
  waits_for_news_ = true;
  watch();  // again, if it went on sending before
  look_at_other_end();
}

void Session::watch() {
  if (watching_) return;
  watching_ = true;
  stream_.socket().async_wait(Stream::socket_type::wait_read,
                              [self = shared_from_this()](const error_code& error) {
                                self->watching_ = false;
                                if (error || !(self->is_awaiting() || self->writer_)) return;
                                self->look_at_other_end();
                                self->watch_again();
                              });
}

/// What it sends on before it has its answer is read after that, and its half that it closed stays
/// closed: until then the socket is readable, and would be spun on instead of waited for.
void Session::watch_again() {
  constexpr std::chrono::seconds kLookAgain{1};
  constexpr std::size_t kMostAhead = 64 * 1024;
  if (closed_ || watching_) return;
  error_code ignored;  // of one that has failed there is none
  const std::size_t ahead = stream_.socket().available(ignored);
  // Behind so much nothing is seen any more of the end of one that is elsewhere.
  if (guest_.via == Via::Tls && ahead > kMostAhead && (waits_for_news_ || writer_)) return close();
  const bool is_open = other_end(stream_.socket().native_handle()) == OtherEnd::Open;
  if (ahead == 0 && is_open) return watch();
  watching_ = true;
  look_again_.expires_after(kLookAgain);
  look_again_.async_wait([session = weak_from_this()](const error_code& error) {
    const auto self = session.lock();
    if (error || !self) return;
    self->watching_ = false;
    if (!(self->is_awaiting() || self->writer_)) return;
    self->look_at_other_end();
    self->watch_again();
  });
}

/// Over TCP one that is closed looks like one that only sends no more: what is waited for long is
/// not waited for by that.
void Session::look_at_other_end() {
  const OtherEnd end = other_end(stream_.socket().native_handle());
  const bool may_be_gone = end == OtherEnd::HalfClosed && guest_.via != Via::Unix;
  if (end == OtherEnd::Gone || (may_be_gone && (waits_for_news_ || writer_))) close();
}

void Session::close() {
  if (std::exchange(closed_, true)) return;
  error_code ignored;  // the connection is over either way
  stream_.socket().close(ignored);
  deadline_.cancel();
  look_again_.cancel();
  ticket_.reset();
  if (writer_) writer_->abandon();
  end_stream();
  body_.reset();
  reply_.reset();
  connection_.reset();
  host_.forget(shared_from_this());
}

void Session::answer(std::uint64_t number, Reply reply) {
  if (!is_awaiting() || number != number_) return;
  ticket_.reset();
  waits_for_news_ = false;
  terms_.asked_by = reply.asked_by;
  send(std::move(reply));
}

/// What is soon finished is made ready here: to hand it over would take as long.
void Session::send(Reply reply) {
  idle_ = false;
  body_.reset();
  keep_alive_ = keep_alive_ && !reply.hangs_up;
  if (terms_.request_id.empty()) terms_.request_id = request_id_of("");
  const std::uint32_t uid = reply.uid.value_or(guest_.peer.uid);
  if (reply.is_short) reply = written(std::move(reply));
  if (reply.streamed && !is_head_) return send_streamed(uid, std::move(reply));
  if (!is_soon_finished(terms_, reply)) return send_later(uid, std::move(reply));
  send_finished(finished(terms_, std::move(reply)));
}

/// In its user's turn. How long it gets is not known before it is written.
void Session::send_later(std::uint32_t uid, Reply reply) {
  if (auto taken = take_reply(reply); !taken) {
    return send_finished(finished(terms_, problem(taken.error(), 429)));
  }
  finishing_ = true;
  host_.answers().finish(
      uid, terms_, std::move(reply), [&host = host_, uid, session = weak_from_this()](Reply ready) {
        host.on_edge([&host, uid, session, ready = std::move(ready)]() mutable {
          host.in_turn(uid, [session, reply = std::move(ready)]() mutable {
            if (const auto self = session.lock()) self->send_finished(std::move(reply));
          });
        });
      });
}

/// In place of what was taken for the answer before.
Result<void> Session::take_reply(const Reply& reply) {
  reply_.reset();
  const MessagesOfThread language(messages_);
  const Memory size{static_cast<std::int64_t>(reply.body.size())};
  auto taken = host_.admission().take_reply(guest_, size);
  if (!taken) {
    host_.counters().refused(Refusal::Memory);
    return std::unexpected(std::move(taken).error());
  }
  reply_ = std::move(*taken);
  return {};
}

void Session::send_finished(Reply reply) {
  finishing_ = false;
  if (closed_) return;
  keep_alive_ = keep_alive_ && !host_.is_closing();
  if (auto taken = take_reply(reply); !taken) {
    reply = finished(terms_, problem(taken.error(), 429));
  }
  auto receipt = std::move(reply.receipt);
  count(reply.status);
  if (reply.status >= kLeastRefused) host_.note(guest_, terms_, reply.status);
  const bool has_length = reply.streamed && reply.streamed->length;
  const std::uint64_t length = has_length ? *reply.streamed->length : 0;
  response_ = response_of(std::move(reply));
  if (has_length) response_->content_length(length);
  response_->keep_alive(keep_alive_);
  if (is_head_) response_->body().clear();  // its length is told all the same
  receipt_ = std::move(receipt);
  if (receipt_) receipt_->sending();
  stream_.expires_after(2 * host_.idle());
  http::async_write(
      stream_, *response_, [self = shared_from_this()](const error_code& error, std::size_t) {
        self->on_sent(error);
      });
}

void Session::count(int status) {
  std::optional<std::chrono::nanoseconds> took;
  if (asked_at_) took = std::chrono::steady_clock::now() - *asked_at_;
  host_.counters().answered(route_, status, took);
}

void Session::end_stream() {
  if (std::exchange(streaming_, false)) host_.counters().stream_ended();
}

/// Nothing of it is counted against the user: it is a piece at a time.
void Session::send_streamed(std::uint32_t uid, Reply reply) {
  keep_alive_ = keep_alive_ && !host_.is_closing();
  reply = finished(terms_, std::move(reply));
  count(reply.status);
  host_.counters().stream_began();
  streaming_ = true;
  Streamed streamed = std::move(*reply.streamed);
  if (streamed.is_work) {
    streamed.body = host_.answers().in_turn(uid, std::move(streamed.body));
  }
  const Framing framing = framing_of(streamed, is_http10_);
  keep_alive_ = keep_alive_ && framing != Framing::Close;
  HttpResponse response = response_of(std::move(reply));
  response.keep_alive(keep_alive_);
  if (streamed.length) response.content_length(*streamed.length);
  if (framing == Framing::Chunked) response.chunked(true);
  std::ostringstream head;
  head << response.base();
  writer_ = std::make_shared<BodyWriter>(stream_, weak_from_this(), std::move(streamed), framing);
  writer_->start(
      std::move(head).str(),
      {2 * host_.idle(), BodyWriter::kHeartbeat},
      [session = weak_from_this()](BodyWriter::End how) {
        const auto self = session.lock();
        if (!self) return;
        self->writer_.reset();
        self->on_sent(how == BodyWriter::End::Sent ? error_code() : asio::error::broken_pipe);
      });
  if (host_.is_closing()) return stop_streaming();
  watch();
}

void Session::lose_receipt() {
  if (receipt_) receipt_->lost();
  receipt_.reset();
}

void Session::stop_streaming() {
  if (writer_) writer_->stop();
}

void Session::on_sent(const error_code& error) {
  response_.reset();
  terms_ = {};
  end_stream();
  is_head_ = false;
  if (error || has_failed(stream_.socket().native_handle())) lose_receipt();
  reply_.reset();
  if (closed_) return;
  if (error || !keep_alive_ || host_.is_closing()) return close();
  read_header();
}

}  // namespace gflow::server

// SPDX-License-Identifier: Apache-2.0
#include "client/http_exchange.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>

#include "base/text.h"
#include "base/time.h"
#include "os/unix_socket.h"
#include "os/user.h"

namespace gflow::client {
namespace {

namespace http = boost::beast::http;

constexpr std::uint64_t kMaxAnswer = std::uint64_t{256} << 20;

std::unexpected<Error> nobody_answers(const std::string& socket_path) {
  return fail(Code::Unreachable,
              fmt::format("gflowd does not answer at {}: start it with 'gflowd up'",
                          printable(socket_path)));
}

std::unexpected<Error> went_away(const std::string& socket_path) {
  return fail(Code::Unreachable,
              fmt::format("gflowd at {} went away before it answered: see 'gflowd status'",
                          printable(socket_path)));
}

std::string text_of(const HttpRequest& request) {
  std::string text = fmt::format(
      "{} {} HTTP/1.1\r\nHost: gflow\r\nConnection: close\r\n", request.method, request.target);
  if (!request.idempotency_key.empty()) {
    text += fmt::format("Idempotency-Key: {}\r\n", request.idempotency_key);
  }
  if (!request.body.empty() || request.method != "GET") {
    text += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n",
                        request.body.size());
  }
  return text + "\r\n" + request.body;
}

/// Method, target and key become lines of text: nothing in them may end one.
bool is_one_line(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) return false;
  }
  return true;
}

void set_patience(int socket, std::chrono::seconds patience) {
  timeval time{};
  time.tv_sec = patience.count();
  (void)::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);  // waits longer then
  (void)::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

/// Refuses a stranger who listens where gflowd was looked for: a request carries the environment of
/// its sender.
Result<void> check_server(int socket, const std::string& socket_path) {
  const os::Peer server = GF_TRY(os::peer_of(socket));
  if (server.uid == 0 || server.uid == ::geteuid()) return {};
  return fail(Code::Permission,
              fmt::format("{} at {} is neither root nor you, so nothing is sent there: unset "
                          "GFLOW_SOCKET, or see who made that socket",
                          printable(os::account_of(server.uid).name),
                          printable(socket_path)));
}

/// Sends what the server takes. One that refuses a request early stops reading, so that a broken
/// pipe is no error yet: its answer may be there.
void send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

/// Takes the bytes of one answer as they come.
class Answer {
 public:
  Answer() {
    parser_.eager(true);
    parser_.body_limit(kMaxAnswer);
  }
  /// Errors: Failure for bytes that are no HTTP.
  Result<void> take(std::string_view bytes) {
    waiting_ += bytes;
    while (!waiting_.empty() && !parser_.is_done()) {
      boost::system::error_code error;
      const std::size_t used =
          parser_.put(boost::asio::buffer(waiting_.data(), waiting_.size()), error);
      waiting_.erase(0, used);
      if (error == http::error::need_more) return {};
      if (error) return fail(Code::Failure, "gflowd's answer is not HTTP: " + error.message());
    }
    return {};
  }
  /// The server hung up: the end of an answer without length.
  void end() {
    boost::system::error_code error;
    if (parser_.got_some()) parser_.put_eof(error);
  }
  [[nodiscard]] bool is_whole() const { return parser_.is_done(); }
  [[nodiscard]] HttpResponse release() {
    auto message = parser_.release();
    return {static_cast<int>(message.result_int()), std::move(message.body())};
  }

 private:
  http::response_parser<http::string_body> parser_;
  std::string waiting_;
};

Result<HttpResponse> receive(int socket,
                             const std::string& socket_path,
                             std::chrono::seconds patience) {
  Answer answer;
  std::array<char, 64 * 1024> buffer{};
  while (!answer.is_whole()) {
    const ssize_t got = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return fail(Code::Timeout,
                  fmt::format("gflowd at {} did not answer within {}",
                              printable(socket_path),
                              duration_text(patience)));
    }
    if (got <= 0) {
      answer.end();
      if (!answer.is_whole()) return went_away(socket_path);
      break;
    }
    GF_CHECK(answer.take(std::string_view(buffer.data(), static_cast<std::size_t>(got))));
  }
  return answer.release();
}

}  // namespace

Result<HttpResponse> exchange(const std::string& socket_path,
                              const HttpRequest& request,
                              std::chrono::seconds patience) {
  if (!is_one_line(request.method) || !is_one_line(request.target) ||
      !is_one_line(request.idempotency_key)) {
    return fail(Code::Usage,
                fmt::format("'{} {}' is not an HTTP request",
                            printable(request.method),
                            printable(request.target)));
  }
  auto socket = os::connect_unix(socket_path);
  if (!socket && socket.error().code == Code::Unreachable) return nobody_answers(socket_path);
  if (!socket) return std::unexpected(std::move(socket).error());
  GF_CHECK(check_server(socket->get(), socket_path));
  set_patience(socket->get(), patience);
  send_all(socket->get(), text_of(request));
  return receive(socket->get(), socket_path, patience);
}

}  // namespace gflow::client

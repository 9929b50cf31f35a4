// SPDX-License-Identifier: Apache-2.0
#include "client/http_exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <chrono>
#include <limits>
#include <optional>
#include <span>

#include "base/memory.h"
#include "base/text.h"
#include "base/time.h"
#include "base/translate.h"
#include "client/cluster.h"
#include "client/tunnel.h"
#include "os/http_parser.h"
#include "os/lock_holder.h"
#include "os/paths.h"
#include "os/unix_socket.h"
#include "os/user.h"

namespace gflow::client {
namespace {

namespace http = boost::beast::http;

constexpr std::uint64_t kMaxAnswer = std::uint64_t{256} << 20;
constexpr std::size_t kMostUnread = std::size_t{1} << 20;  // of what is no body

std::unexpected<Error> nobody_answers(const std::string& socket_path) {
  if (!os::own_home() && socket_path == os::user_paths().socket) {
    return fail(Code::Unreachable,
                tr_format("gflowd does not answer at {}: set HOME, as this machine knows no home "
                          "directory of uid {}",
                          printable(socket_path),
                          ::getuid()));
  }
  const char* start =
      socket_path == os::system_paths().socket ? "sudo gflowd up --system" : "gflowd up";
  return fail(
      Code::Unreachable,
      tr_format("gflowd does not answer at {}: start it with '{}'", printable(socket_path), start));
}

std::unexpected<Error> went_away(const std::string& socket_path) {
  if (is_cluster(socket_path)) {
    return fail(Code::Unreachable,
                tr_format("what answers for {} ended before it had answered; try again",
                          printable(socket_path)));
  }
  return fail(
      Code::Unreachable,
      tr_format("gflowd at {} closed the connection before it answered: see 'gflowd status'",
                printable(socket_path)));
}

std::string text_of(const HttpRequest& request, std::string_view host, std::string_view token) {
  std::string text = fmt::format(
      "{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", request.method, request.target, host);
  if (!token.empty()) text += fmt::format("Authorization: Bearer {}\r\n", token);
  if (!request.language.empty()) {
    text += fmt::format("Accept-Language: {}\r\n", request.language);
  }
  if (!request.idempotency_key.empty()) {
    text += fmt::format("Idempotency-Key: {}\r\n", request.idempotency_key);
  }
  if (!request.range.empty()) text += fmt::format("Range: {}\r\n", request.range);
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

/// Refuses a stranger who listens where gflowd was looked for: a request carries the environment of
/// its sender.
Result<void> check_server(const os::Peer& server, const std::string& socket_path) {
  if (server.uid == 0 || server.uid == ::geteuid()) return {};
  return fail(Code::Permission,
              tr_format("{} listens at {} and is neither root nor you, so nothing is sent there: "
                        "unset GFLOW_SOCKET, or check who created that socket",
                        printable(os::account_of(server.uid).name),
                        printable(socket_path)));
}

/// Finds out who drips: each byte is heard, and there is no end to them.
class Pace {
 public:
  explicit Pace(const Silence& silence) : silence_(silence) {}

  /// So much more has moved; whether that is too little for the time it took.
  [[nodiscard]] bool is_too_slow(std::size_t bytes) {
    bytes_ += bytes;
    const auto now = std::chrono::steady_clock::now();
    if (silence_.is_followed || now - since_ < silence_.most) return false;
    if (bytes_ < kLeastBytes) return true;
    since_ = now;
    bytes_ = 0;
    return false;
  }
  [[nodiscard]] bool is_head_late() const {
    return std::chrono::steady_clock::now() - begun_ >= silence_.head;
  }

 private:
  const Silence& silence_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point since_ = begun_;
  std::size_t bytes_ = 0;
};

std::unexpected<Error> too_slow(const std::string& server, std::chrono::seconds most) {
  return fail(Code::Timeout,
              tr_format("gflowd at {} is too slow: not even {} within {}",
                        printable(server),
                        memory_text(Memory{static_cast<std::int64_t>(kLeastBytes)}),
                        duration_text(most)));
}

std::unexpected<Error> head_late(const std::string& server, std::chrono::seconds most) {
  return fail(Code::Timeout,
              tr_format("gflowd at {} begins an answer and does not come to its body within {}",
                        printable(server),
                        duration_text(most)));
}

}  // namespace

/// A connection, and who is told when its other end is silent for long.
class Connection {
 public:
  /// `server`: by what it is called, its socket or URL.
  Connection(int socket,
             std::string server,
             std::function<std::string()> silent,
             const Silence& silence)
      : socket_(socket),
        server_(std::move(server)),
        silent_(std::move(silent)),
        silence_(silence) {}

  /// Waits until poll(2) says `events`, or that the connection is over. Errors: Timeout.
  Result<void> wait(short events) {
    auto left = silence_.most;
    if (!told_ && silence_.usual < left) {
      if (ready(events, silence_.usual)) return {};
      told_ = true;
      if (silence_.tell) silence_.tell(silent_());
      left -= silence_.usual;
    }
    if (ready(events, left)) return {};
    return fail(Code::Timeout,
                tr_format("{}; no data within {}", silent_(), duration_text(silence_.most)));
  }
  /// Sends what the server takes. One that refuses a request early stops reading, so that a broken
  /// pipe is no error yet: its answer may be there.
  Result<void> send_all(std::string_view text) {
    Pace pace(silence_);
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) {
        const auto taken = static_cast<std::size_t>(sent);
        text.remove_prefix(taken);
        if (pace.is_too_slow(taken)) return too_slow(server_, silence_.most);
      } else if (errno == EAGAIN) {
        GF_CHECK(wait(POLLOUT));
      } else if (errno != EINTR) {
        return {};
      }
    }
    return {};
  }
  /// What came, 0 at the end, or negative with errno.
  Result<ssize_t> receive(std::span<char> buffer) {
    while (true) {
      GF_CHECK(wait(POLLIN));
      const ssize_t got = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got >= 0 || (errno != EINTR && errno != EAGAIN)) return got;
    }
  }
  [[nodiscard]] const std::string& server() const { return server_; }
  [[nodiscard]] const Silence& silence() const { return silence_; }

 private:
  bool ready(short events, std::chrono::milliseconds most) {
    const auto until = std::chrono::steady_clock::now() + most;
    while (true) {
      pollfd wanted{socket_, events, 0};
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      const int got = ::poll(&wanted, 1, std::max(0, static_cast<int>(left.count())));
      if (got == 0) return false;
      if (got > 0 || errno != EINTR) return true;  // an error shows in what is done next
    }
  }

  int socket_;
  std::string server_;
  std::function<std::string()> silent_;  ///< says whose silence it is
  const Silence& silence_;
  bool told_ = false;
};

namespace {

/// One that listens and lets nobody in is silent, too.
Result<os::Fd> connect(const std::string& socket_path, const Silence& silence) {
  auto socket = os::connect_unix(socket_path, silence.usual);
  if (!socket && socket.error().code == Code::Timeout) {
    const std::string said =
        tr_format("gflowd at {} accepts no connections", printable(socket_path));
    if (silence.tell) silence.tell(said);
    socket = os::connect_unix(socket_path, silence.most);
    if (!socket && socket.error().code == Code::Timeout) return fail(Code::Timeout, said);
  }
  if (!socket && socket.error().code == Code::Unreachable) return nobody_answers(socket_path);
  return socket;
}

/// "</api/v1/jobs?after=7>; rel=\"next\"" (RFC 8288): what is in angle brackets.
std::string next_page(std::string_view link) {
  const std::size_t end = link.find('>');
  const bool is_target = link.starts_with("</") && end != std::string_view::npos;
  if (!is_target || trim(link.substr(end + 1)) != "; rel=\"next\"") return {};
  return std::string(link.substr(1, end - 1));
}

/// Takes the bytes of one answer as they come.
class Answer {
 public:
  /// `take` may be empty: the body is kept.
  explicit Answer(const std::function<bool(std::string_view)>& take) : take_(take) {
    parser_.eager(true);
    parser_.body_limit(take ? std::numeric_limits<std::uint64_t>::max() : kMaxAnswer);
  }
  /// Errors: Failure for bytes that are no HTTP.
  Result<void> take(std::string_view bytes) {
    waiting_ += bytes;
    while (!waiting_.empty() && !parser_.is_done()) {
      boost::system::error_code error;
      const std::size_t used =
          parser_.put(boost::asio::buffer(waiting_.data(), waiting_.size()), error);
      waiting_.erase(0, used);
      const bool is_too_long = waiting_.size() > kMostUnread;
      if (error == http::error::need_more && is_too_long) error = http::error::header_limit;
      if (error == http::error::need_more) break;
      if (error)
        return fail(Code::Failure, tr_format("gflowd's answer is not HTTP: {}", error.message()));
    }
    hand_on();
    return {};
  }
  /// The server hung up: the end of an answer without length.
  void end() {
    boost::system::error_code error;
    if (parser_.got_some()) parser_.put_eof(error);
  }
  [[nodiscard]] bool has_head() const { return parser_.is_header_done(); }
  [[nodiscard]] bool is_whole() const { return parser_.is_done(); }
  /// Whoever is given the body wants no more of it.
  [[nodiscard]] bool is_enough() const { return enough_; }
  [[nodiscard]] HttpResponse release() {
    auto message = parser_.release();
    return {static_cast<int>(message.result_int()),
            std::move(message.body()),
            std::string(message[http::field::content_range]),
            next_page(message[http::field::link])};
  }

 private:
  void hand_on() {
    if (!take_ || !parser_.is_header_done() || parser_.get().result() != http::status::ok) return;
    std::string& body = parser_.get().body();
    if (!body.empty() && !enough_) enough_ = !take_(body);
    body.clear();
  }

  const std::function<bool(std::string_view)>& take_;
  bool enough_ = false;
  os::HttpParser<false> parser_;
  std::string waiting_;
};

Result<HttpResponse> receive(Connection& connection, const HttpRequest& request) {
  Answer answer(request.take);
  const Silence& silence = connection.silence();
  const Pace head(silence);
  std::optional<Pace> body;            // once there is one
  std::array<char, 64 * 1024> buffer;  // what is not received is not touched
  while (!answer.is_whole() && !answer.is_enough()) {
    const ssize_t got = GF_TRY(connection.receive(buffer));
    if (got <= 0) {
      answer.end();
      if (!answer.is_whole()) return went_away(connection.server());
      break;
    }
    const auto size = static_cast<std::size_t>(got);
    GF_CHECK(answer.take(std::string_view(buffer.data(), size)));
    if (answer.is_whole()) break;
    if (!answer.has_head()) {
      if (head.is_head_late()) return head_late(connection.server(), silence.head);
      continue;
    }
    if (!body) body.emplace(silence);
    if (body->is_too_slow(size)) return too_slow(connection.server(), silence.most);
  }
  return answer.release();
}

}  // namespace

/// What is asked, and by whom it is answered: as long as the connection.
struct PendingAnswer::State {
  HttpRequest request;
  Silence silence;
  os::Fd socket = {};
  os::Peer server = {};
  Remote remote = {};
  Tunnel tunnel = {};  ///< to a remote, in place of the socket
  std::optional<Connection> connection = {};

  Result<void> connect_to(const std::string& socket_path) {
    socket = GF_TRY(connect(socket_path, silence));
    server = GF_TRY(os::peer_of(socket.get()));
    GF_CHECK(check_server(server, socket_path));
    const auto silent = [this] { return os::silence_text(server.pid); };
    connection.emplace(socket.get(), socket_path, silent, silence);
    return connection->send_all(text_of(request, "gflow", ""));
  }
  /// With a gflowd of another machine, if it is the one that was added.
  Result<void> connect_to_remote(const std::string& name) {
    remote = GF_TRY(find_remote(name));
    tunnel = GF_TRY(open_tunnel(remote));
    GF_CHECK(check_pin(remote, tunnel));
    const auto silent = [this] { return tr_format("gflowd at {} does not answer", remote.url()); };
    connection.emplace(tunnel.child.channel.get(), remote.url(), silent, silence);
    return connection->send_all(text_of(request, remote.authority(), remote.token));
  }
  Result<void> connect_to(Cluster& cluster) {
    socket = GF_TRY(cluster.connect(silence));
    const auto silent = [program = cluster.program()] {
      return tr_format("{} does not answer", program);
    };
    connection.emplace(socket.get(), cluster.server(), silent, silence);
    return connection->send_all(text_of(request, "gflow", ""));
  }
};

PendingAnswer::PendingAnswer(std::unique_ptr<State> state) : state_(std::move(state)) {}
PendingAnswer::~PendingAnswer() = default;
PendingAnswer::PendingAnswer(PendingAnswer&&) noexcept = default;
PendingAnswer& PendingAnswer::operator=(PendingAnswer&&) noexcept = default;

Result<HttpResponse> PendingAnswer::receive() {
  return client::receive(*state_->connection, state_->request);
}

Result<std::unique_ptr<PendingAnswer::State>> PendingAnswer::begin(HttpRequest request,
                                                                   Silence silence) {
  if (!is_one_line(request.method) || !is_one_line(request.target) ||
      !is_one_line(request.idempotency_key) || !is_one_line(request.language) ||
      !is_one_line(request.range)) {
    return fail(Code::Usage,
                tr_format("'{} {}' is not an HTTP request",
                          printable(request.method),
                          printable(request.target)));
  }
  return std::make_unique<State>(
      State{.request = std::move(request), .silence = std::move(silence)});
}

Result<PendingAnswer> ask(Cluster& cluster, HttpRequest request, Silence silence) {
  auto state = GF_TRY(PendingAnswer::begin(std::move(request), std::move(silence)));
  GF_CHECK(state->connect_to(cluster));
  return PendingAnswer(std::move(state));
}

Result<PendingAnswer> ask(const std::string& socket_path, HttpRequest request, Silence silence) {
  auto state = GF_TRY(PendingAnswer::begin(std::move(request), std::move(silence)));
  GF_CHECK(is_remote(socket_path) ? state->connect_to_remote(socket_path)
                                  : state->connect_to(socket_path));
  return PendingAnswer(std::move(state));
}

Result<HttpResponse> exchange(const std::string& socket_path,
                              HttpRequest request,
                              Silence silence) {
  PendingAnswer answer = GF_TRY(ask(socket_path, std::move(request), std::move(silence)));
  return answer.receive();
}

}  // namespace gflow::client

// SPDX-License-Identifier: Apache-2.0
#include "kube/api.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "os/http_parser.h"

namespace gflow::kube {
namespace {

namespace http = boost::beast::http;
using std::chrono::steady_clock;

constexpr std::uint64_t kMostBody = std::uint64_t{1} << 30;
constexpr std::size_t kMostLine = std::size_t{16} << 20;

/// Takes the bytes of one answer as they come.
class Reader {
 public:
  explicit Reader(bool is_followed) {
    parser_.eager(true);
    parser_.body_limit(is_followed ? std::numeric_limits<std::uint64_t>::max() : kMostBody);
  }

  Result<void> take(std::string_view bytes) {
    waiting_ += bytes;
    std::size_t used = 0;
    boost::system::error_code error;
    while (used < waiting_.size() && !parser_.is_done()) {
      const auto rest = boost::asio::buffer(waiting_.data() + used, waiting_.size() - used);
      const std::size_t read = parser_.put(rest, error);
      used += read;
      if (error == http::error::need_more) break;
      if (error) {
        return fail(Code::Unreachable,
                    fmt::format("the API server's answer is no HTTP: {}", error.message()));
      }
    }
    waiting_.erase(0, used);
    return {};
  }
  void end() {
    boost::system::error_code error;
    if (parser_.got_some()) parser_.put_eof(error);
  }
  [[nodiscard]] bool got_some() const { return parser_.got_some(); }
  [[nodiscard]] bool is_whole() const { return parser_.is_done(); }
  [[nodiscard]] bool is_ok() const {
    return parser_.is_header_done() && parser_.get().result_int() == 200;
  }
  [[nodiscard]] bool keeps_open() const { return parser_.get().keep_alive(); }
  [[nodiscard]] std::string take_body() { return std::exchange(parser_.get().body(), {}); }
  [[nodiscard]] Answer release() {
    auto message = parser_.release();
    Answer answer{static_cast<int>(message.result_int()), std::move(message.body()), {}};
    if (const auto after = parse_number(message[http::field::retry_after])) {
      answer.retry_after = std::chrono::seconds(*after);
    }
    return answer;
  }

 private:
  os::HttpParser<false> parser_;
  std::string waiting_;
};

/// `message` of a Status.
std::string said_in(const Answer& answer) {
  const auto document = nlohmann::json::parse(answer.body, nullptr, false);
  if (document.is_object() && document.contains("message") && document["message"].is_string()) {
    return document["message"].get<std::string>();
  }
  return answer.body.substr(0, 200);
}

Code code_of(int status) {
  switch (status) {
    case 400:
    case 422:
      return Code::Usage;
    case 401:
    case 403:
      return Code::Permission;
    case 404:
      return Code::NotFound;
    case 409:
      return Code::WrongState;
    case 410:
    case 429:
      return Code::Exhausted;
    default:
      return status >= 500 ? Code::Unreachable : Code::Failure;
  }
}

std::string_view way_out(int status, std::string_view said, std::string_view rights) {
  if (said.contains("exceeded quota")) return "";
  if (status == 401) return "; the API server does not know who asks: see the token or certificate";
  return status == 403 ? rights : "";
}

}  // namespace

Error error_of(const Answer& answer, std::string_view doing, std::string_view rights) {
  return {code_of(answer.status),
          fmt::format("{}: {} ({}){}",
                      doing,
                      printable(said_in(answer)),
                      answer.status,
                      way_out(answer.status, said_in(answer), rights))};
}

void Api::hang_up() {
  socket_ = -1;
  connection_.reset();
}

/// What was sent and not answered is not to arrive any more: else the kernel sends it for a minute
/// after the end of a connection, again and again.
void Api::abandon() {
  constexpr linger kAtOnce{1, 0};
  if (const int socket = socket_; socket >= 0) {
    (void)::setsockopt(socket, SOL_SOCKET, SO_LINGER, &kAtOnce, sizeof(kAtOnce));
  }
  hang_up();
}

void Api::cancel() {
  is_cancelled_ = true;
  if (const int socket = socket_; socket >= 0) (void)::shutdown(socket, SHUT_RDWR);
}

Result<void> Api::connect(Deadline deadline) {
  Identity identity = GF_TRY(credentials_.identity());
  const bool is_same =
      identity_ && identity_->certificate == identity.certificate && identity_->key == identity.key;
  if (!is_same) {
    hang_up();
    trust_ = GF_TRY(Trust::of(access_, identity));
  }
  identity_ = std::move(identity);
  if (connection_ && !connection_->is_idle()) hang_up();
  if (!connection_) {
    connection_ = GF_TRY(Connection::open(access_, *trust_, deadline));
    socket_ = connection_->socket();
  }
  if (is_cancelled_) return fail(Code::Unreachable, "gflow-kube is ending");
  return {};
}

Result<void> Api::send(const Request& request, Deadline deadline) {
  GF_CHECK(connect(deadline));
  // What tells who asks may have taken longer: what is sent late may be no longer this one's to do.
  if (steady_clock::now() >= deadline) {
    return fail(Code::Timeout, "there was no time left to ask the API server");
  }
  std::string text = fmt::format(
      "{} {}{} HTTP/1.1\r\nHost: {}:{}\r\nAccept: application/json\r\nUser-Agent: "
      "gflow-kube/{}\r\n",
      request.method,
      access_.path,
      request.path,
      access_.host,
      access_.port,
      kVersion);
  if (!identity_->token.empty()) {
    text += fmt::format("Authorization: Bearer {}\r\n", identity_->token);
  }
  if (request.method != "GET") {
    text += fmt::format(
        "Content-Type: {}\r\nContent-Length: {}\r\n", request.content_type, request.body.size());
  }
  return connection_->send(text + "\r\n" + request.body, deadline);
}

Result<Answer> Api::exchange(const Request& request, Deadline deadline, bool& reached) {
  GF_CHECK(send(request, deadline));
  Reader reader(false);
  std::array<char, 64 * 1024> buffer;  // NOLINT: filled by receive()
  while (!reader.is_whole()) {
    const std::size_t got = GF_TRY(connection_->receive(buffer, deadline));
    if (got == 0) {
      reader.end();
      if (reader.is_whole()) break;
      return fail(Code::Unreachable,
                  fmt::format("the API server {} closed the connection", access_.url()));
    }
    reached = true;
    GF_CHECK(reader.take({buffer.data(), got}));
  }
  if (!reader.keeps_open()) hang_up();
  return reader.release();
}

Result<Answer> Api::ask(const Request& request) {
  const bool was_kept = connection_.has_value();
  const Deadline deadline = steady_clock::now() + request.limit;
  bool reached = false;
  auto answer = exchange(request, deadline, reached);
  if (!answer) abandon();
  // A connection that was kept may have been closed just when it was used again.
  const bool again = !answer && answer.error().code == Code::Unreachable && was_kept && !reached;
  if (answer && answer->status == 401) {
    credentials_.refused();
  } else if (!again || is_cancelled_) {
    return answer;
  }
  answer = exchange(request, deadline, reached);
  if (!answer) abandon();
  if (answer) answer->is_repeated = again;
  return answer;
}

Result<Answer> Api::follow(const Request& request,
                           std::chrono::seconds silence,
                           const std::function<bool(std::string_view)>& take,
                           const std::function<void()>& begun) {
  std::string lines;
  bool is_too_long = false;
  auto answer = stream(
      request,
      silence,
      [&](std::string_view bytes) {
        lines += bytes;
        std::size_t begin = 0;
        for (std::size_t end = lines.find('\n'); end != std::string::npos;
             end = lines.find('\n', begin)) {
          if (!take(std::string_view(lines).substr(begin, end - begin))) return false;
          begin = end + 1;
        }
        lines.erase(0, begin);
        is_too_long = lines.size() > kMostLine;
        return !is_too_long;
      },
      begun);
  if (is_too_long) return fail(Code::Exhausted, "an object of over 16M is watched");
  return answer;
}

Result<Answer> Api::stream(const Request& request,
                           std::chrono::seconds silence,
                           const std::function<bool(std::string_view)>& take,
                           const std::function<void()>& begun) {
  hang_up();  // what a watch is broken off in is not used again
  auto sent = send(request, steady_clock::now() + request.limit);
  if (!sent) return std::unexpected(sent.error());
  Reader reader(true);
  bool has_begun = false;
  std::array<char, 64 * 1024> buffer;  // NOLINT: filled by receive()
  while (!reader.is_whole()) {
    const auto got = connection_->receive(buffer, steady_clock::now() + silence);
    if (!got) hang_up();
    if (!got) return std::unexpected(got.error());
    if (*got == 0) break;
    GF_CHECK(reader.take({buffer.data(), *got}));
    if (!reader.is_ok()) continue;
    if (!std::exchange(has_begun, true) && begun) begun();
    const std::string bytes = reader.take_body();
    if (bytes.empty() || take(bytes)) continue;
    hang_up();
    return Answer{200, {}, {}};
  }
  reader.end();
  hang_up();
  if (!reader.is_whole()) {
    return fail(Code::Unreachable, fmt::format("the API server {} hung up", access_.url()));
  }
  Answer answer = reader.release();
  if (answer.status == 401) credentials_.refused();
  return answer;
}

}  // namespace gflow::kube

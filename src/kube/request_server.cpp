// SPDX-License-Identifier: Apache-2.0
#include "kube/request_server.h"

#include <sys/socket.h>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace gflow::kube {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

/// API servers and kube-schedulers keep connections for their next request.
constexpr std::chrono::seconds kIdle{120};

}  // namespace

/// One connection. What is under way of it owns it.
class RequestServer::Session : public std::enable_shared_from_this<Session> {
 public:
  using Protocol = asio::generic::stream_protocol;
  using Executor = asio::io_context::executor_type;
  using Socket = asio::basic_stream_socket<Protocol, Executor>;

  Session(std::shared_ptr<Common> common, Socket socket)
      : common_(std::move(common)), stream_(std::move(socket)) {
    ++common_->sessions;
  }
  ~Session() {
    common_->held -= held_;
    --common_->sessions;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void await_request() {
    hold(0);
    parser_.emplace();
    parser_->body_limit(common_->limits.body);
    stream_.expires_after(kIdle);
    read_some();
  }

 private:
  void read_some() {
    http::async_read_some(
        stream_,
        buffer_,
        *parser_,
        [self = shared_from_this()](const error_code& error, std::size_t /*bytes*/) {
          if (error == http::error::body_limit) {
            return self->say({413, "that is more than is read at once\n"}, false);
          }
          if (error) return;  // it is done, or what it says is no request
          self->hold(self->parser_->get().body().size());
          if (self->common_->held > self->common_->limits.bodies) return;
          if (!self->parser_->is_done()) return self->read_some();
          self->answer();
        });
  }

  void answer() {
    const bool goes_on = parser_->get().keep_alive();
    const auto method = parser_->get().method();
    if (method != http::verb::get && method != http::verb::post) {
      return say({405, "GET and POST are what is answered\n"}, goes_on);
    }
    Asked asked{.is_post = method == http::verb::post, .path = {}, .body = {}};
    const std::string_view target(parser_->get().target().data(), parser_->get().target().size());
    asked.path = target.substr(0, target.find('?'));
    asked.body = std::move(parser_->get().body());
    common_->handler(asked, [self = shared_from_this(), goes_on](Page page) {
      self->say(std::move(page), goes_on);
    });
  }

  void say(Page page, bool goes_on) {
    const auto said = std::make_shared<http::response<http::string_body>>(
        http::int_to_status(static_cast<unsigned>(page.status)), 11, std::move(page.text));
    said->set(http::field::content_type, page.type);
    said->keep_alive(goes_on);
    said->prepare_payload();
    stream_.expires_after(kIdle);
    http::async_write(
        stream_,
        *said,
        [self = shared_from_this(), said, goes_on](const error_code& error, std::size_t /*bytes*/) {
          if (!error && goes_on) self->await_request();
        });
  }

  void hold(std::size_t bytes) {
    common_->held += bytes - held_;
    held_ = bytes;
  }

  std::shared_ptr<Common> common_;
  beast::basic_stream<Protocol, Executor> stream_;
  beast::flat_buffer buffer_{std::size_t{64} << 10};
  std::optional<http::request_parser<http::string_body>> parser_;
  std::size_t held_ = 0;
};

RequestServer::RequestServer(asio::io_context& io, Limits limits, Handler handler)
    : io_(io), common_(std::make_shared<Common>(limits, std::move(handler))) {}

void RequestServer::welcome(os::Fd connection) {
  if (common_->sessions >= common_->limits.connections) return;
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);  // NOLINT: what the call takes
  if (::getsockname(connection.get(), any, &size) != 0) return;
  Session::Socket socket(io_);
  error_code error;
  socket.assign(Session::Protocol(address.ss_family, 0), connection.get(), error);
  if (error) return;
  (void)connection.release();
  std::make_shared<Session>(common_, std::move(socket))->await_request();
}

}  // namespace gflow::kube

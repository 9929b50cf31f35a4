// SPDX-License-Identifier: Apache-2.0
#include "kube/webhook_server.h"

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
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

#include "kube/status_pages.h"

namespace gflow::kube {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

/// An API server takes requests of 3 MiB, and sends of one what it took.
constexpr std::size_t kMostOfOne = std::size_t{8} << 20;
constexpr std::size_t kMostOfAll = std::size_t{128} << 20;
/// API servers keep connections for their next request.
constexpr std::chrono::seconds kIdle{120};

Page answer_to(const http::request<http::string_body>& asked,
               const AdmissionRules& rules,
               const Health& health) {
  const std::string_view target(asked.target().data(), asked.target().size());
  const std::string_view path = target.substr(0, target.find('?'));
  const bool is_read = asked.method() == http::verb::get;
  if (is_read && path == "/healthz") return verdict("");
  if (is_read && path == "/readyz") return verdict(health.unready());
  if (path != "/pods") return {404, "there is no such page\n"};
  if (asked.method() != http::verb::post) return {405, "an AdmissionReview is sent with POST\n"};
  auto reviewed = review(rules, asked.body());
  if (!reviewed) return {400, reviewed.error().message + "\n"};
  return {200, *std::move(reviewed), "application/json"};
}

}  // namespace

/// One connection. What is under way of it owns it.
class WebhookServer::Session : public std::enable_shared_from_this<Session> {
 public:
  using Protocol = asio::local::stream_protocol;
  using Executor = asio::io_context::executor_type;
  using Socket = asio::basic_stream_socket<Protocol, Executor>;

  Session(std::shared_ptr<Common> common, Socket socket)
      : common_(std::move(common)), stream_(std::move(socket)) {}
  ~Session() { common_->held -= held_; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void await_request() {
    hold(0);
    parser_.emplace();
    parser_->body_limit(kMostOfOne);
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
          if (error) return;  // it is done, or what it says is no request
          self->hold(self->parser_->get().body().size());
          if (self->common_->held > kMostOfAll) return;
          if (!self->parser_->is_done()) return self->read_some();
          self->answer();
        });
  }

  void answer() {
    const auto& asked = parser_->get();
    const bool goes_on = asked.keep_alive();
    Page page = answer_to(asked, common_->rules, common_->health);
    const auto said = std::make_shared<http::response<http::string_body>>(
        http::int_to_status(static_cast<unsigned>(page.status)), 11, std::move(page.text));
    said->set(http::field::content_type, page.type);
    said->keep_alive(goes_on);
    said->prepare_payload();
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

WebhookServer::WebhookServer(asio::io_context& io, AdmissionRules rules, const Health& health)
    : io_(io), common_(std::make_shared<Common>(std::move(rules), health)) {}

void WebhookServer::welcome(os::Fd connection) {
  Session::Socket socket(io_);
  error_code error;
  socket.assign(Session::Protocol(), connection.get(), error);
  if (error) return;
  (void)connection.release();
  std::make_shared<Session>(common_, std::move(socket))->await_request();
}

}  // namespace gflow::kube

// SPDX-License-Identifier: Apache-2.0
#include "server/turned_away.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/status.hpp>
#include <chrono>
#include <string>
#include <utility>

#include "api/json.h"
#include "server/conventions.h"
#include "server/exchange.h"

namespace gflow::server {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

void tell(int socket, const Error& error) {
  const int status = error.code == Code::Exhausted ? 429 : api::http_status(error.code);
  Reply reply = problem(error, status);
  add_retry_after(reply);
  const std::string_view reason =
      http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)));
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                                 status,
                                 reason,
                                 reply.content_type,
                                 reply.body.size());
  for (const auto& [name, value] : reply.headers) text += fmt::format("{}: {}\r\n", name, value);
  text += "Connection: close\r\n\r\n" + reply.body;
  (void)::send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

void TurnedAway::add(Listener::Socket socket, const Error& why) {
  constexpr std::size_t kMost = 8;  // they are in nobody's share of open files
  constexpr std::chrono::seconds kPatience{1};
  tell(socket.native_handle(), why);
  error_code ignored;
  (void)socket.shutdown(Listener::Socket::shutdown_send, ignored);
  if (all_.size() >= kMost) return;
  const auto one = std::make_shared<One>(std::move(socket), boost::asio::steady_timer(io_));
  all_.insert(one);
  one->patience.expires_after(kPatience);
  one->patience.async_wait([one](const error_code& stopped) {
    error_code none;
    if (!stopped) (void)one->socket.close(none);
  });
  read(one);
}

void TurnedAway::read(const std::shared_ptr<One>& one) {
  one->socket.async_read_some(boost::asio::buffer(one->rest),
                              [this, one](const error_code& error, std::size_t /*size*/) {
                                if (!error) return read(one);
                                one->patience.cancel();
                                all_.erase(one);
                              });
}

void TurnedAway::close() {
  for (const auto& one : all_) {
    error_code none;
    (void)one->socket.close(none);
  }
}

}  // namespace gflow::server

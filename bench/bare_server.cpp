// SPDX-License-Identifier: Apache-2.0
// The floor of api_bench.py: Beast reading requests and writing one answer, and nothing else.
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(asio::ip::tcp::socket socket, const std::string& body)
      : stream_(std::move(socket)), body_(body) {}

  void read() {
    request_ = {};
    http::async_read(
        stream_, buffer_, request_, [self = shared_from_this()](const error_code& error, auto) {
          if (!error) self->write();
        });
  }

 private:
  void write() {
    response_ = http::response<http::string_body>(http::status::ok, request_.version());
    response_.set(http::field::content_type, "application/json");
    response_.keep_alive(request_.keep_alive());
    response_.body() = body_;
    response_.prepare_payload();
    http::async_write(
        stream_, response_, [self = shared_from_this()](const error_code& error, auto) {
          if (!error && self->request_.keep_alive()) self->read();
        });
  }

  beast::tcp_stream stream_;
  const std::string& body_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
};

void accept(asio::ip::tcp::acceptor& acceptor, const std::string& body) {
  acceptor.async_accept([&acceptor, &body](const error_code& error, asio::ip::tcp::socket socket) {
    if (!error) std::make_shared<Session>(std::move(socket), body)->read();
    accept(acceptor, body);
  });
}

}  // namespace

/// bare_server BYTES: prints the port it listens at, and answers each request with so many bytes.
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string body(std::strtoul(argv[1], nullptr, 10), 'x');
  asio::io_context io{1};
  asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  std::printf("%d\n", acceptor.local_endpoint().port());
  (void)std::fflush(stdout);
  accept(acceptor, body);
  io.run();
}

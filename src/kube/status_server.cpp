// SPDX-License-Identifier: Apache-2.0
#include "kube/status_server.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "os/fd.h"
#include "os/tcp.h"

namespace gflow::kube {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kMostConnections = 64;
constexpr std::size_t kMostRequest = 8192;
constexpr std::chrono::seconds kPatience{10};  // from the first byte to the last one

std::string head_of(const Page& page, std::string_view more) {
  const auto reason =
      http::obsolete_reason(http::int_to_status(static_cast<unsigned>(page.status)));
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Cache-Control: no-store\r\n"
      "Connection: close\r\n\r\n",
      page.status,
      std::string_view(reason.data(), reason.size()),
      page.type,
      page.text.size(),
      more);
}

std::string answer_to(const http::request<http::empty_body>& asked, const Pages& pages) {
  if (asked.method() != http::verb::get && asked.method() != http::verb::head) {
    const Page page{405, "GET and HEAD are what is answered\n"};
    return head_of(page, "Allow: GET, HEAD\r\n") + page.text;
  }
  const std::string_view target(asked.target().data(), asked.target().size());
  const auto found = pages.find(target.substr(0, target.find('?')));
  const Page page = found == pages.end() ? Page{404, "there is no such page\n"} : found->second();
  return head_of(page, "") + (asked.method() == http::verb::head ? "" : page.text);
}

/// What is said to what is no request; "" to who went, or took too long.
std::string refusal_of(const error_code& error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return head_of({431, ""}, "");
  }
  const bool is_malformed = error.category() == error_code(http::error::bad_method).category() &&
                            error != http::error::end_of_stream;
  return is_malformed ? head_of({400, ""}, "") : "";
}

}  // namespace

/// One connection: a request, its answer, the end. What is under way of it owns it.
class StatusServer::Talk : public std::enable_shared_from_this<Talk> {
 public:
  Talk(tcp::socket socket, const Pages& pages)
      : stream_(std::move(socket)), buffer_(kMostRequest), pages_(pages) {}

  void begin() {
    stream_.expires_after(kPatience);
    parser_.header_limit(static_cast<std::uint32_t>(kMostRequest));
    http::async_read_header(
        stream_,
        buffer_,
        parser_,
        [self = shared_from_this()](const error_code& error, std::size_t /*read*/) {
          self->answer(error);
        });
  }
  void end() { stream_.close(); }

 private:
  void answer(const error_code& error) {
    text_ = error ? refusal_of(error) : answer_to(parser_.get(), pages_);
    if (text_.empty()) return;
    asio::async_write(stream_,
                      asio::buffer(text_),
                      [self = shared_from_this()](const error_code& failed, std::size_t /*sent*/) {
                        if (!failed) self->hang_up();
                      });
  }

  /// What was sent and not read would have the kernel take back the answer, so it is read.
  void hang_up() {
    error_code ignored;  // it went
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    drop_rest();
  }

  void drop_rest() {
    stream_.async_read_some(
        asio::buffer(dropped_),
        [self = shared_from_this()](const error_code& error, std::size_t /*read*/) {
          if (!error) self->drop_rest();
        });
  }

  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  std::string text_;
  std::array<char, 1024> dropped_{};
  const Pages& pages_;
};

struct StatusServer::State {
  explicit State(Pages shown) : pages(std::move(shown)), acceptor(io), pause(io) {}

  void accept() {
    acceptor.async_accept([this](const error_code& error, tcp::socket socket) {
      if (error) return accept_later();
      welcome(std::move(socket));
      accept();
    });
  }

  /// Most likely it is out of descriptors: asking again at once would spin.
  void accept_later() {
    pause.expires_after(std::chrono::milliseconds(100));
    pause.async_wait([this](const error_code& /*never*/) { accept(); });
  }

  void welcome(tcp::socket socket) {
    std::erase_if(talks, [](const auto& talk) { return talk.expired(); });
    if (talks.size() >= kMostConnections) {
      if (const auto oldest = talks.front().lock()) oldest->end();
      talks.pop_front();
    }
    const auto talk = std::make_shared<Talk>(std::move(socket), pages);
    talks.push_back(talk);
    talk->begin();
  }

  const Pages pages;
  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  std::deque<std::weak_ptr<Talk>> talks;  ///< the oldest first
  std::jthread thread;
};

Result<std::unique_ptr<StatusServer>> StatusServer::listen(ListenAddress& address, Pages pages) {
  os::Fd socket = GF_TRY(os::listen_tcp(address));
  auto state = std::make_unique<State>(std::move(pages));
  error_code error;
  const tcp family = address.host.contains(':') ? tcp::v6() : tcp::v4();
  state->acceptor.assign(family, socket.get(), error);
  if (error) return fail(Code::Failure, "listen at " + to_text(address) + ": " + error.message());
  (void)socket.release();  // the acceptor's now
  return std::unique_ptr<StatusServer>(new StatusServer(std::move(state)));
}

StatusServer::StatusServer(std::unique_ptr<State> state) : state_(std::move(state)) {
  state_->accept();
  state_->thread = std::jthread([this] { state_->io.run(); });
}

StatusServer::~StatusServer() {
  state_->io.stop();
  state_->thread.join();
}

}  // namespace gflow::kube

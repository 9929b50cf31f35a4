// SPDX-License-Identifier: Apache-2.0
#include "kube/status_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
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
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "kube/host.h"
#include "os/fd.h"
#include "os/tcp.h"

namespace gflow::kube {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kMostRequest = 8192;

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

/// Those there are, by who they are with, as host_of() has it.
class StatusServer::Talks {
 public:
  using Ones = std::list<Talk*>;  ///< the oldest first

  [[nodiscard]] std::size_t size() const { return size_; }
  Ones::iterator add(const asio::ip::address& with, Talk& talk) {
    ++size_;
    Ones& ones = by_host_[with];
    return ones.insert(ones.end(), &talk);
  }
  void remove(const asio::ip::address& with, Ones::iterator at) {
    --size_;
    const auto ones = by_host_.find(with);
    ones->second.erase(at);
    if (ones->second.empty()) by_host_.erase(ones);
  }
  /// Of the host that has most; null where there is none.
  [[nodiscard]] Talk* oldest_of_most() const {
    const auto most =
        std::ranges::max_element(by_host_, {}, [](const auto& one) { return one.second.size(); });
    return most == by_host_.end() ? nullptr : most->second.front();
  }

 private:
  std::map<asio::ip::address, Ones> by_host_;
  std::size_t size_ = 0;
};

/// One connection: a request, its answer, the end. What is under way of it owns it.
class StatusServer::Talk : public std::enable_shared_from_this<Talk> {
 public:
  Talk(tcp::socket socket, const asio::ip::address& with, const Pages& pages, Talks& talks)
      : stream_(std::move(socket)),
        buffer_(kMostRequest),
        pages_(pages),
        with_(with),
        talks_(talks),
        at_(talks.add(with, *this)) {}
  ~Talk() { leave(); }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  void begin(std::chrono::milliseconds patience) {
    stream_.expires_after(patience);
    parser_.header_limit(static_cast<std::uint32_t>(kMostRequest));
    http::async_read_header(
        stream_,
        buffer_,
        parser_,
        [self = shared_from_this()](const error_code& error, std::size_t /*read*/) {
          self->answer(error);
        });
  }
  void end() {
    leave();
    stream_.close();
  }

 private:
  void leave() {
    if (at_) talks_.remove(with_, *at_);
    at_.reset();
  }

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
  const asio::ip::address with_;
  Talks& talks_;
  std::optional<Talks::Ones::iterator> at_;  ///< empty once it is over
};

struct StatusServer::State {
  State(Pages shown, StatusLimits allowed)
      : pages(std::move(shown)), limits(allowed), acceptor(io), pause(io) {}

  void accept() {
    acceptor.async_accept([this](const error_code& error, tcp::socket socket) {
      if (error) return accept_later();
      welcome(std::move(socket));
      accept();
    });
  }

  /// Most likely it is out of descriptors. Where no connection ends for it, others have them all,
  /// and asking again at once would spin.
  void accept_later() {
    if (end_one()) return accept();
    pause.expires_after(std::chrono::milliseconds(100));
    pause.async_wait([this](const error_code& /*never*/) { accept(); });
  }

  bool end_one() {
    Talk* const one = talks.oldest_of_most();
    if (one != nullptr) one->end();
    return one != nullptr;
  }

  void welcome(tcp::socket socket) {
    error_code error;
    const tcp::endpoint with = socket.remote_endpoint(error);
    if (error) return;  // it went
    if (talks.size() >= limits.connections) (void)end_one();
    std::make_shared<Talk>(std::move(socket), host_of(with.address()), pages, talks)
        ->begin(limits.patience);
  }

  const Pages pages;
  const StatusLimits limits;
  Talks talks;  ///< before what is under way, which ends with `io`
  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  std::jthread thread;
};

Result<std::unique_ptr<StatusServer>> StatusServer::listen(ListenAddress& address,
                                                           Pages pages,
                                                           StatusLimits limits) {
  os::Fd socket = GF_TRY(os::listen_tcp(address));
  auto state = std::make_unique<State>(std::move(pages), limits);
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

// SPDX-License-Identifier: Apache-2.0
#include "daemon/otlp_exporter.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "os/signals.h"

namespace gflow::daemon {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMostWaiting = 2048;  // as other exporters of OpenTelemetry have it
constexpr std::size_t kSpansAtOnce = 512;
constexpr auto kGather = 200ms;  ///< what comes in this time goes together
constexpr auto kSendingTime = 10s;
constexpr auto kAtTheEnd = 1s;
constexpr auto kSendingPause = 1s;
constexpr int kSendingTries = 3;

/// One request on a connection of its own; each step begins the next.
class SpanPost {
 public:
  SpanPost(asio::io_context& io, http::request<http::string_body> request)
      : stream_(io), resolver_(io), request_(std::move(request)) {}

  void begin(const std::string& host, const std::string& port, std::chrono::milliseconds most) {
    stream_.expires_after(most);
    resolver_.async_resolve(host, port, [this](error_code error, const auto& found) {
      if (error) return;
      stream_.async_connect(found, [this](error_code failed, const auto& /*endpoint*/) {
        if (!failed) write();
      });
    });
  }
  /// 0 if there was no answer.
  [[nodiscard]] unsigned status() const { return status_; }

 private:
  void write() {
    http::async_write(stream_, request_, [this](error_code error, std::size_t /*bytes*/) {
      if (error) return;
      http::async_read_header(stream_, buffer_, head_, [this](error_code failed, std::size_t) {
        if (!failed) status_ = head_.get().result_int();
      });
    });
  }

  beast::tcp_stream stream_;
  asio::ip::tcp::resolver resolver_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response_parser<http::empty_body> head_;  // what else it says is of no use
  unsigned status_ = 0;
};

using Clock = std::chrono::steady_clock;

enum class Taken { Yes, Never, NotNow };

Taken taken_by(unsigned status) {
  if (status >= 200 && status < 300) return Taken::Yes;
  const bool may_work_later =
      status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
  return may_work_later ? Taken::NotNow : Taken::Never;
}

}  // namespace

/// What the exporter and its thread share.
class OtlpExporter::Sender {
 public:
  Sender(const std::string& endpoint, api::SpanAttributes resource)
      : collector_(endpoint), resource_(std::move(resource)) {}

  void send(api::Span span);
  void stop();
  void finish();
  void serve();
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  struct Collector {
    std::string host;  ///< "[::1]" with its brackets
    std::string port = "4318";
    std::string path = "/v1/traces";

    explicit Collector(const std::string& endpoint) {
      const std::string rest = endpoint.substr(std::string_view("http://").size());
      const std::size_t slash = rest.find('/');
      host = rest.substr(0, slash);
      if (slash != std::string::npos && slash + 1 < rest.size()) path = rest.substr(slash);
      const std::size_t colon = host.rfind(':');
      if (colon != std::string::npos && !host.ends_with(']')) {
        port = host.substr(colon + 1);
        host.resize(colon);
      }
    }
    [[nodiscard]] std::string name() const {
      const bool is_bracketed = host.starts_with('[') && host.ends_with(']');
      return is_bracketed ? host.substr(1, host.size() - 2) : host;
    }
    [[nodiscard]] http::request<http::string_body> request_of(std::string body) const {
      constexpr int kHttp11 = 11;
      http::request<http::string_body> request(http::verb::post, path, kHttp11);
      request.set(http::field::host, host + ":" + port);
      request.set(http::field::content_type, "application/json");
      request.set(http::field::connection, "close");
      request.body() = std::move(body);
      request.prepare_payload();
      return request;
    }
  };

  void send_batch(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] Taken post(const std::string& body);
  [[nodiscard]] Clock::time_point end_of_try(Clock::time_point begun);

  const Collector collector_;
  const api::SpanAttributes resource_;
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  std::deque<api::Span> spans_;
  bool stop_ = false;
  bool ended_ = false;
  std::optional<Clock::time_point> end_by_;
  asio::io_context* trying_ = nullptr;
};

OtlpExporter::OtlpExporter(const std::string& endpoint, api::SpanAttributes resource)
    : sender_(std::make_shared<Sender>(endpoint, std::move(resource))) {
  const os::SignalsBlocked blocked;  // they are the loop's
  std::thread([sender = sender_] { sender->serve(); }).detach();
}

OtlpExporter::~OtlpExporter() { sender_->stop(); }

void OtlpExporter::send(api::Span span) { sender_->send(std::move(span)); }
std::uint64_t OtlpExporter::sent() const { return sender_->sent(); }
std::uint64_t OtlpExporter::dropped() const { return sender_->dropped(); }

void OtlpExporter::finish() { sender_->finish(); }

void OtlpExporter::Sender::send(api::Span span) {
  {
    const std::scoped_lock lock(mutex_);
    if (spans_.size() >= kMostWaiting) {
      ++dropped_;
      return;
    }
    spans_.push_back(std::move(span));
  }
  changed_.notify_all();
}

void OtlpExporter::Sender::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
}

void OtlpExporter::Sender::finish() {
  stop();
  std::unique_lock lock(mutex_);
  end_by_ = Clock::now() + kAtTheEnd;
  if (trying_ != nullptr) asio::post(*trying_, [] {});  // it looks how long it may go on
  changed_.wait_until(lock, *end_by_, [this] { return ended_; });
}

void OtlpExporter::Sender::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !spans_.empty(); });
    if (!stop_) {
      changed_.wait_for(lock, kGather, [this] { return stop_ || spans_.size() >= kSpansAtOnce; });
    }
    if (!spans_.empty()) send_batch(lock);
    if (stop_) break;
  }
  dropped_ += spans_.size();
  ended_ = true;
  changed_.notify_all();
}

/// Tries a batch again while the collector says that it may, with pauses that double.
void OtlpExporter::Sender::send_batch(std::unique_lock<std::mutex>& lock) {
  std::vector<api::Span> batch;
  while (!spans_.empty() && batch.size() < kSpansAtOnce) {
    batch.push_back(std::move(spans_.front()));
    spans_.pop_front();
  }
  std::chrono::milliseconds pause = kSendingPause;
  for (int tries = 1;; ++tries) {
    const bool is_last = stop_ || tries == kSendingTries;
    lock.unlock();
    const Taken taken = post(api::write_otlp(resource_, batch));
    lock.lock();
    if (taken == Taken::Yes) {
      sent_ += batch.size();
      return;
    }
    if (taken == Taken::Never || is_last) break;
    changed_.wait_for(lock, pause, [this] { return stop_; });
    pause *= 2;
  }
  dropped_ += batch.size();
}

Clock::time_point OtlpExporter::Sender::end_of_try(Clock::time_point begun) {
  const std::scoped_lock lock(mutex_);
  const auto usual = begun + kSendingTime;
  return std::min(usual, end_by_.value_or(usual));
}

Taken OtlpExporter::Sender::post(const std::string& body) {
  asio::io_context io(1);
  SpanPost asking(io, collector_.request_of(body));
  const auto tries = [&](asio::io_context* now) {
    const std::scoped_lock lock(mutex_);
    trying_ = now;
  };
  tries(&io);
  const auto begun = Clock::now();
  asking.begin(collector_.name(), collector_.port, kSendingTime);
  while (io.run_one_until(end_of_try(begun)) != 0) {
  }
  tries(nullptr);
  return taken_by(asking.status());
}

}  // namespace gflow::daemon

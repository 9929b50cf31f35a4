// SPDX-License-Identifier: Apache-2.0
#include "daemon/otlp_exporter.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <string_view>
#include <utility>

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
      http::async_read(stream_, buffer_, response_, [this](error_code failed, std::size_t) {
        if (!failed) status_ = response_.result_int();
      });
    });
  }

  beast::tcp_stream stream_;
  asio::ip::tcp::resolver resolver_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
  unsigned status_ = 0;
};

}  // namespace

OtlpExporter::OtlpExporter(const std::string& endpoint, api::SpanAttributes resource)
    : resource_(std::move(resource)) {
  const std::string rest = endpoint.substr(std::string_view("http://").size());
  const std::size_t slash = rest.find('/');
  host_ = rest.substr(0, slash);
  if (slash != std::string::npos && slash + 1 < rest.size()) path_ = rest.substr(slash);
  const std::size_t colon = host_.rfind(':');
  if (colon != std::string::npos && !host_.ends_with(']')) {
    port_ = host_.substr(colon + 1);
    host_.resize(colon);
  }
  const os::SignalsBlocked blocked;  // they are the loop's
  thread_ = std::thread([this] { serve(); });
}

OtlpExporter::~OtlpExporter() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void OtlpExporter::send(api::Span span) {
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

void OtlpExporter::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !spans_.empty(); });
    if (!stop_) {
      changed_.wait_for(lock, kGather, [this] { return stop_ || spans_.size() >= kSpansAtOnce; });
    }
    if (!spans_.empty()) send_batch(lock);
    if (stop_) {
      dropped_ += spans_.size();
      return;
    }
  }
}

/// Tries a batch again while the collector says that it may, with pauses that double.
void OtlpExporter::send_batch(std::unique_lock<std::mutex>& lock) {
  std::vector<api::Span> batch;
  while (!spans_.empty() && batch.size() < kSpansAtOnce) {
    batch.push_back(std::move(spans_.front()));
    spans_.pop_front();
  }
  std::chrono::milliseconds pause = kSendingPause;
  for (int tries = 1;; ++tries) {
    const bool is_last = stop_ || tries == kSendingTries;
    const std::chrono::milliseconds most = stop_ ? kAtTheEnd : kSendingTime;
    lock.unlock();
    const Taken taken = post(api::write_otlp(resource_, batch), most);
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

OtlpExporter::Taken OtlpExporter::post(const std::string& body,
                                       std::chrono::milliseconds most) const {
  constexpr int kHttp11 = 11;
  http::request<http::string_body> request(http::verb::post, path_, kHttp11);
  request.set(http::field::host, host_ + ":" + port_);
  request.set(http::field::content_type, "application/json");
  request.set(http::field::connection, "close");
  request.body() = body;
  request.prepare_payload();
  asio::io_context io(1);
  const bool is_bracketed = host_.starts_with('[') && host_.ends_with(']');
  SpanPost asking(io, std::move(request));
  asking.begin(is_bracketed ? host_.substr(1, host_.size() - 2) : host_, port_, most);
  io.run_for(most);
  const unsigned status = asking.status();
  if (status >= 200 && status < 300) return Taken::Yes;
  const bool may_work_later =
      status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
  return may_work_later ? Taken::NotNow : Taken::Never;
}

}  // namespace gflow::daemon

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/otlp.h"
#include "base/result.h"

namespace gflow::daemon {

/// Sends spans to an OpenTelemetry collector by OTLP/HTTP with JSON, on a thread of its own. What
/// the collector does not take in time is dropped and counted: nobody ever waits for it.
class OtlpExporter {
 public:
  /// `endpoint` is "http://host[:port][/path]"; without a path it is /v1/traces, without a port
  /// 4318.
  OtlpExporter(const std::string& endpoint, api::SpanAttributes resource);
  /// Sends what is left if that takes no more than a second.
  ~OtlpExporter();
  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

  void send(api::Span span);
  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  enum class Taken { Yes, Never, NotNow };
  void serve();
  void send_batch(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] Taken post(const std::string& body, std::chrono::milliseconds most) const;

  std::string host_;
  std::string port_ = "4318";
  std::string path_ = "/v1/traces";
  api::SpanAttributes resource_;
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<api::Span> spans_;  // guarded by mutex_, as stop_
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gflow::daemon

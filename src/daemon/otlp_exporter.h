// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "api/otlp.h"

namespace gflow::daemon {

/// Sends spans to an OpenTelemetry collector by OTLP/HTTP with JSON, on a thread of its own. What
/// the collector does not take in time is dropped and counted: nobody ever waits for it.
class OtlpExporter {
 public:
  /// `endpoint` is "http://host[:port][/path]"; without a path it is /v1/traces, without a port
  /// 4318.
  OtlpExporter(const std::string& endpoint, api::SpanAttributes resource);
  /// What is left is sent behind it: it waits for nothing.
  ~OtlpExporter();
  OtlpExporter(const OtlpExporter&) = delete;
  OtlpExporter& operator=(const OtlpExporter&) = delete;

  void send(api::Span span);
  /// Before the program ends: waits for what is left, for a second at most.
  void finish();
  [[nodiscard]] std::uint64_t sent() const;
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  class Sender;
  /// The thread's, too, which may outlive this: looking up a name cannot be cut short.
  std::shared_ptr<Sender> sender_;
};

}  // namespace gflow::daemon

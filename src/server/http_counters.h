// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "server/guest.h"

namespace gflow::server {

/// Why something was refused before it came to a route, or its answer was.
enum class Refusal {
  Connections,  ///< too many are open
  Permission,   ///< not one who may connect
  Malformed,    ///< no HTTP as it is taken here
  Timeout,      ///< it did not come in time
  Memory,       ///< bodies and answers of one user that are under way
  Stopping,     ///< gflowd is
};
inline constexpr std::array<std::string_view, 6> kRefusals = {
    "connections", "permission", "malformed", "timeout", "memory", "stopping"};
inline constexpr std::array<std::string_view, 3> kVias = {"socket", "tcp", "tls"};  ///< as Via

/// What connections do, counted as it happens. Written on their thread alone and read on any: each
/// number is right, and numbers that belong together may be one request apart.
class HttpCounters {
 public:
  using Count = std::atomic<std::uint64_t>;
  /// Statuses that are told apart; all else counts as the first of its hundred, or as 500.
  static constexpr std::array kStatuses = {200, 201, 202, 204, 206, 304, 400, 401, 403, 404,
                                           405, 406, 408, 409, 410, 412, 413, 415, 416, 421,
                                           422, 429, 431, 500, 501, 503, 504, 507};
  /// Upper bounds of what is told of how long it took, in seconds.
  static constexpr std::array kBounds = {0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0};
  struct Route {
    std::array<Count, kStatuses.size()> by_status{};
    std::array<Count, kBounds.size() + 1> by_time{};  ///< in this one alone; last: longer
    Count nanoseconds = 0;                            ///< of all of these
  };

  /// For so many routes, and one more for what is none.
  explicit HttpCounters(std::size_t routes) : routes_(routes + 1) {}

  /// An answer begins; `took` since the request was there, if it was.
  void answered(std::size_t route, int status, std::optional<std::chrono::nanoseconds> took);
  void refused(Refusal why) { add(refused_.at(static_cast<std::size_t>(why))); }
  void opened(Via via) { add(connections_.at(static_cast<std::size_t>(via))); }
  void closed(Via via) { take(connections_.at(static_cast<std::size_t>(via))); }
  void stream_began() { add(streams_); }
  void stream_ended() { take(streams_); }

  [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }
  [[nodiscard]] std::uint64_t refused_by(std::size_t why) const { return refused_.at(why); }
  [[nodiscard]] std::uint64_t connections(std::size_t via) const { return connections_.at(via); }
  [[nodiscard]] std::uint64_t streams() const { return streams_; }

 private:
  static void add(Count& count, std::uint64_t much = 1) {
    count.fetch_add(much, std::memory_order_relaxed);
  }
  static void take(Count& count) { count.fetch_sub(1, std::memory_order_relaxed); }

  std::vector<Route> routes_;
  std::array<Count, kRefusals.size()> refused_{};
  std::array<Count, kVias.size()> connections_{};
  Count streams_ = 0;
};

}  // namespace gflow::server

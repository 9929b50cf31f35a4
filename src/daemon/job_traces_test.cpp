// SPDX-License-Identifier: Apache-2.0
#include "daemon/job_traces.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "base/listen_address.h"
#include "base/text_fields.h"
#include "os/tcp.h"

namespace gflow::daemon {
namespace {

using namespace std::chrono_literals;

const WallTime kFirst{1'772'366'400'000ms};

struct Times {
  std::int64_t start;
  std::int64_t end;
  friend bool operator==(const Times&, const Times&) = default;
};

/// In milliseconds after kFirst.
Times times_of(const nlohmann::json& span) {
  const auto at = [&span](const char* key) {
    const auto nanoseconds = number_of<std::int64_t>(span.at(key).get<std::string>());
    return nanoseconds.value() / 1'000'000 - kFirst.time_since_epoch().count();
  };
  return {at("startTimeUnixNano"), at("endTimeUnixNano")};
}

/// Takes what it is sent.
class Collector {
 public:
  Collector() : listener_(os::listen_tcp(address_).value()) {}
  [[nodiscard]] std::string endpoint() const { return "http://" + to_text(address_); }

  /// The spans by name, once that of the job is there.
  std::multimap<std::string, Times> spans() const {
    std::multimap<std::string, Times> found;
    while (!found.contains("job ")) {
      const auto body = nlohmann::json::parse(take());
      for (const auto& span : body["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
        found.emplace(span["name"].get<std::string>(), times_of(span));
      }
    }
    return found;
  }

 private:
  /// The body of one request, which is answered.
  [[nodiscard]] std::string take() const {
    pollfd asked{listener_.get(), POLLIN, 0};
    while (::poll(&asked, 1, -1) != 1) {
    }
    const os::Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::string request;
    std::array<char, 4096> bytes{};
    for (std::size_t whole = 0; whole == 0 || request.size() < whole;) {
      const ssize_t got = ::recv(connection.get(), bytes.data(), bytes.size(), 0);
      if (got <= 0) return "";
      request.append(bytes.data(), static_cast<std::size_t>(got));
      whole = size_of(request);
    }
    const std::string_view answer =
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    (void)::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    return request.substr(request.find("\r\n\r\n") + 4);
  }

  /// Of a whole request; 0 while that is not known.
  static std::size_t size_of(const std::string& request) {
    constexpr std::string_view kField = "Content-Length: ";
    const std::size_t head = request.find("\r\n\r\n");
    const std::size_t field = request.find(kField);
    if (head == std::string::npos || field == std::string::npos) return 0;
    return head + 4 + std::stoul(request.substr(field + kField.size()));
  }

  ListenAddress address_{"127.0.0.1", 0};
  os::Fd listener_;
};

class JobTracesTest : public ::testing::Test {
 protected:
  JobTracesTest() {
    traces_.set_endpoint(collector_.endpoint(), "lab1");
    job_.id = JobId(7);
    job_.submitted = kFirst;
    see(0ms, Queued{});
  }

  void see(std::chrono::milliseconds at, JobState state) {
    job_.state = std::move(state);
    traces_.see(job_, kFirst + at);
  }
  [[nodiscard]] static Attempt attempt(int number, std::chrono::milliseconds started) {
    Attempt attempt;
    attempt.number = number;
    attempt.started = kFirst + started;
    return attempt;
  }
  [[nodiscard]] static Starting starting(int number, std::chrono::milliseconds started) {
    return {.attempt = attempt(number, started), .stop = {}, .requeues = 0, .preemption_at = {}};
  }
  static Ended ended(Outcome outcome, Attempt last, std::chrono::milliseconds at) {
    return {.outcome = std::move(outcome), .at = kFirst + at, .attempt = std::move(last)};
  }

  Collector collector_;
  JobTraces traces_;
  Job job_;
};

using Spans = std::multimap<std::string, Times>;

TEST_F(JobTracesTest, OneThatBeganAndEndedSinceItWasLastSeenRanForItsRunTime) {
  see(100ms, starting(1, 100ms));
  see(900ms, ended({.run_time = 250ms}, attempt(1, 100ms), 800ms));
  EXPECT_EQ(collector_.spans(),
            (Spans{{"queued", {0, 100}},
                   {"starting", {100, 550}},
                   {"running", {550, 800}},
                   {"job ", {0, 800}}}));
}

TEST_F(JobTracesTest, SoDoesOneThatIsRunAgain) {
  see(100ms, starting(1, 100ms));
  job_.served = 250ms;
  see(800ms, Queued{});
  see(900ms, starting(2, 900ms));
  see(2s, ended({.run_time = 500ms}, attempt(2, 900ms), 1900ms));
  EXPECT_EQ(collector_.spans(),
            (Spans{{"queued", {0, 100}},
                   {"starting", {100, 550}},
                   {"running", {550, 800}},
                   {"queued", {800, 900}},
                   {"starting", {900, 1400}},
                   {"running", {1400, 1900}},
                   {"job ", {0, 1900}}}));
}

TEST_F(JobTracesTest, OneThatCouldNotBeLaunchedDidNotStart) {
  see(100ms, starting(1, 100ms));
  see(900ms, ended({.reason = EndReason::LaunchFailed}, attempt(1, 100ms), 800ms));
  EXPECT_EQ(collector_.spans(),
            (Spans{{"queued", {0, 100}}, {"running", {100, 800}}, {"job ", {0, 800}}}));
}

}  // namespace
}  // namespace gflow::daemon

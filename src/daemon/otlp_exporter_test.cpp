// SPDX-License-Identifier: Apache-2.0
#include "daemon/otlp_exporter.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>

#include "base/listen_address.h"
#include "os/tcp.h"

namespace gflow::daemon {
namespace {

/// Takes a request and never answers.
class SilentCollector {
 public:
  SilentCollector() : listener_(os::listen_tcp(address_).value()) {}
  [[nodiscard]] std::string endpoint() const { return "http://" + to_text(address_); }
  os::Fd take() const {
    pollfd asked{listener_.get(), POLLIN, 0};
    while (::poll(&asked, 1, -1) != 1) {
    }
    return os::Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

 private:
  ListenAddress address_{"127.0.0.1", 0};
  os::Fd listener_;
};

/// Reads what is there. Whether the other end is still open.
bool is_open(const os::Fd& connection) {
  std::array<char, 4096> bytes{};
  ssize_t got = 0;
  do {
    got = ::recv(connection.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  } while (got > 0);
  return got < 0 && errno == EAGAIN;
}

TEST(OtlpExporter, NobodyWaitsForACollectorThatIsSilent) {
  const SilentCollector collector;
  std::optional<OtlpExporter> exporter;
  exporter.emplace(collector.endpoint(), api::SpanAttributes{});
  exporter->send({});
  const os::Fd connection = collector.take();
  exporter.reset();
  EXPECT_TRUE(is_open(connection)) << "it was waited for until it had given up";
}

TEST(OtlpExporter, AtTheEndWhatIsLeftIsGivenUpSoon) {
  const SilentCollector collector;
  OtlpExporter exporter(collector.endpoint(), {});
  exporter.send({});
  const os::Fd connection = collector.take();
  exporter.finish();
  pollfd closed{connection.get(), POLLRDHUP, 0};
  EXPECT_EQ(::poll(&closed, 1, -1), 1);
  EXPECT_EQ(exporter.sent(), 0U);
}

}  // namespace
}  // namespace gflow::daemon

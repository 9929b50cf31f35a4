// SPDX-License-Identifier: Apache-2.0
#include "server/channel.h"

#include <csignal>
#include <utility>

#include "os/descriptor.h"

namespace gflow::server {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

Channel::Channel(boost::asio::io_context& io,
                 std::function<void(os::Fd)> welcome,
                 std::function<void(Result<void>)> end)
    : welcome_(std::move(welcome)), end_(std::move(end)), channel_(io), signals_(io) {}

void Channel::watch(int channel) {
  error_code error;
  channel_.assign(os::duplicate(channel).release(), error);  // it closes what it waits for
  if (error) return end_(fail(Code::Failure, "stdin: " + error.message()));
  await_connection(channel);
}

void Channel::await_connection(int channel) {
  channel_.async_wait(stream_descriptor::wait_read, [this, channel](const error_code& error) {
    if (error) return;
    auto connection = os::receive_descriptor(channel);
    if (!connection) return end_({});
    if (connection->valid()) welcome_(std::move(*connection));
    await_connection(channel);
  });
}

void Channel::watch_signals() {
  for (const int number : {SIGTERM, SIGINT}) {
    error_code ignored;  // one that cannot be watched keeps its default action
    signals_.add(number, ignored);
  }
  signals_.async_wait([this](const error_code& error, int) {
    if (!error) end_({});
  });
}

}  // namespace gflow::server

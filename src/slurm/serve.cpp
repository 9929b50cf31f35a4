// SPDX-License-Identifier: Apache-2.0
#include "slurm/serve.h"

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <memory>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "os/descriptor.h"
#include "server/http_server.h"
#include "server/voice.h"
#include "slurm/programs.h"
#include "slurm/reader.h"

namespace gflow::slurm {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kChannel = STDIN_FILENO;

class Serving {
 public:
  Serving(const server::Voice& voice, std::string about)
      : voice_(voice), channel_(io_), signals_(io_), reader_(io_, std::move(about)) {}

  Result<void> run() {
    watch_signals();
    watch_channel();
    reader_.begin([this](Result<void> read) {
      if (read) read = listen();
      if (!read) return end(std::move(read));
      voice_.ready("");
    });
    io_.run();
    server_.reset();
    return end_;
  }

 private:
  Result<void> listen() {
    server::HttpServer::Options options;
    options.own_uid = ::geteuid();
    server_ = GF_TRY(server::HttpServer::listen(io_, std::move(options), reader_));
    return {};
  }

  /// Once it is told that all is ready, a connection each; its end is ours.
  void watch_channel() {
    error_code error;
    channel_.assign(os::duplicate(kChannel).release(), error);  // it closes what it waits for
    if (error) return end(fail(Code::Failure, "stdin: " + error.message()));
    await_connection();
  }
  void await_connection() {
    channel_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
      if (error) return;
      auto connection = os::receive_descriptor(kChannel);
      if (!connection) return end({});
      if (connection->valid() && server_) server_->welcome(std::move(*connection));
      await_connection();
    });
  }

  void watch_signals() {
    for (const int number : {SIGTERM, SIGINT}) {
      error_code ignored;  // one that cannot be watched keeps its default action
      signals_.add(number, ignored);
    }
    signals_.async_wait([this](const error_code& error, int) {
      if (!error) end({});
    });
  }

  void end(Result<void> how) {
    end_ = std::move(how);
    io_.stop();
  }

  const server::Voice& voice_;
  asio::io_context io_{1};
  asio::posix::stream_descriptor channel_;
  asio::signal_set signals_;
  Reader reader_;
  std::unique_ptr<server::HttpServer> server_;
  Result<void> end_;
};

}  // namespace

Result<void> serve_api() {
  const server::Voice voice(kChannel);
  const auto serve = [&voice]() -> Result<void> {
    voice.waits(tr("asking Slurm"));
    const std::string version = GF_TRY(output_of({{"squeue", "--version"}}));
    return Serving(voice, printable(trim(version))).run();
  };
  auto served = serve();
  if (!served) voice.error(served.error());
  return served;
}

}  // namespace gflow::slurm

// SPDX-License-Identifier: Apache-2.0
#include "slurm/serve.h"

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "os/fd.h"
#include "server/channel.h"
#include "server/http_server.h"
#include "server/voice.h"
#include "slurm/programs.h"
#include "slurm/reader.h"

namespace gflow::slurm {
namespace {

namespace asio = boost::asio;

constexpr int kChannel = STDIN_FILENO;

class Serving {
 public:
  Serving(const server::Voice& voice, std::string about)
      : voice_(voice),
        channel_(
            io_,
            [this](os::Fd connection) { welcome(std::move(connection)); },
            [this](Result<void> how) { end(std::move(how)); }),
        reader_(io_, std::move(about)) {}

  Result<void> run() {
    channel_.watch_signals();
    channel_.watch(kChannel);
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

  void welcome(os::Fd connection) {
    if (server_) server_->welcome(std::move(connection));
  }

  void end(Result<void> how) {
    end_ = std::move(how);
    io_.stop();
  }

  const server::Voice& voice_;
  asio::io_context io_{1};
  server::Channel channel_;
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

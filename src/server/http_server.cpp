// SPDX-License-Identifier: Apache-2.0
#include "server/http_server.h"

#include <system_error>
#include <utility>

#include "server/desk.h"
#include "server/edge.h"

namespace gflow::server {

Result<std::unique_ptr<HttpServer>> HttpServer::listen(boost::asio::io_context& io,
                                                       Options options,
                                                       Service& service) {
  try {
    return begin(io, std::move(options), service);
  } catch (const std::system_error& error) {  // no thread is to be had
    return fail(Code::Failure, std::string("serve the API: ") + error.what());
  }
}

Result<std::unique_ptr<HttpServer>> HttpServer::begin(boost::asio::io_context& io,
                                                      Options options,
                                                      Service& service) {
  auto desk = std::make_shared<Desk>(
      io,
      service,
      Authenticator({options.any_user, options.own_uid}, service.tokens(), options.audit));
  auto edge = std::make_unique<Edge>(std::move(options), desk);
  GF_CHECK(edge->listen());
  std::string trouble = edge->listen_on_loopback();
  if (auto done = edge->listen_remote(); !done) {
    trouble += (trouble.empty() ? "" : "; ") + done.error().message;
  }
  edge->start();
  return std::unique_ptr<HttpServer>(                                         // NOLINT: private
      new HttpServer(std::move(edge), std::move(desk), std::move(trouble)));  // NOLINT
}

HttpServer::HttpServer(std::unique_ptr<Edge> edge, std::shared_ptr<Desk> desk, std::string trouble)
    : edge_(std::move(edge)), desk_(std::move(desk)), listen_trouble_(std::move(trouble)) {}

HttpServer::~HttpServer() {
  close();
  desk_->close();
  edge_->finish();
}

std::vector<std::string> HttpServer::configure(const RoleNames& roles,
                                               const std::vector<std::string>& projects,
                                               OthersJobs others_jobs) {
  return desk_->configure(roles, projects, others_jobs);
}

void HttpServer::tokens_changed() { desk_->look_again(); }

std::optional<ListenAddress> HttpServer::loopback() const {
  if (edge_->loopback().empty()) return std::nullopt;
  return edge_->loopback().front();
}

const std::optional<HttpServer::Remote>& HttpServer::remote() const { return edge_->remote(); }

const std::string& HttpServer::listen_trouble() const { return listen_trouble_; }

const HttpCounters& HttpServer::counters() const { return edge_->counted(); }

void HttpServer::welcome(os::Fd connection) { edge_->welcome(std::move(connection)); }

Result<void> HttpServer::listen_again() { return closed_ ? Result<void>() : edge_->listen(); }

void HttpServer::close() {
  if (std::exchange(closed_, true)) return;
  edge_->close();
}

}  // namespace gflow::server

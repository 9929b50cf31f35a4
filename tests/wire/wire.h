// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "client/client.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/unix_socket.h"
#include "server/fake_service.h"
#include "server/http_server.h"

namespace gflow::wire {

/// A directory of its own that others may enter; gone at the end.
class TempDir {
 public:
  TempDir() {
    std::string path = "/tmp/gflow-wire-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = path;
    (void)::chmod(path_.c_str(), 0755);  // tests as another user fail visibly without it
  }
  ~TempDir() { (void)os::remove_tree(path_); }  // what is left lies in /tmp
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// The server on a thread of its own, serving a FakeService.
class Daemon {
 public:
  explicit Daemon(server::HttpServer::Options options = {}) {
    if (options.own_uid == 0) options.own_uid = ::getuid();
    options.socket_path = socket();
    auto listening = server::HttpServer::listen(io_, std::move(options), service_);
    if (!listening) throw std::runtime_error(listening.error().message);
    server_ = std::move(*listening);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Daemon() {
    on_loop([this] { server_.reset(); });
    work_.reset();
    io_.stop();
    thread_.join();
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  [[nodiscard]] std::string socket() const { return directory_.file("gflowd.sock"); }
  [[nodiscard]] client::Client client() const { return client::Client(socket()); }
  /// Runs `work` on the loop's thread and waits for it.
  template <typename Work>
  void on_loop(Work work) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  /// Only to be touched on the loop's thread.
  [[nodiscard]] server::FakeService& service() { return service_; }
  [[nodiscard]] server::HttpServer& server() { return *server_; }

 private:
  TempDir directory_;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      io_.get_executor()};
  server::FakeService service_{[this](std::function<void()> f) { boost::asio::post(io_, f); }};
  std::unique_ptr<server::HttpServer> server_;
  std::thread thread_;
};

/// A connection on which a test says what it likes.
class Raw {
 public:
  explicit Raw(const std::string& socket) : fd_(os::connect_unix(socket).value()) {}

  /// False if the other end does not take it any more.
  bool send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void finish_sending() const { (void)::shutdown(fd_.get(), SHUT_WR); }
  void close() { fd_.reset(); }
  /// The first bytes of what comes.
  [[nodiscard]] std::string read_first(std::size_t count) const {
    std::string text(count, '\0');
    const ssize_t got = ::recv(fd_.get(), text.data(), count, MSG_WAITALL);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
  /// Everything until the other end hangs up.
  [[nodiscard]] std::string read_all() const {
    std::string text;
    while (true) {
      const std::string piece = read_some();
      if (piece.empty()) return text;
      text += piece;
    }
  }
  /// Everything until `end` has come, or the other end hangs up.
  [[nodiscard]] std::string read_until(std::string_view end) const {
    std::string text;
    while (!text.ends_with(end)) {
      const std::string piece = read_some();
      if (piece.empty()) return text;
      text += piece;
    }
    return text;
  }

 private:
  [[nodiscard]] std::string read_some() const {
    std::array<char, 65536> buffer{};
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }
  os::Fd fd_;
};

/// A submission of one job that asks for GPUs and nothing else.
inline api::SubmitRequest one_job(int gpus = 0) {
  api::SubmitRequest request;
  api::SubmitRequest::Item& item = request.items.emplace_back();
  item.spec.name = "train";
  item.spec.work_dir = "/";
  item.spec.command = "python train.py";
  item.spec.request.gpus = gpus;
  item.payload.argv = {"python", "train.py"};
  return request;
}

}  // namespace gflow::wire

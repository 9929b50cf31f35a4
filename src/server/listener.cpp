// SPDX-License-Identifier: Apache-2.0
#include "server/listener.h"

#include <sys/eventfd.h>

#include <chrono>
#include <utility>

namespace gflow::server {

using boost::system::error_code;

namespace {

os::Fd make_spare() { return os::Fd(::eventfd(0, EFD_CLOEXEC)); }

}  // namespace

Listener::Listener(boost::asio::io_context& io, std::function<void(Socket)> welcome, Note note)
    : io_(io),
      welcome_(std::move(welcome)),
      note_(std::move(note)),
      acceptor_(io),
      pause_(io),
      spare_(make_spare()) {}

Result<void> Listener::open(int family, os::Fd socket) {
  close();
  error_code error;
  acceptor_.assign(Protocol(family, 0), socket.get(), error);
  if (error) return fail(Code::Failure, "listen: " + error.message());
  (void)socket.release();  // the acceptor's now
  open_ = std::make_shared<const bool>(true);
  accept();
  return {};
}

void Listener::close() {
  open_.reset();
  error_code ignored;  // nobody is left to be told
  acceptor_.close(ignored);
  pause_.cancel();
}

void Listener::accept() {
  const std::weak_ptr<const bool> open = open_;
  acceptor_.async_accept([this, open](const error_code& error, Socket socket) {
    if (open.expired()) return;
    if (error) return accept_in_need(error);
    welcome_(std::move(socket));
    accept_waiting();
    get_over_need();
    accept();
  });
}

/// Most likely out of descriptors. Who comes with the spare one may be about to cancel what has the
/// others. Without it the connection stays in the backlog, so asking again at once would spin.
void Listener::accept_in_need(const error_code& error) {
  if (spare_.valid()) {
    spare_.reset();
    return accept();
  }
  if (!std::exchange(in_need_, true)) note_("no connection can be accepted: " + error.message());
  constexpr std::chrono::milliseconds kPause{100};
  pause_.expires_after(kPause);
  pause_.async_wait([this, open = std::weak_ptr(open_)](const error_code& /*stopped*/) {
    if (!open.expired()) accept();
  });
}

void Listener::get_over_need() {
  if (!spare_.valid()) spare_ = make_spare();
  if (spare_.valid() && std::exchange(in_need_, false)) note_("connections are accepted again");
}

/// Those that came with the one just accepted: whoever connects as fast as he can must not fill the
/// backlog, at which the kernel turns everybody away. Not those that come meanwhile: others wait.
void Listener::accept_waiting() {
  constexpr int kAtOnce = 32;
  error_code error;
  acceptor_.non_blocking(true, error);
  for (int i = 0; i < kAtOnce && !error; ++i) {
    Socket socket(io_.get_executor());
    acceptor_.accept(socket, error);
    if (!error) welcome_(std::move(socket));
  }
}

}  // namespace gflow::server

// SPDX-License-Identifier: Apache-2.0
// The one file that includes Asio's TLS: it takes long to compile.
#include "server/tls_front.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "os/signals.h"
#include "os/tcp.h"
#include "server/authenticator.h"
#include "server/listener.h"

namespace gflow::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::seconds kHandshake{10};
constexpr std::chrono::seconds kWrite{60};
constexpr std::chrono::seconds kFarewell{2};

/// A peer that is gone, or takes nothing, is found out.
void watch_peer(int socket) {
  const int on = 1;
  const auto patience = static_cast<int>(std::chrono::milliseconds(kWrite).count());
  (void)::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
}

/// The one common name of a certificate that was verified; "" for none, several, or with a NUL.
std::string name_in_certificate(SSL* tls) {
  const X509* certificate = SSL_get0_peer_certificate(tls);
  if (certificate == nullptr || SSL_get_verify_result(tls) != X509_V_OK) return "";
  X509_NAME* subject = X509_get_subject_name(certificate);
  const int first = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (first < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, first) >= 0) return "";
  const ASN1_STRING* value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, first));
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, value);
  if (size < 0) return "";
  std::string name(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));  // NOLINT
  OPENSSL_free(text);
  return name.contains('\0') ? "" : name;
}

}  // namespace

struct TlsFront::Core {
  class Connection;

  Core(TlsContext made, Limits most, Welcome given, Listener::Note note)
      : context(made.release()),
        limits(most),
        welcome(std::move(given)),
        work(io.get_executor()),
        listener(
            io, [this](Listener::Socket socket) { accept(std::move(socket)); }, std::move(note)) {}

  void accept(Listener::Socket socket);
  void forget(const std::shared_ptr<Connection>& connection);

  asio::io_context io{1};
  asio::ssl::context context;
  Limits limits;
  Welcome welcome;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  Listener listener;
  std::set<std::shared_ptr<Connection>> connections;
  std::map<std::string, std::size_t> of_each;  ///< by counted_as()
  std::thread thread;
};

/// One connection: shakes hands, then carries bytes both ways until either end has no more.
class TlsFront::Core::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Core& core, Listener::Socket socket, Guest guest)
      : core_(core),
        guest_(std::move(guest)),
        counted_as_(server::counted_as(guest_)),
        tls_(std::move(socket), core.context),
        plain_(core.io),
        deadline_(core.io) {
    guest_.has_some_to_come = std::make_shared<std::atomic<bool>>(false);
  }

  void begin() {
    within(kHandshake);
    tls_.async_handshake(asio::ssl::stream_base::server,
                         [self = shared_from_this()](const error_code& error) {
                           if (error) return self->close();
                           self->go_on();
                         });
  }
  void close() {
    if (std::exchange(closed_, true)) return;
    note_what_is_to_come();
    deadline_.cancel();
    error_code ignored;  // the connection is over either way
    tls_.next_layer().close(ignored);
    plain_.close(ignored);
    core_.forget(shared_from_this());
  }
  [[nodiscard]] const std::string& counted_as() const { return counted_as_; }

 private:
  using Buffer = std::array<char, 16 * 1024>;  // one TLS record

  /// Before the session hears that this is the end.
  void note_what_is_to_come() {
    if (os::is_unsent(tls_.next_layer().native_handle())) *guest_.has_some_to_come = true;
  }

  void go_on() {
    deadline_.cancel();
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
      return close();
    }
    os::Fd theirs(ends[0]);
    error_code error;
    plain_.assign(Listener::Protocol(AF_UNIX, 0), ends[1], error);
    if (error) {
      (void)os::Fd(ends[1]);
      return close();
    }
    guest_.certificate = name_in_certificate(tls_.native_handle());
    core_.welcome({std::move(theirs), guest_});
    read_tls();
    read_plain();
  }
  void read_tls() {
    tls_.async_read_some(asio::buffer(in_),
                         [self = shared_from_this()](const error_code& error, std::size_t size) {
                           if (error) return self->end_of_tls(error);
                           self->write_plain(size);
                         });
  }
  void write_plain(std::size_t size) {
    asio::async_write(plain_,
                      asio::buffer(in_.data(), size),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        // Who answers no more may still have something on the way out.
                        if (!error) self->read_tls();
                      });
  }
  /// It sends no more; what it asked is still answered, if it listens. The shutdown that says
  /// farewell hears nothing of a connection that is reset while this still read.
  void end_of_tls(const error_code& error) {
    const bool may_listen =
        error == asio::error::eof || error == asio::ssl::error::stream_truncated;
    if (!may_listen || says_farewell_) return close();
    note_what_is_to_come();
    error_code ignored;  // the other end is gone then, too
    plain_.shutdown(Listener::Socket::shutdown_send, ignored);
  }
  void read_plain() {
    plain_.async_read_some(asio::buffer(out_),
                           [self = shared_from_this()](const error_code& error, std::size_t size) {
                             if (error) return self->say_farewell();
                             self->write_tls(size);
                           });
  }
  void write_tls(std::size_t size) {
    within(kWrite);
    *guest_.has_some_to_come = true;
    asio::async_write(tls_,
                      asio::buffer(out_.data(), size),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (error) return self->close();
                        *self->guest_.has_some_to_come = false;
                        self->deadline_.cancel();
                        self->read_plain();
                      });
  }
  void say_farewell() {
    if (closed_) return;
    says_farewell_ = true;
    within(kFarewell);
    tls_.async_shutdown([self = shared_from_this()](const error_code& /*any*/) { self->close(); });
  }
  void within(std::chrono::seconds most) {
    deadline_.expires_after(most);
    deadline_.async_wait([connection = weak_from_this()](const error_code& stopped) {
      if (stopped) return;
      if (const auto self = connection.lock()) self->close();
    });
  }

  Core& core_;
  Guest guest_;
  std::string counted_as_;
  asio::ssl::stream<Listener::Socket> tls_;
  Listener::Socket plain_;
  asio::steady_timer deadline_;
  Buffer in_{};
  Buffer out_{};
  bool says_farewell_ = false;
  bool closed_ = false;
};

void TlsFront::Core::accept(Listener::Socket socket) {
  Guest guest{.via = Via::Tls, .is_known = false};
  guest.address = os::address_of_other_end(socket.native_handle());
  if (const auto uid = os::owner_of_other_end(socket.native_handle())) guest.local_uid = *uid;
  // Nothing can be said yet in a way that would be understood.
  if (connections.size() >= limits.connections) return;
  std::size_t& count = of_each[counted_as(guest)];
  if (count >= limits.of_each) return;
  ++count;
  watch_peer(socket.native_handle());
  const auto connection = std::make_shared<Connection>(*this, std::move(socket), std::move(guest));
  connections.insert(connection);
  connection->begin();
}

void TlsFront::Core::forget(const std::shared_ptr<Connection>& connection) {
  if (connections.erase(connection) == 0) return;
  const auto count = of_each.find(connection->counted_as());
  if (--count->second == 0) of_each.erase(count);
}

TlsFront::TlsFront(TlsContext context,
                   Limits limits,
                   Welcome welcome,
                   std::function<void(const std::string& line)> note)
    : core_(std::make_unique<Core>(
          std::move(context), limits, std::move(welcome), std::move(note))) {}

TlsFront::~TlsFront() { finish(); }

Result<void> TlsFront::listen(ListenAddress& address) {
  os::Fd socket = GF_TRY(os::listen_tcp(address));
  return core_->listener.open(address.host.contains(':') ? AF_INET6 : AF_INET, std::move(socket));
}

void TlsFront::start() {
  const os::SignalsBlocked blocked;  // they are the loop's
  core_->thread = std::thread([this] { core_->io.run(); });
}

void TlsFront::close() {
  asio::post(core_->io, [this] { core_->listener.close(); });
}

void TlsFront::finish() {
  if (!core_->thread.joinable()) return;
  asio::post(core_->io, [this] {
    core_->listener.close();
    const auto open = core_->connections;  // closing takes them out
    for (const auto& connection : open) connection->close();
  });
  core_->work.reset();
  core_->thread.join();
}

}  // namespace gflow::server

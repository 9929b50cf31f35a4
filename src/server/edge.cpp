// SPDX-License-Identifier: Apache-2.0
#include "server/edge.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/translate.h"
#include "core/file_budget.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/host.h"
#include "os/signals.h"
#include "os/tcp.h"
#include "os/unix_socket.h"
#include "server/authenticator.h"
#include "server/routes.h"

namespace gflow::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::uint32_t kNobody = 65534;  // who is not known is counted as one user
constexpr std::chrono::seconds kLastWords{1};

constexpr Memory kBodiesHere = Memory::mib(512);
constexpr Memory kBodiesElsewhere = Memory::mib(128);

/// How many connections of each way there may be: no more than there are descriptors for beside the
/// logs that are read. Those from elsewhere have no more than a third of them.
struct Connections {
  std::size_t here = 0;
  std::size_t elsewhere = 0;
};
Connections possible_connections(const HttpServer::Options& options) {
  constexpr std::size_t kOfEachTls = 3;  // its own, and both ends of what is said within
  constexpr std::size_t kMostElsewhere = 512;
  const FileBudget files = file_budget(os::open_file_limit());
  const std::size_t free = files.clients - files.logs;
  const std::size_t wanted = options.max_connections;
  const std::size_t elsewhere =
      options.tls ? std::min({wanted, kMostElsewhere, free / 3 / kOfEachTls}) : 0;
  return {std::min(wanted, free - elsewhere * kOfEachTls), elsewhere};
}

}  // namespace

Edge::Edge(Options options, std::shared_ptr<Desk> desk)
    : options_(std::move(options)),
      loopback_rules_(
          std::make_shared<const WebRules>(WebRules{false, {}, options_.allowed_origins})),
      remote_rules_(std::make_shared<const WebRules>(
          WebRules{true, options_.host_names, options_.allowed_origins})),
      desk_(std::move(desk)),
      work_(io_.get_executor()),
      last_words_(io_),
      unix_listener_(
          io_,
          [this](Listener::Socket socket) { welcome(Via::Unix, std::move(socket)); },
          [this](const std::string& line) { note(line); }),
      admission_({possible_connections(options_).here, kBodiesHere},
                 {possible_connections(options_).elsewhere, kBodiesElsewhere},
                 options_.max_connections_per_user),
      counters_(routes().size()) {}

Edge::~Edge() { finish(); }

Result<void> Edge::listen() {
  if (options_.socket_path.empty()) return {};
  constexpr mode_t kAnyone = 0666;
  constexpr mode_t kOwner = 0600;
  os::Fd socket =
      GF_TRY(os::listen_unix(options_.socket_path, options_.any_user ? kAnyone : kOwner));
  if (!thread_.joinable()) return unix_listener_.open(AF_UNIX, std::move(socket));
  const auto listening = std::make_shared<os::Fd>(std::move(socket));
  asio::post(io_, [this, listening] {
    // Like one that was opened at the start, but that there is nobody left to be told.
    if (!closing_) (void)unix_listener_.open(AF_UNIX, std::move(*listening));
  });
  return {};
}

std::string Edge::listen_on_loopback() {
  std::string trouble;
  std::vector<ListenAddress> opened;
  for (ListenAddress address : options_.loopback) {
    if (!opened.empty()) address.port = opened.front().port;
    const auto done = listen_at(address);
    if (done) {
      opened.push_back(address);
    } else if (done.error().code != Code::NotFound || options_.loopback.size() == 1) {
      trouble = done.error().message;
    }
  }
  options_.loopback = std::move(opened);
  return trouble;
}

Result<void> Edge::listen_at(ListenAddress& address) {
  os::Fd socket = GF_TRY(os::listen_tcp(address));
  const int family = address.host.contains(':') ? AF_INET6 : AF_INET;
  Listener& listener = tcp_listeners_.emplace_back(
      io_,
      [this](Listener::Socket connection) { welcome(Via::Tcp, std::move(connection)); },
      [this](const std::string& line) { note(line); });
  return listener.open(family, std::move(socket));
}

Result<void> Edge::listen_remote() {
  if (!options_.tls) return {};
  TlsContext context = GF_TRY(make_tls_context(options_.tls_files));
  HttpServer::Remote remote{*options_.tls, fingerprint_of(context), expiry_of(context)};
  const auto welcome = [this](TlsFront::Arrival arrival) {
    const auto arrived = std::make_shared<TlsFront::Arrival>(std::move(arrival));
    asio::post(io_, [this, arrived] { welcome_remote(*arrived); });
  };
  tls_front_ = std::make_unique<TlsFront>(
      std::move(context),
      TlsFront::Limits{.connections = possible_connections(options_).elsewhere},
      welcome,
      [this](const std::string& line) { note(line); });
  if (auto done = tls_front_->listen(remote.address); !done) {
    tls_front_.reset();
    return done;
  }
  remote_ = std::move(remote);
  return {};
}

void Edge::start() {
  const os::SignalsBlocked blocked;  // they are the loop's
  thread_ = std::thread([this] { io_.run(); });
  if (tls_front_) tls_front_->start();
}

void Edge::close() {
  if (!options_.socket_path.empty()) {
    (void)::unlink(options_.socket_path.c_str());  // a stale file is replaced at the next start
  }
  if (tls_front_) tls_front_->close();
  asio::post(io_, [this] { stop_accepting(); });
}

void Edge::finish() {
  if (!thread_.joinable()) return;
  asio::post(io_, [this] { take_leave(); });
  work_.reset();
  thread_.join();
  answers_.reset();                      // while there is what it posts to
  if (tls_front_) tls_front_->finish();  // now that the last words were said
}

std::shared_ptr<void> Edge::ask(Guest guest, Request request, Desk::Asker asker) {
  return desk_->ask(std::move(guest), std::move(request), std::move(asker));
}

void Edge::on_edge(std::function<void()> work) { asio::post(io_, std::move(work)); }

void Edge::in_turn(std::uint32_t uid, std::function<void()> work) {
  turns_.push(uid, std::move(work));
  serve_soon();
}

/// One, then whatever has come meanwhile, then the next.
void Edge::serve_soon() {
  if (serving_ || !turns_.ready()) return;
  serving_ = true;
  asio::post(io_, [this] {
    serving_ = false;
    turns_.pop()();
    serve_soon();
  });
}

void Edge::note(const Guest& guest, const Terms& terms, int status) {
  if (const auto line = log_.line(os::now().mono, guest, terms, status)) note(*line);
}

void Edge::note(const std::string& line) {
  if (options_.note) desk_->tell([note = options_.note, line] { note(line); });
}

void Edge::forget(const std::shared_ptr<Session>& session) {
  if (sessions_.erase(session) > 0) counters_.closed(session->via());
  if (sessions_.empty()) last_words_.cancel();
}

Result<void> Edge::may_enter(std::uint32_t uid) const {
  return Authenticator::may_enter({options_.any_user, options_.own_uid}, uid);
}

/// Over TCP nobody is turned away before the request is read: closing then would take the answer
/// from whoever still writes.
Result<Guest> Edge::admit(Via via, int socket) {
  Guest guest{.via = via};
  if (via == Via::Tcp) {
    const auto uid = os::owner_of_other_end(socket);
    guest.address = os::address_of_other_end(socket);
    guest.peer.uid = uid.value_or(kNobody);
    guest.is_known = uid.has_value();
    auto may = uid ? may_enter(*uid) : std::unexpected(uid.error());
    if (!may) {
      guest.refusal = std::move(may).error();
      // For want of files it is not known who asks, and may be in a moment: problem() says so.
      if (!os::is_out_of_files(*guest.refusal)) guest.refusal->code = Code::Permission;
    }
  } else {
    guest.peer = GF_TRY(os::peer_of(socket));
    GF_CHECK(may_enter(guest.peer.uid));
  }
  return guest;
}

void Edge::welcome(Via via, Listener::Socket socket) {
  auto guest = admit(via, socket.native_handle());
  if (!guest) {
    counters_.refused(Refusal::Permission);
    return turned_away_.add(std::move(socket), guest.error());
  }
  auto connection = admission_.take_connection(*guest);
  if (!connection) {
    counters_.refused(Refusal::Connections);
    return turned_away_.add(std::move(socket), connection.error());
  }
  begin_session(std::move(*guest), std::move(socket), std::move(*connection));
}

/// Who comes from elsewhere is counted by address, as nobody knows yet who it is; and is nobody
/// until something is shown.
void Edge::welcome_remote(TlsFront::Arrival& arrival) {
  constexpr std::uint32_t kNoAccounts = 0x8000'0000;  // uids beyond those of accounts
  Guest guest = std::move(arrival.guest);
  guest.peer.uid =
      kNoAccounts | static_cast<std::uint32_t>(std::hash<std::string>()(counted_as(guest)));
  guest.refusal = Error{Code::Permission,
                        tr_later("from another machine a token is needed: 'Authorization: Bearer "
                                 "TOKEN'; 'gctl token create' makes one")};
  if (closing_) return;
  auto connection = admission_.take_connection(guest);
  if (!connection) return counters_.refused(Refusal::Connections);
  if (auto socket = socket_of(arrival.plain)) {
    begin_session(std::move(guest), std::move(*socket), std::move(*connection));
  }
}

void Edge::welcome(os::Fd connection) {
  const auto arrived = std::make_shared<os::Fd>(std::move(connection));
  asio::post(io_, [this, arrived] {
    if (closing_) return;
    if (auto socket = socket_of(*arrived)) welcome(Via::Unix, std::move(*socket));
  });
}

/// The same connection, for asio; nothing where that takes it for none.
std::optional<Listener::Socket> Edge::socket_of(os::Fd& connection) {
  error_code error;
  Listener::Socket socket(io_.get_executor());
  socket.assign(Listener::Protocol(AF_UNIX, 0), connection.get(), error);
  if (error) return std::nullopt;
  (void)connection.release();  // the socket's now
  return socket;
}

void Edge::begin_session(Guest guest, Listener::Socket socket, Admission::Lease connection) {
  SessionHost& host = *this;
  counters_.opened(guest.via);
  const auto session =
      std::make_shared<Session>(host, std::move(guest), std::move(socket), std::move(connection));
  sessions_.insert(session);
  session->read_header();
}

void Edge::stop_accepting() {
  if (std::exchange(closing_, true)) return;
  unix_listener_.close();
  for (Listener& listener : tcp_listeners_) listener.close();
  const auto open = sessions_;  // closing takes them out
  for (const auto& session : open) {
    if (session->is_idle() || session->waits_for_news()) session->close();
    session->stop_streaming();
  }
}

/// Those who await an answer get none any more; those it is written to have a moment to read it.
void Edge::take_leave() {
  stop_accepting();
  turned_away_.close();
  const auto open = sessions_;
  for (const auto& session : open) {
    if (!session->is_sending()) session->close();
  }
  if (sessions_.empty()) return;
  last_words_.expires_after(kLastWords);
  last_words_.async_wait([this](const boost::system::error_code& error) {
    if (!error) cut_off();
  });
}

void Edge::cut_off() {
  const auto open = sessions_;
  for (const auto& session : open) session->close();
}

}  // namespace gflow::server

// SPDX-License-Identifier: Apache-2.0
// The one file that includes Beast: it takes long to compile.
#include "server/http_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "api/json.h"
#include "base/translate.h"
#include "os/loopback.h"
#include "os/unix_socket.h"
#include "os/user.h"
#include "server/admission.h"
#include "server/fair_queue.h"
#include "server/identity.h"
#include "server/listener.h"
#include "server/routes.h"
#include "server/worker.h"

namespace gflow::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Stream = beast::basic_stream<Listener::Protocol, Listener::Executor>;
using Parser = http::request_parser<http::string_body>;
using Response = http::response<http::string_body>;

constexpr std::uint32_t kMaxHeaderBytes = 64 * 1024;
constexpr std::size_t kMaxBufferBytes = 128 * 1024;  // a header and the start of its body
constexpr std::size_t kMaxConnections = 4096;
constexpr std::size_t kSpareDescriptors = 128;  // for jobs, the store, devices
constexpr std::uint32_t kNobody = 65534;        // who is not known is counted as one user

/// As many connections as there are descriptors for, with some left for everything else.
std::size_t max_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMaxConnectionsPerUser;
  const std::size_t spare = std::max<std::size_t>(limit.rlim_cur, 2 * kSpareDescriptors);
  return std::min(kMaxConnections, spare - kSpareDescriptors);
}

Response response_of(Reply reply) {
  constexpr unsigned kHttp11 = 11;
  Response response(static_cast<http::status>(reply.status), kHttp11);
  for (const auto& [name, value] : reply.headers) response.insert(name, value);
  if (!reply.content_type.empty()) response.set(http::field::content_type, reply.content_type);
  response.set(http::field::cache_control, "no-store");
  response.body() = std::move(reply.body);
  if (reply.status != 204) response.content_length(response.body().size());
  return response;
}

/// The reply to bytes that are no request, or empty if there is nobody to reply to.
std::optional<Reply> reply_to(const error_code& error) {
  if (error == http::error::end_of_stream || error == http::error::partial_message) return {};
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return problem(Error{Code::Exhausted, "the headers are larger than 64 KiB"}, 431);
  }
  if (error == http::error::body_limit) {
    return problem(Error{Code::Exhausted, "the body is larger than 16 MiB"}, 413);
  }
  if (error.category() != http::make_error_code(http::error::end_of_stream).category()) return {};
  return problem(Error{Code::Usage, "not an HTTP request: " + error.message()});
}

Request request_of(http::request<http::string_body>&& message) {
  Request request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const std::size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != std::string::npos) request.query = target.substr(mark + 1);
  if (const auto origin = message.find(http::field::origin); origin != message.end()) {
    request.origin = std::string(origin->value());
  }
  request.idempotency_key = std::string(message["Idempotency-Key"]);
  request.language = std::string(message[http::field::accept_language]);
  request.body = std::move(message.body());
  return request;
}

WebHeaders web_headers_of(const http::request<http::string_body>& message) {
  // Of two of them somebody on the way may have taken the other one.
  const bool is_one = message.count(http::field::host) == 1;
  return {is_one ? std::string(message[http::field::host]) : "",
          std::string(message["Sec-Fetch-Site"]),
          std::string(message[http::field::content_type])};
}

/// Says why and leaves the connection to be closed. What does not fit its buffer is not waited for.
void turn_away(int socket, const Error& error) {
  const int status = error.code == Code::Exhausted ? 429 : api::http_status(error.code);
  const Reply reply = problem(error, status);
  const std::string text = fmt::format(
      "HTTP/1.1 {} Refused\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: "
      "close\r\n\r\n{}",
      status,
      reply.content_type,
      reply.body.size(),
      reply.body);
  (void)::send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// Whether a body of this transfer coding can be read: what is not understood must not be taken for
/// no body.
bool reads_coding(std::string_view coding) {
  return coding.empty() || beast::iequals(coding, "chunked");
}

/// How the other end is. A client may close its sending half and still read.
enum class OtherEnd { Open, HalfClosed, Gone };
OtherEnd other_end(int socket) {
  pollfd watched{socket, POLLIN | POLLRDHUP, 0};
  if (::poll(&watched, 1, 0) != 1) return OtherEnd::Open;
  if ((watched.revents & (POLLHUP | POLLERR)) != 0) return OtherEnd::Gone;
  return (watched.revents & POLLRDHUP) != 0 ? OtherEnd::HalfClosed : OtherEnd::Open;
}

}  // namespace

/// Which way somebody came.
enum class HttpServer::Via { Unix, Tcp };

/// Who connected.
struct HttpServer::Guest {
  os::Peer peer;
  Via via = Via::Unix;
  /// Why nothing is done for them; told in answer to what they ask.
  std::optional<Error> refusal = {};
};

struct HttpServer::Core : FairWork, std::enable_shared_from_this<HttpServer::Core> {
  class Session;

  Core(asio::io_context& loop, Options wanted, Service& answering)
      : io(loop),
        options(std::move(wanted)),
        service(answering),
        unix_listener(loop,
                      [this](Listener::Socket socket) { welcome(Via::Unix, std::move(socket)); }),
        admission(max_connections()),
        identity(options.own_uid) {}

  Result<void> listen();
  void listen_on_loopback();
  Result<void> listen_at(LoopbackAddress& address);
  void welcome(Via via, Listener::Socket socket);
  Result<Guest> admit(Via via, int socket);
  [[nodiscard]] Result<void> may_enter(const os::Peer& peer) const;
  [[nodiscard]] Principal principal_of(const Guest& guest);
  void close();
  void cut_off();
  void later(const Principal& caller, std::function<void()> piece) override;
  void aside(const Principal& caller,
             std::function<void()> work,
             std::function<void()> then) override;
  void begin(std::uint32_t uid, std::function<void()> request);
  void serve_soon();

  asio::io_context& io;
  Options options;
  Service& service;
  Listener unix_listener;
  std::deque<Listener> tcp_listeners;
  std::string loopback_trouble;
  Admission admission;
  Identity identity;
  std::set<std::shared_ptr<Session>> sessions;  // the open ones
  FairQueue fair_queue;  // requests that are whole, and the rest of those that were begun
  bool serving = false;
  bool closing = false;
  std::optional<Worker> worker{std::in_place};  // none once the server is cut off
};

/// One connection: read a request, have it answered, again. Owned by the server while it is open,
/// and by the handlers that are pending for it; the answer awaited does not keep it.
class HttpServer::Core::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Core> core, Guest guest, Stream::socket_type socket)
      : core_(std::move(core)), guest_(std::move(guest)), stream_(std::move(socket)) {}

  void read_header();
  /// Answers without having understood the request, so that nothing after it can be read either.
  void refuse(Reply reply) {
    keep_alive_ = false;
    send(std::move(reply));
  }
  [[nodiscard]] bool is_idle() const { return idle_; }
  /// For news, which a daemon that stops has none of.
  [[nodiscard]] bool waits() const { return wait_ != nullptr; }
  /// Hangs up and gives back what was taken. The session may be gone when this returns.
  void close();

 private:
  void on_header(const error_code& error);
  Result<void> take_body();
  void give_body();
  void invite_body();
  void read_body();
  void on_body(const error_code& error);
  void on_bad_request(const error_code& error);
  void ask(Request request);
  void watch();
  void look_at_other_end();
  void answer(std::uint64_t number, Reply reply);
  void send(Reply reply);
  void on_sent(const error_code& error);

  std::shared_ptr<Core> core_;  // owners: the HttpServer, and each session
  Guest guest_;
  Stream stream_;
  beast::flat_buffer buffer_{kMaxBufferBytes};
  std::optional<Parser> parser_;
  std::optional<Response> response_;
  Memory body_;                 // taken from the admission
  Memory reply_;                // the same
  std::shared_ptr<void> wait_;  // of the request awaited
  std::uint64_t number_ = 0;    // of the request awaited; an answer to another one is dropped
  bool awaiting_ = false;
  bool idle_ = true;
  bool watching_ = false;
  bool keep_alive_ = false;
  bool is_head_ = false;
  bool closed_ = false;
};

void HttpServer::Core::Session::read_header() {
  idle_ = true;
  parser_.emplace();
  parser_->header_limit(kMaxHeaderBytes);
  parser_->body_limit(static_cast<std::uint64_t>(kMaxBody.bytes));
  stream_.expires_after(core_->options.idle);
  http::async_read_header(stream_,
                          buffer_,
                          *parser_,
                          [self = shared_from_this()](const error_code& error, std::size_t) {
                            self->on_header(error);
                          });
}

void HttpServer::Core::Session::on_header(const error_code& error) {
  if (closed_) return;
  if (error) return on_bad_request(error);
  idle_ = false;
  if (!reads_coding(parser_->get()[http::field::transfer_encoding])) {
    return refuse(problem(Error{Code::Usage, "the only transfer coding taken is chunked"}, 501));
  }
  if (auto taken = take_body(); !taken) return refuse(problem(taken.error(), 429));
  const bool waits = beast::iequals(parser_->get()[http::field::expect], "100-continue");
  return waits ? invite_body() : read_body();
}

Result<void> HttpServer::Core::Session::take_body() {
  // A chunked body does not say how large it gets.
  const auto length = parser_->content_length();
  const Memory size =
      parser_->chunked() ? kMaxBody : Memory{static_cast<std::int64_t>(length.value_or(0))};
  GF_CHECK(core_->admission.take_body(guest_.peer.uid, size));
  body_ = size;
  return {};
}

void HttpServer::Core::Session::give_body() {
  core_->admission.give_body(guest_.peer.uid, std::exchange(body_, Memory{}));
}

void HttpServer::Core::Session::invite_body() {
  static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
  stream_.expires_after(core_->options.idle);
  asio::async_write(stream_,
                    asio::buffer(kGoOn.data(), kGoOn.size()),
                    [self = shared_from_this()](const error_code& error, std::size_t) {
                      if (error) return self->close();
                      self->read_body();
                    });
}

void HttpServer::Core::Session::read_body() {
  stream_.expires_after(2 * core_->options.idle);
  http::async_read(
      stream_,
      buffer_,
      *parser_,
      [self = shared_from_this()](const error_code& error, std::size_t) { self->on_body(error); });
}

void HttpServer::Core::Session::on_body(const error_code& error) {
  if (closed_) return;
  if (error) return on_bad_request(error);
  if (core_->closing) {
    return refuse(problem(Error{Code::Unreachable, "gflowd is stopping; try again"}));
  }
  auto message = parser_->release();
  keep_alive_ = message.keep_alive();
  is_head_ = message.method() == http::verb::head;
  awaiting_ = true;
  stream_.expires_never();
  ++number_;
  watch();
  if (guest_.refusal) {
    awaiting_ = false;
    return send(problem(*guest_.refusal));
  }
  std::optional<WebHeaders> web;
  if (guest_.via == Via::Tcp) web = web_headers_of(message);
  const auto request = std::make_shared<Request>(request_of(std::move(message)));
  request->web = std::move(web);
  core_->begin(guest_.peer.uid, [session = weak_from_this(), request] {
    if (const auto self = session.lock()) self->ask(std::move(*request));
  });
}

void HttpServer::Core::Session::ask(Request request) {
  if (closed_) return;
  const std::uint64_t number = number_;
  const auto respond = [session = weak_from_this(), number](Reply reply) {
    if (const auto self = session.lock()) self->answer(number, std::move(reply));
  };
  const auto keep = [session = weak_from_this(), number](std::shared_ptr<void> wait) {
    const auto self = session.lock();
    if (!self || !self->awaiting_ || self->number_ != number) return;
    self->wait_ = std::move(wait);
    self->watch();  // again, if it went on sending before
    self->look_at_other_end();
  };
  dispatch({core_->service,
            core_->principal_of(guest_),
            std::move(request),
            respond,
            std::string(),
            core_.get(),
            keep});
}

void HttpServer::Core::Session::on_bad_request(const error_code& error) {
  if (const auto reply = reply_to(error)) return refuse(*reply);
  close();
}

void HttpServer::Core::Session::watch() {
  if (watching_) return;
  watching_ = true;
  stream_.socket().async_wait(Stream::socket_type::wait_read,
                              [self = shared_from_this()](const error_code& error) {
                                self->watching_ = false;
                                if (error || !self->awaiting_) return;
                                self->look_at_other_end();
                              });
}

/// Over TCP one that is closed looks like one that only sends no more: what is waited for long is
/// not waited for by that.
void HttpServer::Core::Session::look_at_other_end() {
  const OtherEnd end = other_end(stream_.socket().native_handle());
  const bool may_be_gone = end == OtherEnd::HalfClosed && guest_.via == Via::Tcp;
  if (end == OtherEnd::Gone || (may_be_gone && wait_)) close();
}

void HttpServer::Core::Session::close() {
  if (std::exchange(closed_, true)) return;
  awaiting_ = false;
  error_code ignored;  // the connection is over either way
  stream_.socket().close(ignored);
  wait_.reset();
  give_body();
  core_->admission.give_reply(guest_.peer.uid, std::exchange(reply_, Memory{}));
  core_->admission.give_connection(guest_.peer.uid);
  core_->sessions.erase(shared_from_this());
}

void HttpServer::Core::Session::answer(std::uint64_t number, Reply reply) {
  if (!awaiting_ || number != number_) return;
  awaiting_ = false;
  wait_.reset();
  give_body();
  send(std::move(reply));
}

void HttpServer::Core::Session::send(Reply reply) {
  idle_ = false;
  keep_alive_ = keep_alive_ && !core_->closing;
  const Memory size{static_cast<std::int64_t>(reply.body.size())};
  if (auto taken = core_->admission.take_reply(guest_.peer.uid, size); taken) {
    reply_ = size;
  } else {
    reply = problem(taken.error(), 429);
  }
  response_ = response_of(std::move(reply));
  response_->keep_alive(keep_alive_);
  if (is_head_) response_->body().clear();  // its length is told all the same
  stream_.expires_after(2 * core_->options.idle);
  http::async_write(
      stream_, *response_, [self = shared_from_this()](const error_code& error, std::size_t) {
        self->on_sent(error);
      });
}

void HttpServer::Core::Session::on_sent(const error_code& error) {
  response_.reset();
  core_->admission.give_reply(guest_.peer.uid, std::exchange(reply_, Memory{}));
  if (closed_) return;
  if (error || !keep_alive_ || core_->closing) return close();
  read_header();
}

void HttpServer::Core::begin(std::uint32_t uid, std::function<void()> request) {
  fair_queue.push(uid, std::move(request));
  serve_soon();
}

void HttpServer::Core::later(const Principal& caller, std::function<void()> piece) {
  fair_queue.push_front(record_of(caller).uid, std::move(piece));
  serve_soon();
}

void HttpServer::Core::aside(const Principal& caller,
                             std::function<void()> work,
                             std::function<void()> then) {
  if (!worker) return;
  const std::uint32_t uid = record_of(caller).uid;
  fair_queue.block(uid);
  auto done = [server = weak_from_this(), uid, then = std::move(then)] {
    const auto self = server.lock();
    if (!self) return;
    self->fair_queue.unblock(uid);
    self->fair_queue.push_front(uid, then);
    self->serve_soon();
  };
  worker->run(uid, [this, work = std::move(work), done = std::move(done)]() mutable {
    work();
    asio::post(io, std::move(done));
  });
}

/// One piece, then whatever else the loop has to do, then the next.
void HttpServer::Core::serve_soon() {
  if (serving || !fair_queue.ready()) return;
  serving = true;
  asio::post(io, [server = weak_from_this()] {
    const auto self = server.lock();
    if (!self) return;
    self->serving = false;
    if (self->fair_queue.ready()) self->fair_queue.pop()();
    self->serve_soon();
  });
}

/// In place of where it listened before, if it did.
Result<void> HttpServer::Core::listen() {
  constexpr mode_t kAnyone = 0666;
  constexpr mode_t kOwner = 0600;
  os::Fd socket = GF_TRY(os::listen_unix(options.socket_path, options.any_user ? kAnyone : kOwner));
  return unix_listener.open(AF_UNIX, std::move(socket));
}

/// Another program may listen there, the gflowd of another user for one: who types the commands
/// does not need it.
void HttpServer::Core::listen_on_loopback() {
  std::vector<LoopbackAddress> opened;
  for (LoopbackAddress address : options.loopback) {
    if (!opened.empty()) address.port = opened.front().port;
    const auto done = listen_at(address);
    if (done) {
      opened.push_back(address);
    } else if (done.error().code != Code::NotFound || options.loopback.size() == 1) {
      loopback_trouble = done.error().message;
    }
  }
  options.loopback = std::move(opened);
}

Result<void> HttpServer::Core::listen_at(LoopbackAddress& address) {
  os::Fd socket = GF_TRY(os::listen_loopback(address));
  const int family = address.host.contains(':') ? AF_INET6 : AF_INET;
  Listener& listener = tcp_listeners.emplace_back(
      io, [this](Listener::Socket connection) { welcome(Via::Tcp, std::move(connection)); });
  return listener.open(family, std::move(socket));
}

Result<void> HttpServer::Core::may_enter(const os::Peer& peer) const {
  if (options.any_user || peer.uid == 0 || peer.uid == options.own_uid) return {};
  return fail(Code::Permission, "this gflowd serves only the user it runs as");
}

/// Over TCP nobody is turned away before the request is read: closing then would take the answer
/// from whoever still writes.
Result<HttpServer::Guest> HttpServer::Core::admit(Via via, int socket) {
  Guest guest{.via = via};
  if (via == Via::Tcp) {
    const auto uid = os::owner_of_other_end(socket);
    guest.peer.uid = uid.value_or(kNobody);
    auto may = uid ? may_enter(guest.peer) : std::unexpected(uid.error());
    if (!may) guest.refusal = Error{Code::Permission, std::move(may).error().message};
  } else {
    guest.peer = GF_TRY(os::peer_of(socket));
    GF_CHECK(may_enter(guest.peer));
  }
  GF_CHECK(admission.take_connection(guest.peer.uid));
  return guest;
}

Principal HttpServer::Core::principal_of(const Guest& guest) {
  return guest.via == Via::Tcp ? identity.of_loopback(guest.peer.uid) : identity.of(guest.peer);
}

void HttpServer::Core::welcome(Via via, Listener::Socket socket) {
  auto guest = admit(via, socket.native_handle());
  if (!guest) return turn_away(socket.native_handle(), guest.error());
  const auto session =
      std::make_shared<Session>(shared_from_this(), std::move(*guest), std::move(socket));
  sessions.insert(session);
  session->read_header();
}

void HttpServer::Core::close() {
  if (std::exchange(closing, true)) return;
  unix_listener.close();
  for (Listener& listener : tcp_listeners) listener.close();
  (void)::unlink(options.socket_path.c_str());  // a stale file is replaced at the next start
  const auto open = sessions;                   // closing takes them out
  for (const auto& session : open) {
    if (session->is_idle() || session->waits()) session->close();
  }
}

void HttpServer::Core::cut_off() {
  worker.reset();  // now, while there is a loop it may post to
  const auto open = sessions;
  for (const auto& session : open) session->close();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(asio::io_context& io,
                                                       Options options,
                                                       Service& service) {
  auto core = std::make_shared<Core>(io, std::move(options), service);
  GF_CHECK(core->listen());
  core->listen_on_loopback();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(core)));  // NOLINT: private
}

HttpServer::HttpServer(std::shared_ptr<Core> core) : core_(std::move(core)) {}

HttpServer::~HttpServer() {
  close();
  core_->cut_off();
}

Result<void> HttpServer::listen_again() {
  return core_->closing ? Result<void>() : core_->listen();
}

std::optional<LoopbackAddress> HttpServer::loopback() const {
  const auto& addresses = core_->options.loopback;
  if (addresses.empty()) return std::nullopt;
  return addresses.front();
}

const std::string& HttpServer::loopback_trouble() const { return core_->loopback_trouble; }

void HttpServer::close() { core_->close(); }

std::vector<std::string> HttpServer::configure(const RoleNames& roles,
                                               const std::vector<std::string>& projects) {
  return core_->identity.configure(roles, projects);
}

}  // namespace gflow::server

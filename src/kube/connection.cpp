// SPDX-License-Identifier: Apache-2.0
#include "kube/connection.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <system_error>

#include "base/free_by.h"
#include "os/fd.h"

namespace gflow::kube {
namespace {

using TlsContext = std::unique_ptr<SSL_CTX, FreeBy<SSL_CTX_free>>;
using Tls = std::unique_ptr<SSL, FreeBy<SSL_free>>;
using Bio = std::unique_ptr<BIO, FreeBy<BIO_free>>;
using Certificate = std::unique_ptr<X509, FreeBy<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;

std::string tls_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "the connection was closed";
  const char* reason = ERR_reason_error_string(code);
  return reason == nullptr ? fmt::format("error {}", code) : reason;
}

Bio bytes_of(const std::string& pem) {
  return Bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(std::min<std::size_t>(pem.size(), INT_MAX))));
}

Result<void> trust_ca(SSL_CTX* context, const std::string& pem) {
  if (pem.empty()) {
    SSL_CTX_set_default_verify_paths(context);
    return {};
  }
  const Bio bytes = bytes_of(pem);
  int read = 0;
  while (const Certificate one{PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one.get());
    ++read;
  }
  ERR_clear_error();  // the end of the file is one
  // A certificate that is trusted by itself may be in there, as the one kube-apiserver makes.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  if (read > 0) return {};
  return fail(Code::Usage, "certificate-authority of the kubeconfig has no certificate (PEM)");
}

Result<void> show_certificate(SSL_CTX* context, const Identity& identity) {
  if (identity.certificate.empty()) return {};
  const Bio bytes = bytes_of(identity.certificate);
  const Certificate own(PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr));
  const Bio key_bytes = bytes_of(identity.key);
  const Key key(PEM_read_bio_PrivateKey(key_bytes.get(), nullptr, nullptr, nullptr));
  const bool ok = own && key && SSL_CTX_use_certificate(context, own.get()) == 1 &&
                  SSL_CTX_use_PrivateKey(context, key.get()) == 1;
  if (!ok) {
    return fail(Code::Usage,
                fmt::format("client-certificate and client-key of the kubeconfig do not go "
                            "together: {}",
                            tls_error()));
  }
  while (Certificate more{PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr)}) {
    SSL_CTX_add_extra_chain_cert(context, more.release());
  }
  ERR_clear_error();
  return {};
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

/// Whether poll(2) says so by then.
bool wait(int socket, short events, Deadline deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wanted{socket, events, 0};
    const auto patience = std::clamp<std::int64_t>(left.count(), 0, INT_MAX);
    const int got = ::poll(&wanted, 1, static_cast<int>(patience));
    if (got > 0) return true;
    if (got == 0) return false;
    if (errno != EINTR) return true;  // what is done next says what is wrong
  }
}

std::unexpected<Error> silent(const std::string& server) {
  return fail(Code::Timeout, fmt::format("the API server {} does not answer in time", server));
}

std::unexpected<Error> broken(const std::string& server, std::string_view why) {
  return fail(Code::Unreachable,
              fmt::format("the connection to the API server {} broke: {}", server, why));
}

Result<os::Fd> connect(const Access& access, Deadline deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(access.host.c_str(), access.port.c_str(), &hints, &found);
  if (error != 0) {
    return fail(Code::Unreachable,
                fmt::format("the API server {}: {}", access.url(), ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, FreeBy<::freeaddrinfo>> owned(found);
  std::string why;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    os::Fd socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) continue;
    int failed = ::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (failed == EINPROGRESS && wait(socket.get(), POLLOUT, deadline)) {
      socklen_t size = sizeof(failed);
      (void)::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
    }
    const int yes = 1;
    (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    if (failed == 0) return socket;
    why = failed == EINPROGRESS ? "no answer" : std::generic_category().message(failed);
  }
  return fail(Code::Unreachable, fmt::format("the API server {}: {}", access.url(), why));
}

}  // namespace

struct Trust::State {
  TlsContext context;
};

Trust::Trust(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trust::~Trust() = default;
Trust::Trust(Trust&&) noexcept = default;
Trust& Trust::operator=(Trust&&) noexcept = default;

Result<Trust> Trust::of(const Access& access, const Identity& identity) {
  auto state = std::make_unique<State>(TlsContext(SSL_CTX_new(TLS_client_method())));
  SSL_CTX* context = state->context.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  GF_CHECK(trust_ca(context, access.ca));
  SSL_CTX_set_verify(context, access.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  GF_CHECK(show_certificate(context, identity));
  return Trust(std::move(state));
}

struct Connection::State {
  std::string server;
  os::Fd socket;
  Tls tls;  ///< null without TLS

  /// After a call of OpenSSL that did not succeed: waits for what it wants. Errors: as it is over.
  Result<void> go_on(int returned, Deadline deadline) {
    const int error = SSL_get_error(tls.get(), returned);
    const bool reads = error == SSL_ERROR_WANT_READ;
    if (!reads && error != SSL_ERROR_WANT_WRITE) return broken(server, tls_error());
    if (!wait(socket.get(), reads ? POLLIN : POLLOUT, deadline)) return silent(server);
    return {};
  }

  Result<void> shake_hands(const Access& access, SSL_CTX* context, Deadline deadline) {
    tls.reset(SSL_new(context));
    SSL_set_fd(tls.get(), socket.get());
    const std::string& name = access.server_name.empty() ? access.host : access.server_name;
    if (is_address(name)) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls.get()), name.c_str());
    } else {
      SSL_set1_host(tls.get(), name.c_str());
      SSL_set_tlsext_host_name(tls.get(), name.c_str());
    }
    while (true) {
      ERR_clear_error();
      const int done = SSL_connect(tls.get());
      if (done == 1) return {};
      const long verified = SSL_get_verify_result(tls.get());
      if (access.verify && verified != X509_V_OK) {
        ERR_clear_error();
        return fail(Code::Permission,
                    fmt::format("the certificate of the API server {} is not trusted: {}; see "
                                "certificate-authority in {}",
                                server,
                                X509_verify_cert_error_string(verified),
                                access.source));
      }
      GF_CHECK(go_on(done, deadline));
    }
  }
};

Connection::Connection(std::unique_ptr<State> state) : state_(std::move(state)) {}
Connection::~Connection() = default;
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;

Result<Connection> Connection::open(const Access& access, const Trust& trust, Deadline deadline) {
  auto state = std::make_unique<State>();
  state->server = access.url();
  state->socket = GF_TRY(connect(access, deadline));
  if (access.tls) {
    GF_CHECK(state->shake_hands(access, trust.state_->context.get(), deadline));
  }
  return Connection(std::move(state));
}

Result<void> Connection::send(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    ssize_t sent = 0;
    if (state_->tls) {
      ERR_clear_error();
      const std::size_t most = std::min<std::size_t>(bytes.size(), INT_MAX);
      sent = SSL_write(state_->tls.get(), bytes.data(), static_cast<int>(most));
      if (sent <= 0) GF_CHECK(state_->go_on(static_cast<int>(sent), deadline));
    } else {
      sent = ::send(state_->socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) {
        return broken(state_->server, std::generic_category().message(errno));
      }
      if (sent < 0 && !wait(state_->socket.get(), POLLOUT, deadline)) {
        return silent(state_->server);
      }
    }
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<std::size_t> Connection::receive(std::span<char> buffer, Deadline deadline) {
  while (true) {
    if (state_->tls) {
      ERR_clear_error();
      const int got = SSL_read(state_->tls.get(), buffer.data(), static_cast<int>(buffer.size()));
      if (got > 0) return static_cast<std::size_t>(got);
      if (SSL_get_error(state_->tls.get(), got) == SSL_ERROR_ZERO_RETURN) return 0;
      GF_CHECK(state_->go_on(got, deadline));
      continue;
    }
    const ssize_t got = ::recv(state_->socket.get(), buffer.data(), buffer.size(), 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EAGAIN && errno != EINTR) {
      return broken(state_->server, std::generic_category().message(errno));
    }
    if (!wait(state_->socket.get(), POLLIN, deadline)) return silent(state_->server);
  }
}

bool Connection::is_idle() const {
  pollfd wanted{state_->socket.get(), POLLIN, 0};
  return ::poll(&wanted, 1, 0) == 0;
}

int Connection::socket() const { return state_->socket.get(); }

}  // namespace gflow::kube

// SPDX-License-Identifier: Apache-2.0
// gflow-tls HOST PORT: connects there with TLS, says on its stdin, which is a socket, whose
// certificate it met, and carries bytes both ways. A program of its own, so that commands that do
// not leave the machine start without OpenSSL. Whom to believe is decided by who started it: it
// sends nothing before something comes.
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace {

constexpr int kChannel = 0;
constexpr int kPatienceSeconds = 10;

bool write_all(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t put = ::send(kChannel, data, size, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    data += put;
    size -= static_cast<std::size_t>(put);
  }
  return true;
}

/// "error TEXT": the end.
int give_up(const std::string& text) {
  const std::string line = "error " + text + "\n";
  (void)write_all(line.data(), line.size());
  return 1;
}

std::string tls_error() {
  const char* reason = ERR_reason_error_string(ERR_get_error());
  return reason == nullptr ? "the connection was closed" : reason;
}

void set_patience(int socket, int seconds) {
  const timeval most{seconds, 0};
  (void)::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  (void)::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

/// A machine that is gone without a word, or a network that is, is noticed within a minute, also
/// where nothing is to be said for hours.
void notice_silence(int socket) {
  constexpr std::array<std::pair<int, int>, 3> kSeconds{
      {{TCP_KEEPIDLE, 20}, {TCP_KEEPINTVL, 10}, {TCP_KEEPCNT, 3}}};
  const int yes = 1;
  (void)::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  for (const auto& [option, value] : kSeconds) {
    (void)::setsockopt(socket, IPPROTO_TCP, option, &value, sizeof value);
  }
}

/// A connected socket, or -1 with why.
int connect_to(const char* host, const char* port, std::string& why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host, port, &hints, &found); failed != 0) {
    why = ::gai_strerror(failed);
    return -1;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int socket = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    set_patience(socket, kPatienceSeconds);
    if (::connect(socket, one->ai_addr, one->ai_addrlen) == 0) return socket;
    why = errno == EINPROGRESS ? "no answer" : std::generic_category().message(errno);
    ::close(socket);
  }
  return -1;
}

std::string fingerprint_line(SSL* tls) {
  const std::unique_ptr<X509, void (*)(X509*)> certificate(SSL_get1_peer_certificate(tls),
                                                           X509_free);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (!certificate || X509_digest(certificate.get(), EVP_sha256(), digest.data(), &size) != 1) {
    return "error it shows no certificate\n";
  }
  std::string text = "ok SHA256:";
  for (unsigned i = 0; i < size; ++i) {
    std::array<char, 3> hex{};
    (void)std::snprintf(hex.data(), hex.size(), "%02x", digest.at(i));
    text += hex.data();
  }
  return text + "\n";
}

/// From the channel into TLS; false at the end.
bool carry_out(SSL* tls) {
  std::array<char, 16 * 1024> buffer;  // NOLINT: filled by recv
  const ssize_t got = ::recv(kChannel, buffer.data(), buffer.size(), 0);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  return got > 0 && SSL_write(tls, buffer.data(), static_cast<int>(got)) > 0;
}

/// The other way.
bool carry_in(SSL* tls) {
  std::array<char, 16 * 1024> buffer;  // NOLINT: filled by SSL_read
  const int got = SSL_read(tls, buffer.data(), static_cast<int>(buffer.size()));
  if (got <= 0) return SSL_get_error(tls, got) == SSL_ERROR_WANT_READ;
  return write_all(buffer.data(), static_cast<std::size_t>(got));
}

void carry(SSL* tls, int socket) {
  while (true) {
    std::array<pollfd, 2> ends{{{kChannel, POLLIN, 0}, {socket, POLLIN, 0}}};
    const bool has_rest = SSL_pending(tls) > 0;
    if (!has_rest && ::poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) return;
    if ((has_rest || ends[1].revents != 0) && !carry_in(tls)) return;
    if (ends[0].revents != 0 && !carry_out(tls)) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return give_up("usage: gflow-tls HOST PORT");
  (void)std::signal(SIGPIPE, SIG_IGN);
  std::string why = "no address";
  const int socket = connect_to(argv[1], argv[2], why);
  if (socket < 0) return give_up(why);
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                             SSL_CTX_free);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);  // who started this pins it
  SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  const std::unique_ptr<SSL, void (*)(SSL*)> owned(SSL_new(context.get()), SSL_free);
  SSL* tls = owned.get();
  SSL_set_fd(tls, socket);
  std::array<unsigned char, sizeof(in6_addr)> address{};
  const bool is_address = ::inet_pton(AF_INET, argv[1], address.data()) == 1 ||
                          ::inet_pton(AF_INET6, argv[1], address.data()) == 1;
  if (!is_address) SSL_set_tlsext_host_name(tls, argv[1]);
  if (SSL_connect(tls) != 1) return give_up("TLS: " + tls_error());
  set_patience(socket, 0);
  notice_silence(socket);
  const std::string line = fingerprint_line(tls);
  if (!write_all(line.data(), line.size())) return 1;
  carry(tls, socket);
  (void)SSL_shutdown(tls);
  return 0;
}

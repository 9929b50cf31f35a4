// SPDX-License-Identifier: Apache-2.0
#include "server/tls_context.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <iterator>

#include "base/free_by.h"
#include "base/text.h"
#include "base/translate.h"
#include "os/file.h"

namespace gflow::server {
namespace {

using Key = std::unique_ptr<EVP_PKEY, FreeBy<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreeBy<X509_free>>;
using Text = std::unique_ptr<BIO, FreeBy<BIO_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, FreeBy<X509_EXTENSION_free>>;

/// What OpenSSL says went wrong, and why first.
std::string why() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return reason == nullptr ? "unknown" : reason;
}

std::unexpected<Error> unusable(const std::string& path, const std::string& what) {
  return fail(Code::Usage, tr_format("'{}' is not {}: {}", printable(path), what, why()));
}

Result<void> check_key_file(const std::string& path) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return os::errno_error("read", path);
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) == 0) return {};
  return fail(Code::Permission,
              tr_format("others can read the key '{}': chmod 600 it, and make another one if they "
                        "did",
                        printable(path)));
}

/// Whether it says that it is for any use, and nothing else of it is against its being a client's.
bool is_for_any_use(X509* certificate) {
  const std::uint32_t has = X509_get_extension_flags(certificate);
  if ((has & EXFLAG_XKUSAGE) == 0 || (has & EXFLAG_NSCERT) != 0) return false;
  constexpr std::uint32_t kShakesHands = KU_DIGITAL_SIGNATURE | KU_KEY_AGREEMENT;
  return (X509_get_extended_key_usage(certificate) & XKU_ANYEKU) != 0 &&
         (X509_get_key_usage(certificate) & kShakesHands) != 0;
}

/// As OpenSSL does, which takes a client's certificate that does not say what it is for, but not
/// one that is for any use (RFC 5280, 4.2.1.12).
int check_use(int is_good, X509_STORE_CTX* chain) {
  const bool is_its_use = X509_STORE_CTX_get_error(chain) == X509_V_ERR_INVALID_PURPOSE &&
                          X509_STORE_CTX_get_error_depth(chain) == 0;
  if (is_good == 1 || !is_its_use) return is_good;
  if (!is_for_any_use(X509_STORE_CTX_get_current_cert(chain))) return 0;
  X509_STORE_CTX_set_error(chain, X509_V_OK);
  return 1;
}

Result<void> use_certificate(SSL_CTX* context, const TlsFiles& files) {
  GF_CHECK(os::read_regular_file(files.certificate));
  GF_CHECK(check_key_file(files.key));
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return unusable(files.certificate, tr("a certificate (PEM)"));
  }
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return unusable(files.key, tr("the key (PEM) of the certificate"));
  }
  return {};
}

Result<void> use_client_ca(SSL_CTX* context, const TlsFiles& files) {
  if (files.client_ca.empty()) return {};
  GF_CHECK(os::read_regular_file(files.client_ca));
  if (SSL_CTX_load_verify_locations(context, files.client_ca.c_str(), nullptr) != 1) {
    return unusable(files.client_ca, tr("a file of certificates (PEM)"));
  }
  SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(files.client_ca.c_str()));
  // Who shows none may have a token.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, check_use);
  return {};
}

/// "IP:10.0.0.5", "DNS:lab1".
std::string subject_names(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) {
    const bool is_v4 = name.find_first_not_of("0123456789.") == std::string::npos;
    const bool is_ip = is_v4 || name.contains(':');
    all += fmt::format("{}{}:{}", all.empty() ? "" : ",", is_ip ? "IP" : "DNS", name);
  }
  return all;
}

bool add_extension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX where;
  X509V3_set_ctx_nodb(&where);
  X509V3_set_ctx(&where, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &where, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

Certificate self_signed(EVP_PKEY* key,
                        const std::string& called,
                        const std::vector<std::string>& names) {
  constexpr long kTenYears = 3650L * 86'400;
  constexpr int kVersion3 = 2;
  Certificate made(X509_new());
  X509_set_version(made.get(), kVersion3);
  std::uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial);  // NOLINT: its bytes
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(made.get()), serial >> 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -86'400);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), kTenYears);
  X509_set_pubkey(made.get(), key);
  X509_NAME* subject = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(subject,
                             "CN",
                             MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(called.c_str()),  // NOLINT
                             -1,
                             -1,
                             0);
  X509_set_issuer_name(made.get(), subject);
  const bool is_whole = add_extension(made.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                        add_extension(made.get(), NID_key_usage, "critical,digitalSignature") &&
                        add_extension(made.get(), NID_ext_key_usage, "serverAuth") &&
                        add_extension(made.get(), NID_subject_alt_name, subject_names(names)) &&
                        X509_sign(made.get(), key, EVP_sha256()) != 0;
  return is_whole ? std::move(made) : nullptr;
}

template <typename Write>
std::string pem_of(const Write& write) {
  const Text text(BIO_new(BIO_s_mem()));
  if (write(text.get()) != 1) return "";
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

/// Whole or not there: a daemon that is killed meanwhile makes it anew.
Result<void> put_file(const std::string& path, const std::string& content) {
  const std::string part = path + ".part";
  GF_CHECK(os::write_file(part, content, 0600));
  if (::chmod(part.c_str(), 0600) != 0) return os::errno_error("set the mode of", part);
  if (::rename(part.c_str(), path.c_str()) != 0) return os::errno_error("rename", part);
  return {};
}

}  // namespace

void FreeTlsContext::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

namespace {

/// That shows nothing yet.
Result<TlsContext> bare_context() {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return fail(Code::Failure, "TLS: " + why());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(),
                      SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                          SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  // Forward secrecy and authenticated encryption; those of 1.3 are all so.
  if (SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20") != 1 ||
      SSL_CTX_set1_groups_list(context.get(), "X25519:P-256:P-384") != 1) {
    return fail(Code::Failure, "TLS: " + why());
  }
  // Nothing is kept of a connection for the next one.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                       SSL_MODE_RELEASE_BUFFERS);
  return context;
}

}  // namespace

Result<TlsContext> make_tls_context(const TlsFiles& files) {
  TlsContext context = GF_TRY(bare_context());
  GF_CHECK(use_certificate(context.get(), files));
  GF_CHECK(use_client_ca(context.get(), files));
  return context;
}

Result<TlsContext> make_tls_context(const TlsPair& pair) {
  TlsContext context = GF_TRY(bare_context());
  const Text shown(
      BIO_new_mem_buf(pair.certificate.data(), static_cast<int>(pair.certificate.size())));
  const Text secret(BIO_new_mem_buf(pair.key.data(), static_cast<int>(pair.key.size())));
  const Certificate certificate(PEM_read_bio_X509(shown.get(), nullptr, nullptr, nullptr));
  const Key key(PEM_read_bio_PrivateKey(secret.get(), nullptr, nullptr, nullptr));
  if (SSL_CTX_use_certificate(context.get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    return fail(Code::Failure, "TLS: " + why());
  }
  return context;
}

Result<void> check_tls_files(const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return fail(Code::Usage,
                tr("[api] tls_certificate and tls_key go together: write both into gflow.toml, or "
                   "neither"));
  }
  if (!files.certificate.empty()) {
    GF_CHECK(make_tls_context(files));
    return {};
  }
  const TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return fail(Code::Failure, "TLS: " + why());
  return use_client_ca(context.get(), files);
}

std::string fingerprint_of(const TlsContext& context) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const X509* certificate = SSL_CTX_get0_certificate(context.get());
  if (certificate == nullptr || X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) {
    return "";
  }
  std::string text = "SHA256:";
  for (unsigned i = 0; i < size; ++i) {
    fmt::format_to(std::back_inserter(text), "{:02x}", digest.at(i));
  }
  return text;
}

std::optional<WallTime> expiry_of(const TlsContext& context) {
  const X509* certificate = SSL_CTX_get0_certificate(context.get());
  std::tm calendar{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &calendar) != 1) {
    return std::nullopt;
  }
  const std::time_t seconds = ::timegm(&calendar);
  if (seconds < 0) return std::nullopt;
  return WallTime(std::chrono::seconds(seconds));
}

Result<TlsPair> own_certificate(const std::string& called, const std::vector<std::string>& names) {
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return fail(Code::Failure, "make a key: " + why());
  const Certificate certificate = self_signed(key.get(), called, names);
  if (!certificate) return fail(Code::Failure, "make a certificate: " + why());
  return TlsPair{
      .certificate = pem_of([&](BIO* text) { return PEM_write_bio_X509(text, certificate.get()); }),
      .key = pem_of([&](BIO* text) {
        return PEM_write_bio_PrivateKey(text, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
      })};
}

Result<void> make_own_certificate(const TlsFiles& files, const std::vector<std::string>& names) {
  const bool has_key = GF_TRY(os::is_there(files.key));
  const bool has_certificate = GF_TRY(os::is_there(files.certificate));
  if (has_key && has_certificate) return {};
  const TlsPair pair = GF_TRY(own_certificate("gflowd on " + names.front().substr(0, 50), names));
  // Of an old pair nothing is left beside half of a new one.
  if (has_certificate && ::unlink(files.certificate.c_str()) != 0) {
    return os::errno_error("remove", files.certificate);
  }
  GF_CHECK(put_file(files.key, pair.key));
  return put_file(files.certificate, pair.certificate);
}

}  // namespace gflow::server

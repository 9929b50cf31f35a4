// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

struct ssl_ctx_st;

namespace gflow::server {

/// What gflowd shows who connects from elsewhere, and whom it believes.
struct TlsFiles {
  std::string certificate;  ///< PEM, its chain behind it
  std::string key;          ///< PEM
  std::string client_ca;    ///< PEM; "": no certificates of clients are asked for
};

struct FreeTlsContext {
  void operator()(ssl_ctx_st* context) const;
};
/// TLS 1.2 and 1.3 with forward secrecy and authenticated encryption only.
using TlsContext = std::unique_ptr<ssl_ctx_st, FreeTlsContext>;
/// Errors: Usage for files that are no certificate, no key or not of each other; as reading a file
/// does; Permission for a key that others can read.
[[nodiscard]] Result<TlsContext> make_tls_context(const TlsFiles& files);
/// Whether those of them that are named can be used. Errors: as above; Usage for one of certificate
/// and key alone.
[[nodiscard]] Result<void> check_tls_files(const TlsFiles& files);

/// SHA-256 of its first certificate: "SHA256:" and hex digits, as clients pin it.
[[nodiscard]] std::string fingerprint_of(const TlsContext& context);

/// When it ceases to be valid; empty where that is beyond what can be told.
[[nodiscard]] std::optional<WallTime> expiry_of(const TlsContext& context);

/// What is shown, and the key of it: PEM.
struct TlsPair {
  std::string certificate;
  std::string key;
};
/// A key and a certificate signed by itself: ECDSA on P-256, for ten years, for these names;
/// `called`: its common name.
[[nodiscard]] Result<TlsPair> own_certificate(const std::string& called,
                                              const std::vector<std::string>& names);
/// As above, of a pair that is in no file; asks clients for no certificate.
[[nodiscard]] Result<TlsContext> make_tls_context(const TlsPair& pair);
/// Makes own_certificate() in these files, unless both are there; the key readable by its owner
/// only.
[[nodiscard]] Result<void> make_own_certificate(const TlsFiles& files,
                                                const std::vector<std::string>& names);

}  // namespace gflow::server

// SPDX-License-Identifier: Apache-2.0
#include "server/tls_context.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "os/file.h"

namespace gflow::server {
namespace {

class Directory {
 public:
  Directory() {
    std::string name = ::testing::TempDir() + "/tls-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~Directory() { (void)os::remove_tree(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  [[nodiscard]] TlsFiles files() const { return {path_ + "/tls.crt", path_ + "/tls.key", ""}; }

 private:
  std::string path_;
};

TEST(TlsContext, TheCertificateMadeIsKeptAndItsKeyIsItsOwnersOnly) {
  const Directory directory;
  const TlsFiles files = directory.files();
  ASSERT_TRUE(make_own_certificate(files, {"lab1", "10.0.0.5", "fe80::1"}));
  struct stat facts{};
  ASSERT_EQ(::stat(files.key.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  const auto first = make_tls_context(files);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(make_own_certificate(files, {"other"}));
  EXPECT_EQ(fingerprint_of(make_tls_context(files).value()), fingerprint_of(*first));
  EXPECT_EQ(fingerprint_of(*first).size(), std::string("SHA256:").size() + 64);
}

TEST(TlsContext, AKeyOthersCanReadIsRefused) {
  const Directory directory;
  const TlsFiles files = directory.files();
  ASSERT_TRUE(make_own_certificate(files, {"lab1"}));
  ASSERT_EQ(::chmod(files.key.c_str(), 0640), 0);
  const auto made = make_tls_context(files);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::Permission);
}

TEST(TlsContext, WhatIsNoCertificateOrNotItsKeyIsRefused) {
  const Directory one;
  const Directory other;
  ASSERT_TRUE(make_own_certificate(one.files(), {"lab1"}));
  ASSERT_TRUE(make_own_certificate(other.files(), {"lab1"}));
  EXPECT_FALSE(make_tls_context({one.files().certificate, other.files().key, ""}));
  EXPECT_FALSE(make_tls_context({one.files().key, one.files().key, ""}));
  EXPECT_FALSE(make_tls_context({one.files().certificate, one.files().certificate, ""}));
  EXPECT_FALSE(make_tls_context({one.files().certificate + "x", one.files().key, ""}));
  EXPECT_FALSE(make_tls_context({one.files().certificate, one.files().key, one.files().key}));
}

TEST(TlsContext, HalfAPairIsMadeAnew) {
  const Directory directory;
  const TlsFiles files = directory.files();
  ASSERT_TRUE(make_own_certificate(files, {"lab1"}));
  ASSERT_EQ(::unlink(files.key.c_str()), 0);
  ASSERT_TRUE(make_own_certificate(files, {"lab1"}));
  EXPECT_TRUE(make_tls_context(files));
}

}  // namespace
}  // namespace gflow::server

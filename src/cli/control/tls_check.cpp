// SPDX-License-Identifier: Apache-2.0
#include "cli/control/tls_check.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/text.h"
#include "base/translate.h"
#include "os/child.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::cli {
namespace {

/// The settings whose files go together.
struct Files {
  std::string certificate;
  std::string key;
  std::string client_ca;
};

/// What a program prints until it ends.
Result<std::string> output_of(const os::Child& child) {
  std::string all;
  std::array<char, 4096> part{};
  while (true) {
    pollfd wanted{child.channel.get(), POLLIN, 0};
    (void)::poll(&wanted, 1, -1);
    const ssize_t got = ::read(child.channel.get(), part.data(), part.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return os::errno_error("read from", "gflowd");
    if (got == 0) return all;
    all.append(part.data(), static_cast<std::size_t>(got));
  }
}

/// What gflowd has against them; "" for nothing.
Result<std::string> trouble_with(const Files& files) {
  const std::string gflowd = os::program_directory() + "/gflowd";
  os::ChildOptions options{.argv = {gflowd}, .environment = {}};
  for (const std::string& file : {files.certificate, files.key, files.client_ca}) {
    options.argv.push_back("--check-tls=" + file);
  }
  const os::Child child = GF_TRY(os::start_child(options));
  std::string told = GF_TRY(output_of(child));
  pollfd ended{child.process.get(), POLLIN, 0};
  (void)::poll(&ended, 1, -1);
  (void)os::reap(child);
  return told;
}

/// Where the first of them is set; 1 if none is.
int line_of(const config::Config& config, std::initializer_list<std::string_view> settings) {
  for (const std::string_view setting : settings) {
    const auto found = config.origins.find(setting);
    if (found == config.origins.end()) continue;
    const auto line = parse_number(found->second.substr(found->second.rfind(':') + 1));
    if (line) return static_cast<int>(*line);
  }
  return 1;
}

bool is_for_others(const std::string& file) {
  return !file.empty() && ::access(file.c_str(), R_OK) != 0 && errno == EACCES;
}

}  // namespace

Result<config::Checked> check_tls(const config::Config& config, const std::string& path) {
  config::Checked checked;
  if (config.tls_listen.empty()) return checked;
  for (const std::string& file : {config.tls_certificate, config.tls_key, config.client_ca}) {
    if (!is_for_others(file)) continue;
    checked.notes.push_back(tr_format(
        "you may not read '{}': whether gflowd can use it is not known", printable(file)));
    return checked;
  }
  const auto check = [&](const Files& files, int line) -> Result<void> {
    std::string trouble = GF_TRY(trouble_with(files));
    if (!trouble.empty()) checked.problems.push_back({path, line, std::move(trouble)});
    return {};
  };
  GF_CHECK(check({config.tls_certificate, config.tls_key, ""},
                 line_of(config, {"api.tls_certificate", "api.tls_key"})));
  GF_CHECK(check({"", "", config.client_ca}, line_of(config, {"api.client_ca"})));
  return checked;
}

}  // namespace gflow::cli

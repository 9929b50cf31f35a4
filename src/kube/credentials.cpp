// SPDX-License-Identifier: Apache-2.0
#include "kube/credentials.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/time.h"
#include "os/child.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::kube {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr auto kReadAgain = 60s;
constexpr auto kPluginPatience = 60s;
constexpr std::size_t kMostSaid = std::size_t{1} << 20;

/// The path of a program, as a shell finds it.
Result<std::string> find_program(const std::string& name) {
  if (name.contains('/')) return name;
  const std::string path = os::environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (const std::string_view folder : split(path, ':')) {
    const std::string file = std::string(folder) + "/" + name;
    if (!folder.empty() && os::is_file(file)) return file;
  }
  return fail(Code::NotFound,
              fmt::format("the program '{}' of the kubeconfig (exec) is not installed here",
                          printable(name)));
}

/// All that it prints until it ends.
Result<std::string> output_of(const os::ChildOptions& options) {
  os::Child child = GF_TRY(os::start_child(options));
  (void)::shutdown(child.channel.get(), SHUT_WR);  // nobody is there to be asked
  const auto end = std::chrono::steady_clock::now() + kPluginPatience;
  std::string said;
  std::array<char, 4096> buffer{};
  while (said.size() < kMostSaid) {
    pollfd wanted{child.channel.get(), POLLIN, 0};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left <= 0ms) break;
    if (::poll(&wanted, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t got = ::recv(child.channel.get(), buffer.data(), buffer.size(), 0);
    if (got == 0) break;
    if (got < 0 && errno != EAGAIN && errno != EINTR) break;
    if (got > 0) said.append(buffer.data(), static_cast<std::size_t>(got));
  }
  pollfd gone{child.process.get(), POLLIN, 0};
  if (::poll(&gone, 1, 1000) <= 0) {
    (void)::kill(-child.pid, SIGKILL);
    (void)::poll(&gone, 1, -1);
  }
  (void)os::reap(child);
  return said;
}

struct Said {
  Identity identity;
  std::optional<WallTime> expires;
};

/// An ExecCredential.
Result<Said> read_said(const std::string& program, const std::string& text) {
  const auto refuse = [&program] {
    return fail(Code::Permission,
                fmt::format("{} (exec of the kubeconfig) printed no ExecCredential with a token or "
                            "a certificate: run it by hand",
                            printable(program)));
  };
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("status")) return refuse();
  const Json& status = document["status"];
  if (!status.is_object()) return refuse();
  const auto word = [&status](const char* key) {
    const auto at = status.find(key);
    return at != status.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  Said said{{word("token"), word("clientCertificateData"), word("clientKeyData")}, {}};
  if (said.identity.token.empty() && said.identity.certificate.empty()) return refuse();
  if (const auto at = parse_rfc3339(word("expirationTimestamp"))) said.expires = *at;
  return said;
}

Result<Said> ask_plugin(const ExecPlugin& plugin) {
  os::ChildOptions options;
  options.argv = {GF_TRY(find_program(plugin.command))};
  options.argv.insert(options.argv.end(), plugin.arguments.begin(), plugin.arguments.end());
  options.environment = plugin.environment;
  const Json told = {{"apiVersion", plugin.api_version},
                     {"kind", "ExecCredential"},
                     {"spec", {{"interactive", false}}}};
  options.environment.push_back("KUBERNETES_EXEC_INFO=" + told.dump());
  return read_said(plugin.command, GF_TRY(output_of(options)));
}

}  // namespace

Result<Identity> Credentials::identity() {
  const std::lock_guard lock(mutex_);
  if (kept_ && Clock::now() < until_) return *kept_;
  kept_ = GF_TRY(fresh());
  return *kept_;
}

Result<Identity> Credentials::fresh() {
  until_ = Clock::now() + kReadAgain;
  Identity identity{access_.token, access_.certificate, access_.key};
  if (!access_.token_file.empty()) {
    identity.token = trim(GF_TRY(os::read_file(access_.token_file)));
  } else if (access_.exec) {
    const Said said = GF_TRY(ask_plugin(*access_.exec));
    if (!said.identity.token.empty()) identity.token = said.identity.token;
    if (!said.identity.certificate.empty()) {
      identity.certificate = said.identity.certificate;
      identity.key = said.identity.key;
    }
    until_ = Clock::time_point::max();  // until it is refused
    if (said.expires) until_ = Clock::now() + (*said.expires - os::now().wall) - 10s;
  }
  return identity;
}

void Credentials::refused() {
  const std::lock_guard lock(mutex_);
  kept_.reset();
}

}  // namespace gflow::kube

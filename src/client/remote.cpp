// SPDX-License-Identifier: Apache-2.0
#include "client/remote.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/text.h"
#include "base/translate.h"
#include "client/cluster.h"
#include "os/file.h"
#include "os/paths.h"

namespace gflow::client {
namespace {

constexpr std::string_view kScheme = "https://";
constexpr std::string_view kServer = "remote:";
constexpr std::string_view kPort = "8443";  // where none is named

std::string directory() {
  const std::string config = os::user_paths().config_file;
  return config.substr(0, config.rfind('/')) + "/remotes";
}

std::string path_of(std::string_view name) { return fmt::format("{}/{}", directory(), name); }

/// "key value" lines.
Result<Remote> read_remote(const std::string& name) {
  const std::string path = path_of(name);
  const std::string text = GF_TRY(os::read_file(path, Memory::mib(1)));
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return os::errno_error("look at", path);
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(Code::Permission,
                tr_format("others can read '{}', which holds a token: chmod 600 it, and revoke the "
                          "token if they did",
                          printable(path)));
  }
  Remote remote;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, space);
    const std::string value(line.substr(space + 1));
    if (key == "url") remote = GF_TRY(parse_remote_url(value));
    if (key == "fingerprint") remote.fingerprint = value;
    if (key == "token") remote.token = value;
  }
  remote.name = name;
  if (remote.host.empty() || remote.fingerprint.empty()) {
    return fail(Code::Failure,
                tr_format("'{}' is not as 'gctl remote add' writes it: remove it and add it again",
                          printable(path)));
  }
  return remote;
}

bool is_one_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return static_cast<unsigned char>(c) > ' ' && static_cast<unsigned char>(c) < 0x7f;
  });
}

}  // namespace

std::string Remote::authority() const {
  return host.contains(':') ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string Remote::url() const { return std::string(kScheme) + authority(); }

Result<Remote> parse_remote_url(std::string_view url) {
  std::string_view rest = url.starts_with(kScheme) ? url.substr(kScheme.size()) : "";
  if (rest.ends_with('/')) rest.remove_suffix(1);
  Remote remote;
  const bool has_brackets = rest.starts_with('[');
  const std::size_t end = has_brackets ? rest.find(']') : rest.find(':');
  if (!has_brackets || end != std::string_view::npos) {
    remote.host = rest.substr(has_brackets ? 1 : 0, has_brackets ? end - 1 : end);
    const std::string_view after =
        end == std::string_view::npos ? "" : rest.substr(has_brackets ? end + 1 : end);
    remote.port = after.empty() ? kPort : after.substr(1);
  }
  const auto port = parse_number(remote.port);
  const bool is_whole = is_one_word(remote.host) && port && *port > 0 && *port <= 65'535 &&
                        remote.host.find_first_of("/@?#[]\\") == std::string::npos;
  if (is_whole) return remote;
  return fail(Code::Usage,
              tr_format("'{}' is not the URL of a gflowd, as https://lab1:8443",
                        printable(url.substr(0, 200))));
}

Result<void> check_remote_name(std::string_view name) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const bool is_name = !name.empty() && name.size() <= 64 && name.front() != '.' &&
                       name.find_first_not_of(kLetters) == std::string_view::npos;
  if (is_cluster(name)) {
    return fail(Code::Usage,
                is_slurm(name) ? tr("'slurm' is the cluster of Slurm: give it another name")
                               : tr("'kube' is the Kubernetes cluster: give it another name"));
  }
  if (is_name) return {};
  return fail(Code::Usage,
              tr_format("'{}' is not a name: 1 to 64 letters, digits, '.', '-' and '_'",
                        printable(name.substr(0, 100))));
}

Result<std::vector<Remote>> remotes(const std::function<void(const Error&)>& spoilt) {
  std::vector<Remote> all;
  if (!os::is_directory(directory())) return all;
  std::vector<std::string> names = GF_TRY(os::names_in(directory()));
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (!check_remote_name(name)) continue;
    if (auto remote = read_remote(name)) {
      all.push_back(*std::move(remote));
    } else {
      spoilt(remote.error());
    }
  }
  return all;
}

namespace {

/// Of one URL: each has a token of its own, so that none is taken for another.
Result<std::optional<Remote>> find_by_url(const std::string& url) {
  std::optional<Remote> found;
  std::optional<Error> trouble;
  for (Remote& remote : GF_TRY(remotes([&](const Error& error) { trouble = error; }))) {
    if (remote.url() != url) continue;
    if (found) {
      return fail(Code::Usage,
                  tr_format("{} is '{}' and '{}' here: say which", url, found->name, remote.name));
    }
    found = std::move(remote);
  }
  if (!found && trouble) return std::unexpected(*std::move(trouble));
  return found;
}

}  // namespace

Result<Remote> find_remote(const std::string& name_or_url) {
  if (is_remote(name_or_url)) return find_remote(name_or_url.substr(kServer.size()));
  if (!name_or_url.contains("://")) {
    GF_CHECK(check_remote_name(name_or_url));
    auto found = read_remote(name_or_url);
    if (found || found.error().code != Code::NotFound) return found;
  } else {
    const std::string url = GF_TRY(parse_remote_url(name_or_url)).url();
    if (auto found = GF_TRY(find_by_url(url))) return *std::move(found);
  }
  return fail(Code::NotFound,
              tr_format("'{}' is not known here: 'gctl remote add NAME https://HOST:PORT' first",
                        printable(name_or_url.substr(0, 200))));
}

Result<void> keep_remote(const Remote& remote) {
  GF_CHECK(check_remote_name(remote.name));
  GF_CHECK(os::make_own_directory(directory()));
  const std::string path = path_of(remote.name);
  const std::string part = fmt::format("{}/.{}.{}", directory(), remote.name, ::getpid());
  std::string text = fmt::format("url {}\nfingerprint {}\n", remote.url(), remote.fingerprint);
  if (!remote.token.empty()) text += fmt::format("token {}\n", remote.token);
  GF_CHECK(os::write_file(part, text, 0600));
  if (::rename(part.c_str(), path.c_str()) != 0) return os::errno_error("rename", part);
  return {};
}

Result<void> forget_remote(const std::string& name) {
  GF_CHECK(check_remote_name(name));
  if (::unlink(path_of(name).c_str()) == 0) return {};
  if (errno != ENOENT) return os::errno_error("remove", path_of(name));
  return fail(Code::NotFound,
              tr_format("there is no remote '{}'; 'gctl remote list' lists them", printable(name)));
}

std::string remote_server(std::string_view name_or_url) {
  return std::string(kServer) + std::string(name_or_url);
}

bool is_remote(std::string_view server) { return server.starts_with(kServer); }

}  // namespace gflow::client

// SPDX-License-Identifier: Apache-2.0
#include "kube/access.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/base64.h"
#include "base/text.h"
#include "config/yaml.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::kube {
namespace {

using config::Yaml;

constexpr std::string_view kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";

/// A value by its key; null where there is none, or this is no map.
const Yaml* entry_at(const Yaml* in, std::string_view key) {
  const auto* entries = in == nullptr ? nullptr : std::get_if<std::vector<Yaml::Entry>>(&in->value);
  if (entries == nullptr) return nullptr;
  const auto at = std::ranges::find(*entries, key, &Yaml::Entry::key);
  return at == entries->end() ? nullptr : &at->value;
}

std::string word_at(const Yaml* in, std::string_view key) {
  const Yaml* value = entry_at(in, key);
  const auto* written = value == nullptr ? nullptr : std::get_if<std::string>(&value->value);
  return written == nullptr ? std::string() : *written;
}

const std::vector<Yaml>& items_at(const Yaml* in, std::string_view key) {
  static const std::vector<Yaml> none;
  const Yaml* value = entry_at(in, key);
  const auto* items = value == nullptr ? nullptr : std::get_if<std::vector<Yaml>>(&value->value);
  return items == nullptr ? none : *items;
}

/// A file of those that are read together.
struct File {
  std::string path;
  Yaml content;
};

struct Named {
  const File* file = nullptr;
  const Yaml* value = nullptr;
};

/// "cluster" of the one of that name in "clusters": of the first file that has it.
Named find_named(const std::vector<File>& files,
                 std::string_view lists,
                 std::string_view what,
                 const std::string& name) {
  for (const File& file : files) {
    for (const Yaml& one : items_at(&file.content, lists)) {
      if (word_at(&one, "name") == name) return {&file, entry_at(&one, what)};
    }
  }
  return {};
}

std::string beside(const std::string& file, const std::string& path) {
  if (path.empty() || path.starts_with('/')) return path;
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? path : file.substr(0, slash + 1) + path;
}

/// What stands in KEY-data, in base64, or in the file that KEY names.
Result<std::string> content_of(const Named& in, const std::string& key) {
  if (const std::string data = word_at(in.value, key + "-data"); !data.empty()) {
    const auto bytes = api::base64_decode(data);
    if (bytes) return *bytes;
    return fail(Code::Usage, fmt::format("{}: {}-data is no base64", in.file->path, key));
  }
  const std::string path = word_at(in.value, key);
  if (path.empty()) return std::string();
  return os::read_file(beside(in.file->path, path));
}

Result<void> read_cluster(const Named& cluster, Access& into) {
  GF_CHECK(read_server(word_at(cluster.value, "server"), into));
  if (!word_at(cluster.value, "proxy-url").empty()) {
    return fail(Code::Usage,
                fmt::format("{}: proxy-url is not supported: have gflow-kube run where the API "
                            "server can be reached without a proxy",
                            cluster.file->path));
  }
  into.ca = GF_TRY(content_of(cluster, "certificate-authority"));
  into.verify = word_at(cluster.value, "insecure-skip-tls-verify") != "true";
  into.server_name = word_at(cluster.value, "tls-server-name");
  return {};
}

ExecPlugin exec_of(const Named& user, const Yaml* exec) {
  ExecPlugin plugin;
  plugin.command = word_at(exec, "command");
  if (plugin.command.contains('/')) plugin.command = beside(user.file->path, plugin.command);
  for (const Yaml& one : items_at(exec, "args")) {
    if (const auto* word = std::get_if<std::string>(&one.value)) plugin.arguments.push_back(*word);
  }
  for (const Yaml& one : items_at(exec, "env")) {
    plugin.environment.push_back(word_at(&one, "name") + "=" + word_at(&one, "value"));
  }
  plugin.api_version = word_at(exec, "apiVersion");
  return plugin;
}

Result<void> read_user(const Named& user, Access& into) {
  into.certificate = GF_TRY(content_of(user, "client-certificate"));
  into.key = GF_TRY(content_of(user, "client-key"));
  into.token = word_at(user.value, "token");
  into.token_file = beside(user.file->path, word_at(user.value, "tokenFile"));
  if (const Yaml* exec = entry_at(user.value, "exec")) into.exec = exec_of(user, exec);
  for (const std::string_view old : {"auth-provider", "username", "password"}) {
    if (entry_at(user.value, old) == nullptr) continue;
    return fail(Code::Usage,
                fmt::format("{}: '{}' of a user is not supported, as Kubernetes gave it up: use a "
                            "token, a client certificate or exec",
                            user.file->path,
                            old));
  }
  return {};
}

Result<Access> of_service_account() {
  const std::string folder(kServiceAccount);
  Access access;
  access.host = os::environment("KUBERNETES_SERVICE_HOST").value_or("");
  access.port = os::environment("KUBERNETES_SERVICE_PORT").value_or("443");
  access.ca = GF_TRY(os::read_file(folder + "ca.crt"));
  access.token_file = folder + "token";
  const auto name_space = GF_TRY(os::read_if_exists(folder + "namespace"));
  access.name_space = trim(name_space.value_or(""));
  access.source = "the service account of this pod";
  return access;
}

}  // namespace

std::string Access::url() const {
  const bool is_ipv6 = host.contains(':');
  return fmt::format("{}://{}{}{}:{}{}",
                     tls ? "https" : "http",
                     is_ipv6 ? "[" : "",
                     host,
                     is_ipv6 ? "]" : "",
                     port,
                     path);
}

Result<void> read_server(const std::string& url, Access& into) {
  const auto refuse = [&url] {
    return fail(Code::Usage,
                fmt::format("'{}' is no address of an API server: write https://HOST:PORT",
                            printable(url)));
  };
  std::string_view rest = url;
  into.tls = !rest.starts_with("http://");
  if (!rest.starts_with("http://") && !rest.starts_with("https://")) return refuse();
  rest.remove_prefix(rest.find("//") + 2);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  into.path = rest.substr(slash);
  while (into.path.ends_with('/')) into.path.pop_back();
  std::string_view authority = rest.substr(0, slash);
  const std::size_t bracket = authority.find(']');
  const std::size_t colon = authority.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  into.port = has_port ? authority.substr(colon + 1) : into.tls ? "443" : "80";
  if (has_port) authority = authority.substr(0, colon);
  if (authority.starts_with('[') && authority.ends_with(']')) {
    authority = authority.substr(1, authority.size() - 2);
  }
  into.host = authority;
  if (into.host.empty() || !parse_number(into.port)) return refuse();
  return {};
}

Result<Access> read_kubeconfig(const std::vector<std::string>& paths, const std::string& context) {
  std::vector<File> files;
  for (const std::string& path : paths) {
    const auto content = GF_TRY(os::read_if_exists(path));
    if (content) files.push_back({path, GF_TRY(config::read_yaml(*content, path))});
  }
  if (files.empty()) {
    return fail(Code::NotFound, fmt::format("there is no kubeconfig {}", join(paths, ", ")));
  }
  std::string name = context;
  for (const File& file : files) {
    if (name.empty()) name = word_at(&file.content, "current-context");
  }
  const Named chosen = find_named(files, "contexts", "context", name);
  if (chosen.value == nullptr) {
    return fail(
        Code::NotFound,
        fmt::format("{}: there is no context '{}': 'kubectl config get-contexts' names them",
                    join(paths, ", "),
                    printable(name)));
  }
  const Named cluster = find_named(files, "clusters", "cluster", word_at(chosen.value, "cluster"));
  const Named user = find_named(files, "users", "user", word_at(chosen.value, "user"));
  if (cluster.value == nullptr) {
    return fail(Code::NotFound,
                fmt::format("{}: the context '{}' names a cluster that is not there",
                            chosen.file->path,
                            printable(name)));
  }
  Access access;
  GF_CHECK(read_cluster(cluster, access));
  if (user.value != nullptr) GF_CHECK(read_user(user, access));
  access.name_space = word_at(chosen.value, "namespace");
  access.source = fmt::format("the context '{}' of {}", printable(name), chosen.file->path);
  return access;
}

Result<Access> find_access(const AccessWish& wish) {
  std::string named = wish.kubeconfig;
  if (named.empty()) named = os::environment("KUBECONFIG").value_or("");
  if (!named.empty()) {
    std::vector<std::string> files;
    for (const std::string_view file : split(named, ':')) {
      if (!file.empty()) files.emplace_back(file);
    }
    return read_kubeconfig(files, wish.context);
  }
  const std::string usual = os::environment("HOME").value_or("") + "/.kube/config";
  if (os::exists(usual)) return read_kubeconfig({usual}, wish.context);
  if (os::environment("KUBERNETES_SERVICE_HOST")) return of_service_account();
  return fail(Code::NotFound,
              fmt::format("no cluster is named: there is no {}, and this is no pod; use "
                          "--kubeconfig FILE",
                          usual));
}

}  // namespace gflow::kube

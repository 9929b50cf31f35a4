// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace gflow::kube {

/// A program that says who asks: users[].user.exec of a kubeconfig.
struct ExecPlugin {
  std::string command;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  ///< "NAME=value"
  std::string api_version;

  friend bool operator==(const ExecPlugin&, const ExecPlugin&) = default;
};

/// Where an API server is, how it is known again, and who asks it.
struct Access {
  bool tls = true;
  std::string host;
  std::string port;
  std::string path;         ///< what stands before every path; "" or "/prefix"
  std::string ca;           ///< PEM; "": what this machine trusts
  bool verify = true;       ///< false: insecure-skip-tls-verify
  std::string server_name;  ///< the certificate is to be of; "" is the host
  std::string certificate;  ///< of the client, PEM; "" if it has none
  std::string key;
  std::string token;
  std::string token_file;  ///< read again and again: what is in it is exchanged within the hour
  std::optional<ExecPlugin> exec;
  std::string name_space;  ///< of the context or of the service account; "" if none is named
  std::string source;      ///< for people: which file, which context

  [[nodiscard]] std::string url() const;
};

/// What was asked for; "" is what kubectl would take.
struct AccessWish {
  std::string kubeconfig;  ///< a file, or several with colons between
  std::string context;
};

/// That of a kubeconfig, as kubectl reads it (several files: the first that says something is
/// right); of the service account of the pod this runs in where there is no such file. Errors:
/// NotFound where neither is there; Usage with file and line.
[[nodiscard]] Result<Access> find_access(const AccessWish& wish);
/// That of the files named; relative paths in them are relative to the file.
[[nodiscard]] Result<Access> read_kubeconfig(const std::vector<std::string>& files,
                                             const std::string& context);
/// Reads "https://host:port/path" into it. Errors: Usage.
[[nodiscard]] Result<void> read_server(const std::string& url, Access& into);

}  // namespace gflow::kube

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// gflowd of other machines, as this user knows them: ~/.config/gflow/remotes/NAME, a file each,
/// which only they can read.
namespace gflow::client {

struct Remote {
  std::string name;
  std::string host;         ///< "lab1", "10.0.0.5", "2001:db8::5"
  std::string port;         ///< "8443"
  std::string fingerprint;  ///< of its certificate, as it was when it was added
  std::string token;        ///< "" for none

  [[nodiscard]] std::string url() const;        ///< "https://lab1:8443"
  [[nodiscard]] std::string authority() const;  ///< "lab1:8443", "[2001:db8::5]:8443"
};

/// Host and port of "https://lab1:8443"; the rest is empty. Errors: Usage.
[[nodiscard]] Result<Remote> parse_remote_url(std::string_view url);
/// Errors: Usage for what is no name of a file.
[[nodiscard]] Result<void> check_remote_name(std::string_view name);

/// By its name, its URL or its remote_server(). Errors: NotFound with the way to add it; Usage for
/// a URL that several have; Permission where others can read its file.
[[nodiscard]] Result<Remote> find_remote(const std::string& name_or_url);
/// All of them, by name. Given to `spoilt`: what is wrong with one that cannot be read.
[[nodiscard]] Result<std::vector<Remote>> remotes(const std::function<void(const Error&)>& spoilt);
/// In place of the one of that name.
[[nodiscard]] Result<void> keep_remote(const Remote& remote);
/// Errors: NotFound.
[[nodiscard]] Result<void> forget_remote(const std::string& name);

/// What stands for it in place of the path of a socket: "remote:lab".
[[nodiscard]] std::string remote_server(std::string_view name_or_url);
/// Whether it is one of a remote and not a socket.
[[nodiscard]] bool is_remote(std::string_view server);

}  // namespace gflow::client

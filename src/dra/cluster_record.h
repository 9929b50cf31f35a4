// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "dra/slices.h"
#include "kube/access.h"
#include "kube/api.h"
#include "kube/credentials.h"

namespace gflow::dra {

/// The API server, as far as a driver on a node needs it. Any thread. Errors: NotFound;
/// Unreachable, Timeout, Permission, with what helps.
class ClusterRecord {
 public:
  explicit ClusterRecord(kube::Access access) : access_(std::move(access)), credentials_(access_) {}

  [[nodiscard]] const kube::Access& access() const { return access_; }
  [[nodiscard]] Result<nlohmann::json> claim(const std::string& name_space,
                                             const std::string& name);
  [[nodiscard]] Result<nlohmann::json> pod(const std::string& name_space, const std::string& name);
  [[nodiscard]] Result<NodeName> node(const std::string& name);

  /// The slices of this driver on a node.
  [[nodiscard]] Result<std::vector<nlohmann::json>> slices(const std::string& node);
  /// Makes it, or puts it in the place of `before`, an object of slices(). WrongState: it has
  /// changed meanwhile. The object as the server has it then.
  [[nodiscard]] Result<nlohmann::json> write_slice(nlohmann::json slice,
                                                   const nlohmann::json& before);
  [[nodiscard]] Result<void> remove_slice(const std::string& name);

 private:
  [[nodiscard]] Result<nlohmann::json> ask(const kube::Request& request, const std::string& doing);

  const kube::Access access_;
  kube::Credentials credentials_;
};

}  // namespace gflow::dra

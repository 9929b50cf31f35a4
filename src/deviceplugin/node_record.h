// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "kube/access.h"
#include "kube/credentials.h"

namespace gflow::deviceplugin {

/// The API server, as far as a node needs it. Any thread.
class NodeRecord {
 public:
  explicit NodeRecord(kube::Access access) : access_(std::move(access)), credentials_(access_) {}

  [[nodiscard]] const kube::Access& access() const { return access_; }
  /// Sets the annotation gflow/devices. Errors: NotFound where the node is not there yet;
  /// Unreachable, Permission, with what helps.
  [[nodiscard]] Result<void> publish(const std::string& node, const std::string& devices);
  /// The pod, as JSON. Errors: the same.
  [[nodiscard]] Result<std::string> pod(const std::string& name_space, const std::string& name);

 private:
  const kube::Access access_;
  kube::Credentials credentials_;
};

}  // namespace gflow::deviceplugin

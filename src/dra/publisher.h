// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "dra/cluster_record.h"

namespace gflow::dra {

/// Keeps the slices of a node what they are to be: a kubelet takes them away when it starts, and
/// when the driver was away for half a minute. One thread.
class Publisher {
 public:
  Publisher(ClusterRecord& record, std::string node) : record_(record), node_(std::move(node)) {}

  /// Reads them, and writes those that are not so. Errors: of the record; to be tried again.
  [[nodiscard]] Result<void> publish(const nlohmann::json& devices);

 private:
  using Slices = std::map<std::string, nlohmann::json>;  ///< by name

  [[nodiscard]] bool is_as_written(const Slices& there, const nlohmann::json& devices) const;
  [[nodiscard]] Result<void> write(const Slices& there, const nlohmann::json& devices);

  ClusterRecord& record_;
  const std::string node_;
  nlohmann::json devices_;  ///< of what was written last
  Slices written_;  ///< what an API server made of that: it leaves out what it does not know
};

}  // namespace gflow::dra

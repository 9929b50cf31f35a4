// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "deviceplugin/container_files.h"
#include "dra/claim.h"
#include "dra/cluster_record.h"
#include "dra/ended.h"
#include "dra/kubelet_server.h"
#include "kube/log.h"

namespace gflow::dra {

/// What claims have on this node, as files for their containers. Any thread.
class Claims {
 public:
  Claims(ClusterRecord& record, deviceplugin::Places places, kube::Log& log)
      : record_(record), log_(log), files_(std::move(places), deviceplugin::kClaims) {}

  /// As ContainerFiles::open().
  [[nodiscard]] Result<void> open(std::string& trouble);
  /// Whether containers are held to their parts.
  [[nodiscard]] bool can_hold() const { return files_.can_hold(); }
  void set_here(Here here);

  /// What was allocated to it, for the containers of its pods. A claim that is ready stays as it
  /// is. Errors, as its pods are to be told.
  [[nodiscard]] Result<std::vector<ReadyDevice>> prepare(const ClaimName& name);
  /// No pod has it any more. Done also where it never was ready.
  [[nodiscard]] Result<void> unprepare(const ClaimName& name);

  /// Looks after what claims have: who has ended, what was made larger than it is. Whether there
  /// may soon be more to do.
  bool look_after();
  void clean_up();

 private:
  [[nodiscard]] Here here() const;
  [[nodiscard]] Result<std::vector<ReadyDevice>> make_ready(const ClaimName& name);
  [[nodiscard]] Result<void> check_pods(const ClaimName& name, const nlohmann::json& claim);
  [[nodiscard]] Result<std::set<std::string>> parts_of(const std::string& name_space,
                                                       const std::string& name);
  [[nodiscard]] Result<void> write(const std::string& key,
                                   const deviceplugin::Grant& grant,
                                   const Machine& machine);

  ClusterRecord& record_;
  kube::Log& log_;
  mutable std::mutex here_mutex_;
  Here here_;
  std::mutex files_mutex_;
  deviceplugin::ContainerFiles files_;
  EndedTeller teller_;
};

}  // namespace gflow::dra

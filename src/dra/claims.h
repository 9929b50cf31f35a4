// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
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
  /// is. Errors, as its pods are to be told; nothing is written where `is_given_up`, or where it
  /// was unprepared meanwhile.
  [[nodiscard]] Result<std::vector<ReadyDevice>> prepare(const ClaimName& name,
                                                         const std::function<bool()>& is_given_up);
  /// No pod has it any more. Done also where it never was ready.
  [[nodiscard]] Result<void> unprepare(const ClaimName& name);

  /// Of all devices that are in slices.
  [[nodiscard]] std::vector<DeviceHealth> health() const;
  /// Tells processes of claims which of them have ended.
  void tell_ended();
  /// What was made larger than it is, or is nobody's.
  void clean_up();
  /// What is of claims that the API server does not have any more, or not here, of which nobody
  /// told.
  void drop_gone();

 private:
  [[nodiscard]] Here here() const;
  [[nodiscard]] Result<std::vector<ReadyDevice>> make_ready(
      const ClaimName& name, const std::function<bool()>& is_given_up);
  void begin(const std::string& uid);
  void end(const std::string& uid);
  [[nodiscard]] bool is_under_way(const std::string& uid);
  [[nodiscard]] Result<void> check_pods(const ClaimName& name, const nlohmann::json& claim);
  [[nodiscard]] Result<std::set<std::string>> parts_of(const std::string& name_space,
                                                       const std::string& name);
  [[nodiscard]] Result<void> write(const std::vector<RequestGrant>& grants, const Machine& machine);
  [[nodiscard]] Result<void> check_free(const std::string& key,
                                        const deviceplugin::Grant& grant) const;
  [[nodiscard]] Result<void> remove_all(const std::string& uid);

  ClusterRecord& record_;
  kube::Log& log_;
  mutable std::mutex here_mutex_;
  Here here_;
  std::mutex files_mutex_;
  deviceplugin::ContainerFiles files_;
  /// By uid, as long as a claim is made ready: by how many threads, and whether it was to go
  /// meanwhile.
  struct UnderWay {
    int threads = 0;
    bool is_to_go = false;
  };
  std::map<std::string, UnderWay> under_way_;
  EndedTeller teller_;
};

}  // namespace gflow::dra

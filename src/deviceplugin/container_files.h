// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/machine.h"
#include "deviceplugin/cdi.h"
#include "deviceplugin/grant.h"
#include "share/account_file.h"

namespace gflow::deviceplugin {

/// Where this node has what; all are the same paths for the container runtime.
struct Places {
  std::string kubelet = "/var/lib/kubelet";
  std::string state = "/run/gflow-device-plugin";        ///< gone when the machine starts anew
  std::string library = "/var/lib/gflow-device-plugin";  ///< programs can be run from there
  std::string cdi = "/var/run/cdi";                      ///< where ours are written
  std::string vendor_cdi = "/etc/cdi";                   ///< read besides

  [[nodiscard]] std::string plugins() const { return kubelet + "/device-plugins"; }
  [[nodiscard]] std::string pod_resources() const {
    return kubelet + "/pod-resources/kubelet.sock";
  }
};

/// What a container is given, as files: a CDI specification that its runtime reads when it makes
/// the container, and the account of its part of a GPU (docs/format/account.md). One per key. One
/// thread at a time.
class ContainerFiles {
 public:
  ContainerFiles(Places places, CdiKind kind) : places_(std::move(places)), kind_(kind) {}

  /// Whether a container can be held to its part.
  [[nodiscard]] bool can_hold() const { return can_hold_; }
  /// Makes the directories, and puts the library where programs of containers can load it.
  /// `trouble`: why they cannot, in which case containers are not held to their parts; "" if they
  /// can. Errors: of the directories.
  [[nodiscard]] Result<void> open(std::string& trouble);
  /// For a container that is about to start, for the first time or again: nobody has anything in
  /// its account. Errors: those of vendor_edits() and of files.
  [[nodiscard]] Result<void> write(const std::string& key,
                                   const Grant& grant,
                                   const Machine& machine);
  /// Whether that was done for the same grant.
  [[nodiscard]] bool is_written(const std::string& key, const Grant& grant) const;
  /// Of a grant for which that was done: the specification anew. What is counted in the account
  /// stays, as its containers may run.
  [[nodiscard]] Result<void> write_specification(const std::string& key,
                                                 const Grant& grant,
                                                 const Machine& machine);
  /// Does it again as it was done for this owner; false if it was not.
  [[nodiscard]] Result<bool> renew(const std::string& key, const Owner& owner);
  /// A runtime finds nothing by the key until it is written again.
  void forget(const std::string& key);
  /// What was written by it goes, too.
  [[nodiscard]] Result<void> remove(const std::string& key);
  /// By which something was written, and what for: whose it is, and of its devices UUID, shares and
  /// memory.
  [[nodiscard]] Result<std::map<std::string, Grant>> grants() const;
  /// Where what is written by it is: account and what stands beside it.
  [[nodiscard]] std::string directory(const std::string& key) const;
  /// Puts specifications of these back that somebody removed. Removes what is of other keys, and
  /// what containers wrote behind the end of their files. Goes on where something cannot be
  /// removed. Errors: the last of these.
  [[nodiscard]] Result<void> keep_only(const std::set<std::string>& keys);

 private:
  [[nodiscard]] std::string specification(const std::string& key) const;
  [[nodiscard]] std::string copy_of_specification(const std::string& key) const;
  [[nodiscard]] Result<Edits> edits_of(const std::string& key,
                                       const Grant& grant,
                                       const Machine& machine);
  [[nodiscard]] std::vector<share::DeviceLimit> limits_of(const Grant& grant) const;
  [[nodiscard]] Result<void> make_account(const std::string& key, const Grant& grant);
  [[nodiscard]] Edits hold_to_part(const std::string& key, const Grant& grant) const;
  [[nodiscard]] Result<void> put_back(const std::set<std::string>& keys) const;
  [[nodiscard]] Result<void> link_turn(const std::string& name, const std::string& own) const;

  Places places_;
  CdiKind kind_;
  bool can_hold_ = false;  ///< programs can load the library
};

}  // namespace gflow::deviceplugin

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "base/result.h"
#include "core/machine.h"
#include "deviceplugin/cdi.h"
#include "deviceplugin/grant.h"

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
  explicit ContainerFiles(Places places) : places_(std::move(places)) {}

  /// Makes the directories, and puts the library where programs of containers can load it.
  /// `trouble`: why they cannot, in which case containers are not held to their parts; "" if they
  /// can. Errors: of the directories.
  [[nodiscard]] Result<void> open(std::string& trouble);
  /// For a container that is about to start, for the first time or again: nobody has anything in
  /// its account. Errors: those of vendor_edits() and of files.
  [[nodiscard]] Result<void> write(const std::string& key,
                                   const Grant& grant,
                                   const Machine& machine);
  /// The same of what was written for this container of this pod last; false if nothing was.
  [[nodiscard]] Result<bool> renew(const std::string& key,
                                   const ContainerName& container,
                                   const std::string& uid);
  /// A runtime finds nothing by the key until it is written again.
  void forget(const std::string& key);
  /// Removes what is of other keys, and what containers wrote behind the end of their files. Goes
  /// on where something cannot be removed. Errors: the last of these.
  [[nodiscard]] Result<void> keep_only(const std::set<std::string>& keys);

 private:
  [[nodiscard]] std::string directory(const std::string& key) const;
  [[nodiscard]] Result<Edits> edits_of(const std::string& key,
                                       const Grant& grant,
                                       const Machine& machine);
  [[nodiscard]] Result<Edits> hold_to_part(const std::string& key, const Grant& grant);
  [[nodiscard]] Result<void> link_turn(const std::string& name, const std::string& own) const;

  Places places_;
  bool can_hold_ = false;  ///< programs can load the library
};

}  // namespace gflow::deviceplugin

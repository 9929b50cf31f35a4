// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "attempt/order.h"
#include "base/result.h"
#include "core/job.h"
#include "runner/cgroup_layout.h"
#include "runner/runner.h"

namespace gflow::runner {

/// Tells whether a process can join the control group of a directory.
using JoinProbe = std::function<Result<void>(const std::string& directory)>;
/// Tells whether a process in the control group of a directory is kept from opening kProbeDevice.
using FilterProbe = std::function<Result<void>(const std::string& directory)>;
inline constexpr const char* kProbeDevice = "/dev/null";

/// Makes control groups for attempts, in every tree that can be used. Each attempt gets fresh ones:
/// once cgroup.kill has been written, Linux kills what is cloned into that group later, and only a
/// directory made anew is free of that (seen on 6.18).
class Cgroups {
 public:
  /// None at all; `why` is what Enforcement says.
  explicit Cgroups(const std::string& why);
  /// Finds out, by trying, what can be used below the groups of `layout`. Everything is made in
  /// directories called `name` there, which must be unique to this daemon. Groups filter devices
  /// only where it is told how to find out that they do.
  Cgroups(const CgroupLayout& layout,
          const std::string& name,
          const JoinProbe& can_join,
          const FilterProbe& filters = {});

  /// Makes the groups of an attempt, sets its limits, keeps it from the devices of order.filter if
  /// it is to be by them, and notes the groups in the order. Binds it to
  /// order.cpus if a group can do that; the order keeps them if the shim has to. Those of `ready`,
  /// by make_ready(), become the attempt's, and stand in the order first, in the same order.
  /// Errors if a limit that is promised cannot be set: the attempt must not run without it.
  [[nodiscard]] Result<void> create(const std::string& attempt,
                                    const LaunchLimits& limits,
                                    attempt::Order& order,
                                    const std::vector<std::string>& ready = {}) const;
  /// Whether a process that is made for an attempt cannot be born in all of its groups: it has to
  /// join those of cgroup v1, for which the kernel makes it wait 5 to 30 ms.
  [[nodiscard]] bool has_to_join() const;
  /// How the names of groups begin, behind what is common to all, that make_ready() makes.
  static constexpr const char* kReady = "ready-";
  /// Makes the groups any attempt needs, before there is one. `id` makes their name unique. That of
  /// cgroup v2 comes first, if there is one.
  [[nodiscard]] Result<std::vector<std::string>> make_ready(const std::string& id) const;
  /// Whether it is of cgroup v2.
  [[nodiscard]] bool is_unified(const std::string& directory) const;
  /// The groups create() makes for an attempt.
  [[nodiscard]] std::vector<std::string> groups_of(const std::string& attempt) const;
  /// Removes groups with those in them; one that still has processes stays.
  static void remove(const std::vector<std::string>& directories);
  /// Groups of attempts that `keep` does not want, and what finding out left, removed if they are
  /// empty.
  void remove_others(const std::function<bool(const std::string& attempt)>& keep) const;

  /// The directories it made to make groups in go, if no group is left in them.
  void remove_empty_parents() const;

  /// Another limit for a group with one, as create() notes it (Order::memory_cgroup).
  [[nodiscard]] static Result<void> change_memory_limit(const std::string& group, Memory limit);

  [[nodiscard]] const Enforcement& enforcement() const { return enforcement_; }
  /// By what they keep processes from devices, for people. Errors: why they do not.
  [[nodiscard]] Result<std::string> device_filter() const;

 private:
  enum class Version { None, V1, V2 };
  /// Where a controller's groups are made, or why it cannot be used.
  struct Controller {
    std::string parent;
    Version version = Version::None;
    std::string why;
  };

  Controller choose(const char* controller, const std::string& v1_own, const JoinProbe& can_join);
  [[nodiscard]] Controller choose_filter(const std::string& v1_own,
                                         const JoinProbe& can_join,
                                         const FilterProbe& filters) const;
  [[nodiscard]] std::vector<std::string> parents() const;
  [[nodiscard]] std::string unused_name(const std::string& attempt,
                                        const std::string& launch_id) const;
  /// The parents of the groups every attempt has; that of cgroup v2 first, if there is one.
  [[nodiscard]] std::vector<std::string> parents_of_all() const;
  /// By parent.
  using Places = std::map<std::string, std::string>;
  [[nodiscard]] Result<void> set_limits(const Places& places, const LaunchLimits& limits) const;
  [[nodiscard]] Result<void> bind(const std::string& group, attempt::Order& order) const;
  [[nodiscard]] Result<void> set_filter(const Places& places, const DeviceFilter& filter) const;

  std::string name_;
  std::string unified_;  ///< parent of the groups in the v2 tree, "" if that is not used
  std::string unified_own_;
  std::string unified_why_;
  Controller memory_;
  Controller cpu_;
  Controller pids_;
  Controller cpuset_;
  Controller devices_;       ///< filters devices
  bool can_kill_ = false;    ///< the groups of cgroup v2 have cgroup.kill
  bool can_freeze_ = false;  ///< and cgroup.freeze
  std::string max_processes_;
  Enforcement enforcement_;
};

}  // namespace gflow::runner

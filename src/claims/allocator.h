// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "claims/device.h"
#include "claims/matcher.h"

/// Which devices of a node claims are given, by the rules of kube-scheduler.
namespace gflow::claims {

/// Devices alike that are asked for.
struct Request {
  std::string name;  ///< "REQUEST", or "REQUEST/ALTERNATIVE"
  std::string device_class;
  std::vector<std::string> selectors{};
  bool is_all = false;     ///< all that there are on the node, and at least one
  std::int64_t count = 1;  ///< otherwise
  Amounts capacity{};      ///< of each of them
  std::vector<DeviceToleration> tolerations{};
  std::string tolerations_text{};  ///< as JSON, as who allocates copies them; "" if there are none
};

struct Constraint {
  bool is_distinct = false;             ///< all have another value of it; or the same
  std::string attribute;                ///< "domain/name"
  std::vector<std::string> requests{};  ///< of which it goes; none: of all
};

/// What drivers are told beside which devices are whose.
struct Config {
  std::vector<std::string> requests{};  ///< of which it goes; none: of all
  std::string text;                     ///< as JSON, without these
  bool is_of_class = false;
};

struct ClaimSpec {
  /// One of the alternatives of each, the first that can be had.
  std::vector<std::vector<Request>> requests{};
  std::vector<Constraint> constraints{};
  std::vector<Config> config{};
  std::string trouble{};  ///< why nobody here can allocate it; "" if it may be
};

struct DeviceClass {
  std::string uid;
  std::string name;
  std::vector<std::string> selectors{};
  std::vector<std::string> config{};  ///< each as JSON
};

/// A device, or a part of one, that a claim is given.
struct GivenDevice {
  std::string request;
  DeviceId id;
  bool is_shared = false;
  Amounts consumed{};  ///< of a shared one
  std::string tolerations_text{};
  Where where{};
  bool binds_to_node = false;
};

struct Given {
  std::vector<GivenDevice> devices{};
  std::vector<Config> config{};
};

/// What all claims of a cluster have.
struct Usage {
  std::map<DeviceId, int> whole{};      ///< how many claims have it: one, where nobody is wrong
  std::map<DeviceId, Amounts> parts{};  ///< of shared ones; who has one has an entry
  std::map<DeviceId, int> holders{};    ///< of these

  void add(const GivenDevice& device);
  void remove(const GivenDevice& device);
  /// More have it than may.
  [[nodiscard]] bool is_double(const DeviceId& device) const;
};

/// A claim to be allocated.
struct Asked {
  std::string name;  ///< for reasons
  const ClaimSpec* spec = nullptr;
};

/// Where they may be had. Borrows all of it.
struct Supply {
  const std::vector<const Pool*>& pools;  ///< in their order
  const Usage& usage;
  const std::map<std::string, DeviceClass>& classes;  ///< by name
  Matcher& matcher;
  std::function<bool(const Where&)> is_here;
};

/// What each of the claims is given, all at once, or none is. Of what it may be given it is what
/// leaves least over: parts of devices that others have parts of already, then those that fit best,
/// then in the order of pools, slices and devices. Errors: Infeasible with why not, in the words of
/// kube-scheduler where it has some; Usage where a selector cannot be worked out.
[[nodiscard]] Result<std::vector<Given>> allocate(const Supply& supply,
                                                  const std::vector<Asked>& claims);

}  // namespace gflow::claims

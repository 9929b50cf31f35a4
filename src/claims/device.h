// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "claims/amount.h"
#include "claims/cel_value.h"

/// Devices as ResourceSlices of Kubernetes list them, with what an allocation looks at and nothing
/// else.
namespace gflow::claims {

/// Of which device of a cluster something is said.
struct DeviceId {
  std::string driver;
  std::string pool;
  std::string device;

  friend auto operator<=>(const DeviceId&, const DeviceId&) = default;
};

using Amounts = std::map<std::string, Amount>;

struct Attribute {
  enum class Kind { Int, Bool, String, Version };
  Kind kind = Kind::String;
  std::string text;  ///< the value, as it is written

  friend bool operator==(const Attribute&, const Attribute&) = default;
};

/// What may be asked for of a capacity, of a device that several have parts of.
struct RequestPolicy {
  struct Range {
    Amount min;
    std::optional<Amount> max{};
    std::optional<Amount> step{};
  };
  std::optional<Amount> otherwise{};  ///< what who asks for none has; empty: all
  std::optional<Range> range{};
  std::vector<Amount> values{};  ///< the only ones there are, in order; empty: any
};

struct Capacity {
  Amount value;
  std::optional<RequestPolicy> policy{};
};

struct DeviceTaint {
  std::string key;
  std::string value;
  std::string effect;
};

struct DeviceToleration {
  std::string key;  ///< "" is every key
  std::string op;   ///< "Exists" or "Equal"
  std::string value;
  std::string effect;  ///< "" is every effect

  friend auto operator<=>(const DeviceToleration&, const DeviceToleration&) = default;
};

/// On which nodes something is.
struct Where {
  std::string node{};      ///< "": not by its name
  std::string selector{};  ///< a NodeSelector as JSON; "": not by one
  bool is_everywhere = false;
};

struct Device {
  std::string name;
  std::map<std::string, Attribute> attributes{};  ///< by "domain/name", or "name" of its driver
  std::map<std::string, Capacity> capacity{};     ///< the same
  std::vector<DeviceTaint> taints{};
  bool is_shared = false;                     ///< several claims may have parts of it
  std::map<std::string, Amounts> counters{};  ///< that it takes, by the name of their set
  std::optional<Where> where{};               ///< where its slice leaves that to its devices
  bool binds_to_node = false;                 ///< who has it stays where he is
  bool has_conditions = false;  ///< is to be waited for between allocation and binding
  std::string trouble{};        ///< why it cannot be judged; "" if it can
  std::uint64_t serial = 0;     ///< another one for all that was ever told of devices
  CelValue value{};             ///< as device_value() makes it
};

/// All the devices of one object.
struct Slice {
  std::string uid;
  std::string name;
  std::string driver;
  std::string pool;
  std::int64_t generation = 0;   ///< of its pool: only slices of the newest count
  std::int64_t slices = 0;       ///< of which there are so many
  std::optional<Where> where{};  ///< empty: each device says
  std::vector<Device> devices{};
  std::map<std::string, Amounts> counters{};  ///< what its pool has, by the name of the set
};
/// Told once and shared by what is gathered of it.
using SharedSlice = std::shared_ptr<const Slice>;

/// All the slices of one pool that count.
struct Pool {
  std::string driver;
  std::string name;
  std::vector<SharedSlice> slices;  ///< by name
  std::map<std::string, Amounts> counters{};
  std::string trouble{};  ///< why nothing of it is given to anybody; "" if it may be
};

/// What selectors see of it.
[[nodiscard]] CelValue device_value(const std::string& driver, const Device& device);
/// In the order of their names.
[[nodiscard]] std::vector<Pool> gather_pools(const std::vector<SharedSlice>& slices);
/// The attribute of this name ("domain/name"); null if it has none.
[[nodiscard]] const Attribute* find_attribute(const std::string& driver,
                                              const Device& device,
                                              const std::string& name);
/// Whether none of its taints keeps who has these tolerations away.
[[nodiscard]] bool is_tolerated(const Device& device,
                                const std::vector<DeviceToleration>& tolerations);

/// What of a capacity is had by who asks for so much of it; empty: for none.
[[nodiscard]] Amount consumed_of(const std::optional<Amount>& asked, const Capacity& capacity);
/// Whether that may be had of it, by its policy.
[[nodiscard]] bool is_allowed(const Amount& consumed, const Capacity& capacity);

}  // namespace gflow::claims

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "claims/amount.h"
#include "claims/version.h"

namespace gflow::claims {

struct CelValue;
using CelItems = std::vector<CelValue>;
using CelFields = std::map<std::string, CelValue>;

struct CelList {
  std::shared_ptr<const CelItems> items;  ///< shared by all copies of the value
};
struct CelMap {
  std::shared_ptr<const CelFields> fields;  ///< shared by all copies of the value
  /// One that is asked for and is not there is an empty map: the domains of a device.
  bool has_default = false;
};
struct CelOptional {
  std::shared_ptr<const CelValue> value;  ///< shared by all copies; null: there is none
};

/// What an expression of CEL can be, so far as selectors of devices have to do with it.
struct CelValue {
  std::variant<std::monostate,
               bool,
               std::int64_t,
               std::uint64_t,
               double,
               std::string,
               Amount,
               Version,
               CelList,
               CelMap,
               CelOptional>
      is{};
};

/// "int", "string", ...: as CEL calls it.
[[nodiscard]] std::string type_name(const CelValue& value);
[[nodiscard]] CelValue list_of(CelItems items);
[[nodiscard]] CelValue map_of(CelFields fields, bool has_default = false);

}  // namespace gflow::claims

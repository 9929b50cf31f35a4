// SPDX-License-Identifier: Apache-2.0
#include "claims/cel_value.h"

#include <array>
#include <utility>

namespace gflow::claims {

std::string type_name(const CelValue& value) {
  constexpr std::array kNames = {"null",
                                 "bool",
                                 "int",
                                 "uint",
                                 "double",
                                 "string",
                                 "quantity",
                                 "semver",
                                 "list",
                                 "map",
                                 "optional"};
  static_assert(kNames.size() == std::variant_size_v<decltype(CelValue::is)>);
  return kNames.at(value.is.index());
}

CelValue list_of(CelItems items) {
  return {CelList{std::make_shared<const CelItems>(std::move(items))}};
}

CelValue map_of(CelFields fields, bool has_default) {
  return {CelMap{std::make_shared<const CelFields>(std::move(fields)), has_default}};
}

}  // namespace gflow::claims

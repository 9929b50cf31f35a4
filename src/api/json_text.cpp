// SPDX-License-Identifier: Apache-2.0
#include "api/json_text.h"

#include <nlohmann/json.hpp>

namespace gflow::api {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Value& value);

struct AsJson {
  Json operator()(std::nullptr_t) const { return nullptr; }
  Json operator()(const Value::Array& array) const {
    Json list = Json::array();
    for (const Value& value : array) list.push_back(json_of(value));
    return list;
  }
  Json operator()(const Value::Object& object) const {
    Json members = Json::object();
    for (const Member& member : object) members[member.name] = json_of(member.value);
    return members;
  }
  template <typename T>
  Json operator()(const T& value) const {
    return value;
  }
};

Json json_of(const Value& value) { return std::visit(AsJson{}, value.data); }

}  // namespace

std::string json_text(const Value& value, int indent) {
  return json_of(value).dump(indent == 0 ? -1 : indent);
}

}  // namespace gflow::api

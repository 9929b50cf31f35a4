// SPDX-License-Identifier: Apache-2.0
#include "api/field_filter.h"

namespace gflow::api {

FieldFilter::FieldFilter(std::span<const std::string> names) {
  for (const std::string_view name : names) add(name);
}

void FieldFilter::add(std::string_view name) {
  const std::size_t dot = name.find('.');
  FieldFilter& part = parts_[std::string(name.substr(0, dot))];
  if (dot == std::string_view::npos) {
    part.named_ = true;
    part.parts_.clear();
  } else if (!part.named_) {
    part.add(name.substr(dot + 1));
  }
}

const FieldFilter* FieldFilter::find(std::string_view name) const {
  if (parts_.empty()) return this;
  const auto part = parts_.find(name);
  return part == parts_.end() ? nullptr : &part->second;
}

}  // namespace gflow::api

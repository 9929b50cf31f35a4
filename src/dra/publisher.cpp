// SPDX-License-Identifier: Apache-2.0
#include "dra/publisher.h"

#include <algorithm>
#include <cstdint>

#include "kube/fields.h"

namespace gflow::dra {
namespace {

using Json = nlohmann::json;
using kube::part;
using kube::text;

std::int64_t generation_of(const Json& slice) {
  const Json& generation = part(part(part(slice, "spec"), "pool"), "generation");
  return generation.is_number_integer() ? generation.get<std::int64_t>() : 0;
}

}  // namespace

Result<void> Publisher::publish(const Json& devices) {
  Slices there;
  for (Json& one : GF_TRY(record_.slices(node_))) {
    std::string name = text(part(one, "metadata"), "name");
    there.insert_or_assign(std::move(name), std::move(one));
  }
  return is_as_written(there, devices) ? Result<void>() : write(there, devices);
}

bool Publisher::is_as_written(const Slices& there, const Json& devices) const {
  if (devices != devices_ || there.size() != written_.size()) return false;
  return std::ranges::all_of(there, [this](const auto& one) {
    const auto at = written_.find(one.first);
    return at != written_.end() && part(at->second, "spec") == part(one.second, "spec");
  });
}

Result<void> Publisher::write(const Slices& there, const Json& devices) {
  std::int64_t generation = 0;
  for (const auto& [name, slice] : there) generation = std::max(generation, generation_of(slice));
  devices_ = nullptr;  // not before all of them are
  written_.clear();
  for (Json& slice : make_slices(devices, GF_TRY(record_.node(node_)), generation + 1)) {
    const std::string name = text(part(slice, "metadata"), "name");
    const auto before = there.find(name);
    written_[name] = GF_TRY(
        record_.write_slice(std::move(slice), before == there.end() ? Json() : before->second));
  }
  for (const auto& [name, slice] : there) {
    if (written_.contains(name)) continue;
    const auto removed = record_.remove_slice(name);
    if (!removed && removed.error().code != Code::NotFound) return removed;
  }
  devices_ = devices;
  return {};
}

}  // namespace gflow::dra

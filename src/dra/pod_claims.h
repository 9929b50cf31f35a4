// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "base/result.h"

namespace gflow::dra {

/// The requests of a claim, of its name, that are for a part of a GPU.
using PartsOf = std::function<Result<std::set<std::string>>(const std::string& claim)>;

/// A container is held to one part: what it has is one account. Errors: WrongState of a pod of
/// which one would have several, with what to do; those of `parts_of`.
[[nodiscard]] Result<void> check_one_part_each(const nlohmann::json& pod, const PartsOf& parts_of);

}  // namespace gflow::dra

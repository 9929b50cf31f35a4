// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

/// Which of the containers of a pod is meant, as others may have been put beside it.
namespace gflow::kube {

/// As gbatch calls that of a job.
constexpr std::string_view kMainContainer = "main";

/// "main" where there is one, else the one that kubectl would take; "" of what is no pod.
[[nodiscard]] std::string main_container_of(const nlohmann::json& pod);
/// Its state in status.containerStatuses, which are in no order that means something: an object
/// with one key (waiting, running, terminated); null if nothing is said of it.
[[nodiscard]] const nlohmann::json& state_of_main(const nlohmann::json& pod);

}  // namespace gflow::kube

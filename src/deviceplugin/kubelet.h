// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "deviceplugin/grant.h"

/// What the kubelet of this node is asked, over its sockets.
namespace gflow::deviceplugin {

/// What stands for a device between a kubelet and a plugin. The kubelet takes any of those that are
/// free, without saying for whom: a ticket is no device, and which one a container gets is known
/// when it starts.
using Tickets = std::set<std::string>;

/// Of a resource; what is the same for the same tickets, in letters a CDI name takes.
[[nodiscard]] std::string key_of(std::string_view resource, const Tickets& tickets);

/// Tells it that a socket beside its own offers a resource. Errors: Unreachable, Timeout; Failure
/// with what it has against it.
[[nodiscard]] Result<void> register_resource(const std::string& plugins,
                                             const std::string& socket_name,
                                             const std::string& resource);

/// Which containers have tickets of which resource. Errors: Unreachable, Timeout.
using Holders = std::map<std::pair<std::string, Tickets>, ContainerName>;
[[nodiscard]] Result<Holders> holders(const std::string& socket);

/// The uid of the pod that has these tickets, of the file in which it keeps that beside its socket:
/// two pods of one name, one after the other, are not told apart by what it answers. Empty where
/// that file does not say.
[[nodiscard]] std::optional<std::string> uid_of_holder(const std::string& plugins,
                                                       std::string_view resource,
                                                       const Tickets& tickets);

}  // namespace gflow::deviceplugin

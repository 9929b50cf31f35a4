// SPDX-License-Identifier: Apache-2.0
#include "cli/caller.h"

#include "api/account.h"
#include "os/user.h"

namespace gflow::cli {

Result<std::string> caller_name(Context& context) {
  if (!context.is_remote()) return os::own_account().name;
  if (auto name_space = GF_TRY(context.daemon().name_space())) return *std::move(name_space);
  const std::string body = GF_TRY(context.daemon().call("GET", "/api/v1/principal"));
  return GF_TRY(api::read_principal(body)).name;
}

std::string viewer_name(Context& context) {
  return caller_name(context).value_or(os::own_account().name);
}

}  // namespace gflow::cli

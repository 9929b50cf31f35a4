// SPDX-License-Identifier: Apache-2.0
#include "server/made_once.h"

#include "base/translate.h"

namespace gflow::server {

std::string MadeOnce::get(const std::string& name, const std::function<std::string()>& make) {
  const std::lock_guard lock(mutex_);
  auto [at, is_new] = made_.try_emplace({name, messages_in_use()});
  if (is_new) at->second = make();
  return at->second;
}

}  // namespace gflow::server

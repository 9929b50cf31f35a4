// SPDX-License-Identifier: Apache-2.0
#include "server/accounts.h"

#include "os/user.h"

namespace gflow::server {
namespace {

/// What is known of the key, looked up where that is too long ago.
template <typename Table, typename Key, typename LookUp>
auto fresh(Table& table, const Key& key, MonoTime now, LookUp look_up) {
  auto known = table.find(key);
  if (known == table.end() || now - known->second.at >= Accounts::kFresh) {
    known = table.insert_or_assign(key, typename Table::mapped_type{look_up(key), now}).first;
  }
  return known->second.value;
}

}  // namespace

std::optional<std::uint32_t> Accounts::uid_of(const std::string& name, MonoTime now) {
  return fresh(uids_, name, now, os::user_id);
}

bool Accounts::has(std::uint32_t uid, MonoTime now) {
  return fresh(there_, uid, now, [](std::uint32_t number) {
    return os::user_id(os::account_of(number).name) == number;
  });
}

}  // namespace gflow::server

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>

#include <vector>

#include "core/token.h"

/// The table tokens. Both throw SQLite::Exception.
namespace gflow::store {

/// All of them, by owner and name.
[[nodiscard]] std::vector<Token> read_token_rows(SQLite::Database& database);
/// These instead of those there are; to be called in a transaction.
void write_token_rows(SQLite::Database& database, const std::vector<Token>& tokens);

}  // namespace gflow::store

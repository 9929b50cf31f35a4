// SPDX-License-Identifier: Apache-2.0
#include "store/token_rows.h"

#include "store/query.h"

namespace gflow::store {

std::vector<Token> read_token_rows(SQLite::Database& database) {
  std::vector<Token> tokens;
  Statement all(database,
                "SELECT uid, user, name, scope, digest, created_ms, expires_ms FROM tokens "
                "ORDER BY uid, name");
  Query query(all);
  while (query.step()) {
    Token& token = tokens.emplace_back();
    token.owner.uid = query.as<std::uint32_t>();
    token.owner.name = query.text();
    token.name = query.text();
    token.scope = query.as<Scope>();
    token.digest = query.text();
    token.created = query.time();
    if (!query.is_null()) token.expires = query.time();
  }
  return tokens;
}

void write_token_rows(SQLite::Database& database, const std::vector<Token>& tokens) {
  database.exec("DELETE FROM tokens");
  Statement add(database,
                "INSERT INTO tokens (uid, user, name, scope, digest, created_ms, expires_ms) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)");
  for (const Token& token : tokens) {
    Query query(add);
    query.integer(token.owner.uid).text(token.owner.name).text(token.name);
    query.integer(static_cast<int>(token.scope)).text(token.digest).time(token.created);
    if (token.expires) {
      query.time(*token.expires);
    } else {
      query.null();
    }
    query.run();
  }
}

}  // namespace gflow::store

// SPDX-License-Identifier: Apache-2.0
#include "base/translate.h"
#include "server/about.h"
#include "server/queries.h"

namespace gflow::server::about {

constexpr api::Operation kListTokens = {
    .id = "list_tokens",
    .tag = "daemon",
    .summary = tr_later("Your tokens, for administrators those of all"),
    .answers = {{{200, "Tokens"}}},
};

constexpr api::Operation kCreateToken = {
    .id = "create_token",
    .tag = "daemon",
    .summary = tr_later("Make a token: its secret is in the answer and nowhere else"),
    .description =
        tr_later("Over gflowd's socket only. A token can do what its scope says and never "
                 "more than its owner."),
    .body = "TokenRequest",
    .example = R"({"name": "ci", "scope": "submit", "expires_in_seconds": 2592000})",
    .is_of_socket = true,
    .answers = {{{201, "Token"}}},
    .errors = {409, 507},
};

constexpr api::Operation kRevokeToken = {
    .id = "revoke_token",
    .tag = "daemon",
    .summary = tr_later("Take a token back, at once"),
    .segment = tr_later("name of the token"),
    .segment_example = "ci",
    .answers = {{{204}}},
    .errors = {404, 507},
};

}  // namespace gflow::server::about

namespace gflow::api {

template <>
QueryTable<server::TokenQuery> query_table<server::TokenQuery>() {
  using Query = server::TokenQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::user>(
          {.name = "user", .help = tr_later("whose it is, for administrators")}),
  });
  return {kRows};
}

}  // namespace gflow::api

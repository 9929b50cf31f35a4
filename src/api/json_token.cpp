// SPDX-License-Identifier: Apache-2.0
#include "api/documents.h"
#include "api/json_reader.h"
#include "api/json_writer.h"
#include "api/schema_writer.h"
#include "api/token.h"

namespace gflow::api {
namespace {

constexpr std::int64_t kTenYears = std::int64_t{3650} * 86'400;
constexpr Range kLifeRange = {1, kTenYears};

struct Tokens {
  std::vector<TokenView> tokens;
};

}  // namespace

template <class Io, Like<TokenRequest> T>
void fields(Io& io, T& request) {
  io.required("name", request.name);
  io.field("scope", request.scope);
  io.field("expires_in_seconds", request.expires_in, kLifeRange);
}

template <>
inline constexpr std::string_view kSchemaName<TokenView> = "TokenView";
template <class Io, Like<TokenView> T>
void fields(Io& io, T& view) {
  io.required("name", view.name);
  io.field("user", view.user);
  io.field("scope", view.scope);
  io.field("created", view.created);
  io.field("expires", view.expires);
  io.field("expired", view.expired);
}

template <class Io, Like<NewToken> T>
void fields(Io& io, T& made) {
  fields(io, made.view);
  io.required("token", made.secret);
}

template <class Io, Like<Tokens> T>
void fields(Io& io, T& tokens) {
  io.required("tokens", tokens.tokens);
}

void describe_tokens(Schemas& schemas) {
  schemas.document<TokenRequest>("TokenRequest", Form::Request);
  schemas.document<NewToken>("Token", Form::Answer);
  schemas.document<Tokens>("Tokens", Form::Answer);
}

std::string write(const TokenRequest& request) { return Writer::document("TokenRequest", request); }

Asked<TokenRequest> read_token_request(std::string_view json) {
  auto request = Reader::request<TokenRequest>(json, "TokenRequest");
  if (!request) return request;
  if (auto named = check_token_name(request->name); !named) {
    return refuse("/name", named.error());
  }
  return request;
}

std::string write_tokens(const std::vector<TokenView>& tokens) {
  return Writer::document("Tokens", Tokens{tokens});
}

Result<std::vector<TokenView>> read_tokens(std::string_view json) {
  return GF_TRY(Reader::answer<Tokens>(json, "Tokens")).tokens;
}

std::string write(const NewToken& token) { return Writer::document("Token", token); }

Result<NewToken> read_new_token(std::string_view json) {
  return Reader::answer<NewToken>(json, "Token");
}

}  // namespace gflow::api

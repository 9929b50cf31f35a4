// SPDX-License-Identifier: Apache-2.0
#include "api/documents.h"
#include "api/explanation.h"
#include "api/job_fields.h"
#include "api/start_fields.h"

namespace gflow::api {

namespace {

constexpr std::array<std::string_view, 3> kActions = {"update", "release", "resume"};

}  // namespace

template <>
inline constexpr std::string_view kSchemaName<Suggestion> = "Suggestion";
template <class Io, Like<Suggestion> T>
void fields(Io& io, T& suggestion) {
  auto changes = patch_of(suggestion.changes);
  io.choice("action", suggestion.action, kActions);
  io.field("changes", changes);
  io.field("command", suggestion.command);
  io.field("text", suggestion.text);
}

template <class Io, Like<Explanation> T>
void fields(Io& io, T& explanation) {
  io.required("job", explanation.job);
  io.if_any("told", explanation.told);
  io.field("expected_start", explanation.expected_start);
  io.field("suggestions", explanation.suggestions);
}

void describe_explanation(Schemas& schemas) {
  schemas.document<Explanation>("Explanation", Form::Answer);
}

std::string write(const Explanation& explanation) {
  return Writer::document("Explanation", explanation);
}

Result<Explanation> read_explanation(std::string_view json) {
  return Reader::answer<Explanation>(json, "Explanation");
}

}  // namespace gflow::api

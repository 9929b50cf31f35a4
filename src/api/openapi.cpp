// SPDX-License-Identifier: Apache-2.0
#include "api/openapi.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "api/documents.h"
#include "api/headers.h"
#include "api/json.h"
#include "api/schema_writer.h"
#include "api/security.h"
#include "base/text.h"
#include "base/translate.h"

namespace gflow::api {
namespace {

// What any route may answer, whatever it does: how the request came, with or without a body that
// it has no use for, and how gflowd is.
constexpr std::array kAnywhere = {400, 401, 403, 406, 408, 413, 415, 421, 429, 431, 500, 501, 503};
constexpr std::array kOfChanges = {507};

Value list_of(const std::vector<std::string>& texts) {
  Value::Array list;
  for (const std::string& text : texts) list.push_back(json(text));
  return {std::move(list)};
}

Value schema_of_one(const QueryParameter& parameter) {
  using Type = QueryParameter::Type;
  Members schema;
  switch (parameter.type) {
    case Type::Number:
      schema.add("type", "integer").add("minimum", json(parameter.range.least));
      if (parameter.range.most != INT64_MAX) schema.add("maximum", json(parameter.range.most));
      break;
    case Type::Decimal:
      schema.add("type", "number").add("minimum", json(parameter.range.least));
      schema.add("maximum", json(parameter.range.most));
      break;
    case Type::Truth:
      schema.add("type", "boolean");
      break;
    case Type::Time:
      schema.add("type", "string").add("format", "date-time");
      break;
    case Type::Text:
      schema.add("type", "string").add("minLength", json(std::int64_t{1}));
      break;
  }
  if (!parameter.words.empty()) {
    schema.add("enum", list_of({parameter.words.begin(), parameter.words.end()}));
  }
  if (!parameter.pattern.empty()) schema.add("pattern", parameter.pattern);
  return schema.value();
}

Value example_number(std::string_view text) { return parse_json(text).value_or(json(text)); }

/// As it is typed: a number where it is one.
Value example_of(const QueryParameter& parameter) {
  const bool is_text =
      parameter.type == QueryParameter::Type::Text || parameter.type == QueryParameter::Type::Time;
  if (parameter.many != QueryParameter::Many::One) {
    std::vector<std::string> words;
    for (const std::string_view word : split(parameter.example, ',')) words.emplace_back(word);
    return list_of(words);
  }
  if (is_text) return json(parameter.example);
  return example_number(parameter.example);
}

Value parameter_value(const QueryParameter& parameter) {
  using Many = QueryParameter::Many;
  Value schema = schema_of_one(parameter);
  if (parameter.many != Many::One) {
    schema = Members().add("type", "array").add("items", std::move(schema)).value();
  }
  Members value;
  value.add("name", parameter.name).add("in", "query").add("description", tr(parameter.help));
  value.add("required", json(false));
  if (parameter.many != Many::One) {
    value.add("style", "form").add("explode", json(parameter.many == Many::Repeated));
  }
  value.add("schema", std::move(schema));
  if (!parameter.example.empty()) value.add("example", example_of(parameter));
  return value.value();
}

/// What stands for the braces of a pattern.
Value segment_value(std::string_view pattern, const Operation& about) {
  const std::string_view name = pattern_of(pattern).name;
  Members schema;
  if (name == "id") {
    schema.add("type", "integer").add("minimum", json(std::int64_t{1}));
  } else {
    schema.add("type", "string").add("minLength", json(std::int64_t{1}));
  }
  return Members()
      .add("name", name)
      .add("in", "path")
      .add("required", json(true))
      .add("description", tr(about.segment))
      .add("schema", schema.value())
      .add("example",
           name == "id" ? example_number(about.segment_example) : json(about.segment_example))
      .value();
}

/// Where it is told for all.
Value component_of(std::string_view kind, std::string_view name) {
  return Members().add("$ref", fmt::format("#/components/{}/{}", kind, name)).value();
}

Value parameters_of(const RouteView& route) {
  Value::Array parameters;
  const Operation& about = *route.about;
  if (route.pattern.contains('{')) {
    parameters.push_back(segment_value(route.pattern, about));
  }
  for (const QueryParameter& parameter : route.query) {
    parameters.push_back(parameter_value(parameter));
  }
  for (const RequestHeader& header : kRequestHeaders) {
    if (header.component.empty() || !is_read_by(header, route)) continue;
    parameters.push_back(component_of("parameters", header.component));
  }
  return {std::move(parameters)};
}

Value content_of(std::string_view media, Value schema, std::string_view example) {
  Members content;
  content.add("schema", std::move(schema));
  if (!example.empty()) {
    if (auto parsed = parse_json(example)) content.add("example", std::move(*parsed));
  }
  return Members().add(media, content.value()).value();
}

Value typed_schema(const char* type) { return Members().add("type", type).value(); }

/// Of events, each of which has a document as the text of its data: as OpenAPI 3.2 has it of an
/// event. 3.1 has no words for it, and who takes the schema for that of the whole text finds
/// nothing in it that a text must be.
Value schema_of_events(const Operation& about) {
  Value::Array kinds;
  for (const std::string_view kind : about.events) kinds.push_back(Schemas::to(kind));
  const Value data =
      Members()
          .add("type", "string")
          .add("contentMediaType", "application/json")
          .add("contentSchema", Members().add("anyOf", Value{std::move(kinds)}).value())
          .value();
  return Members()
      .add("description", tr("server-sent events; the data of each is one of these documents"))
      .add("properties", Members().add("data", data).value())
      .value();
}

/// Of what is no document of ours.
Value schema_of(const Operation& about, std::string_view media) {
  if (media == "text/event-stream") return schema_of_events(about);
  return typed_schema(media.ends_with("json") ? "object" : "string");
}

/// As a regular expression: "^/api/v1/jobs/[0-9]+$".
std::string expression_of(std::string_view pattern) {
  const Pattern parts = pattern_of(pattern);
  if (parts.name.empty()) return fmt::format("^{}$", pattern);
  return fmt::format(
      "^{}{}{}$", parts.before, parts.name == "id" ? "[0-9]+" : "[^/]+", parts.after);
}

Value header_value(const std::string& help, bool is_certain, Value schema) {
  return Members()
      .add("description", help)
      .add("required", json(is_certain))
      .add("schema", std::move(schema))
      .value();
}

/// Each leads to a route of its own.
Value location_value(const AnswerHeader& header, const RouteView& route, int status) {
  const std::string_view location = location_of(route, status);
  return header_value(tr_format("where it is shown: {}", location),
                      is_certain(header, route, status),
                      Members()
                          .add("type", "string")
                          .add("format", "uri-reference")
                          .add("pattern", expression_of(location))
                          .value());
}

Value headers_of(const RouteView& route, int status) {
  Members headers;
  for (const AnswerHeader& header : kAnswerHeaders) {
    if (!comes_with(header, route, status)) continue;
    headers.add(header.name,
                header.leads_to_route ? location_value(header, route, status)
                                      : component_of("headers", header.component));
  }
  return headers.value();
}

/// Whatever may come with a status.
Value answer_value(const RouteView& route, int status) {
  const Operation& about = *route.about;
  Members media;
  for (const Answered& answer : about.answers) {
    if (answer.status != status) continue;
    if (!answer.media.empty()) {
      media.add(answer.media, Members().add("schema", schema_of(about, answer.media)).value());
    } else if (!answer.document.empty()) {
      media.add("application/json", Members().add("schema", Schemas::to(answer.document)).value());
    }
  }
  Members value;
  value.add("description", status_title(status));
  value.add("headers", headers_of(route, status));
  if (!media.empty()) value.add("content", media.value());
  return value.value();
}

std::string problem_name(int status) {
  std::string name(status_title(status));
  std::erase(name, ' ');
  return name;
}

std::set<int> errors_of(const RouteView& route) {
  std::set<int> errors(kAnywhere.begin(), kAnywhere.end());
  if (route.method != "GET") errors.insert(kOfChanges.begin(), kOfChanges.end());
  for (const int status : route.about->errors) {
    if (status != 0) errors.insert(status);
  }
  return errors;
}

Value responses_of(const RouteView& route) {
  Members responses;
  int told = 0;
  for (const Answered& answer : route.about->answers) {
    if (answer.status == told) continue;
    told = answer.status;
    if (told != 0) responses.add(std::to_string(told), answer_value(route, told));
  }
  if (is_known_again(route)) responses.add("304", answer_value(route, 304));
  for (const int status : errors_of(route)) {
    const bool is_answer = std::ranges::count(route.about->answers, status, &Answered::status) != 0;
    if (is_answer) continue;
    responses.add(std::to_string(status), component_of("responses", problem_name(status)));
  }
  return responses.value();
}

Value operation_value(const RouteView& route) {
  const Operation& about = *route.about;
  Members operation;
  operation.add("operationId", about.id);
  operation.add("tags", list_of({std::string(about.tag)}));
  operation.add("summary", tr(about.summary));
  if (!about.description.empty()) operation.add("description", tr(about.description));
  operation.add("security", security_of(route));
  operation.add("x-who", tr(route.who));
  if (!route.role.empty()) operation.add("x-role", route.role);
  if (!route.scope.empty() && !about.is_of_socket) operation.add("x-scope", route.scope);
  operation.add("parameters", parameters_of(route));
  if (!about.body.empty()) {
    operation.add(
        "requestBody",
        Members()
            .add("required", json(true))
            .add("content", content_of("application/json", Schemas::to(about.body), about.example))
            .value());
  }
  operation.add("responses", responses_of(route));
  return operation.value();
}

Value paths_of(std::span<const RouteView> routes) {
  Value::Object paths;
  for (const RouteView& route : routes) {
    auto at = std::ranges::find(paths, route.pattern, &Member::name);
    if (at == paths.end()) {
      at = paths.insert(at, {std::string(route.pattern), {Value::Object{}}});
    }
    std::get<Value::Object>(at->value.data)
        .push_back({to_lower(route.method), operation_value(route)});
  }
  return {std::move(paths)};
}

Value problems_of(std::span<const RouteView> routes) {
  std::map<int, const RouteView*> statuses;  // and a route that may answer each
  for (const RouteView& route : routes) {
    for (const int status : errors_of(route)) statuses.emplace(status, &route);
  }
  Members responses;
  for (const auto& [status, route] : statuses) {
    responses.add(
        problem_name(status),
        Members()
            .add("description", status_title(status))
            .add("headers", headers_of(*route, status))
            .add("content", content_of("application/problem+json", Schemas::to("Problem"), ""))
            .value());
  }
  return responses.value();
}

Value shared_parameters() {
  Members parameters;
  for (const RequestHeader& header : kRequestHeaders) {
    if (header.component.empty()) continue;
    Members schema;
    schema.add("type", "string");
    if (!header.may_be_empty) schema.add("minLength", json(1));
    if (header.longest > 0)
      schema.add("maxLength", json(static_cast<std::int64_t>(header.longest)));
    parameters.add(header.component,
                   Members()
                       .add("name", header.name)
                       .add("in", "header")
                       .add("required", json(false))
                       .add("description", tr(header.help))
                       .add("schema", schema.value())
                       .value());
  }
  return parameters.value();
}

Value shared_headers() {
  Members headers;
  for (const AnswerHeader& header : kAnswerHeaders) {
    if (header.component.empty()) continue;
    Members schema;
    if (header.is_number) {
      schema.add("type", "integer").add("minimum", json(std::int64_t{0}));
    } else {
      schema.add("type", "string");
    }
    if (!header.pattern.empty()) schema.add("pattern", header.pattern);
    headers.add(header.component, header_value(tr(header.help), header.is_certain, schema.value()));
  }
  return headers.value();
}

Value components_of(std::span<const RouteView> routes) {
  Schemas schemas;
  describe_documents(schemas);
  Members named;
  for (const auto& [name, schema] : schemas.all()) named.add(name, schema);
  return Members()
      .add("parameters", shared_parameters())
      .add("headers", shared_headers())
      .add("responses", problems_of(routes))
      .add("securitySchemes", security_schemes())
      .add("schemas", named.value())
      .value();
}

Value info_of(std::string_view version) {
  return Members()
      .add("title", "gflow")
      .add("version", version)
      .add("summary", tr("GPUs of this machine, and the jobs that run on them"))
      .add("description",
           fmt::format(
               "{} {}",
               tr(identifications().front().help),
               tr("Requests from other machines need a token or a certificate. Each operation has "
                  "x-who (who may use it), x-role (the least role) and x-scope (the least scope of "
                  "a token). Unknown fields in a request are refused; readers of answers should "
                  "ignore fields they do not know. Text must not contain NUL characters.")))
      .add("license", Members().add("name", "Apache-2.0").add("identifier", "Apache-2.0").value())
      .value();
}

}  // namespace

std::string openapi_document(std::span<const RouteView> routes, std::string_view version) {
  Value::Array tags_shown;
  for (const Tag& tag : tags()) {
    tags_shown.push_back(Members().add("name", tag.name).add("description", tr(tag.help)).value());
  }
  return json_text(Members()
                       .add("openapi", "3.1.0")
                       .add("info", info_of(version))
                       .add("servers", Value{Value::Array{Members().add("url", "/").value()}})
                       .add("tags", Value{std::move(tags_shown)})
                       .add("paths", paths_of(routes))
                       .add("components", components_of(routes))
                       .value());
}

}  // namespace gflow::api

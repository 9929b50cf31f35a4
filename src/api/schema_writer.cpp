// SPDX-License-Identifier: Apache-2.0
#include "api/schema_writer.h"

#include <fmt/format.h>

#include "api/json.h"

namespace gflow::api {
namespace {

Value* member(Value& schema, std::string_view name) {
  auto& object = std::get<Value::Object>(schema.data);
  const auto found = std::ranges::find(object, name, &Member::name);
  return found == object.end() ? nullptr : &found->value;
}

void put(Value& schema, std::string_view name, Value value) {
  std::get<Value::Object>(schema.data).push_back({std::string(name), std::move(value)});
}

std::string_view change_name(Change change) {
  if (change == Change::Never) return "never";
  return change == Change::Pending ? "pending" : "active";
}

/// Of the schema that is text or base64.
struct Bytes {};

}  // namespace

std::string detail::schema_name(std::string_view type, Form form) {
  const std::string name(type);
  if (form == Form::Part) return name + "Part";
  return form == Form::Request || type.ends_with("View") ? name : name + "Shown";
}

Value detail::with_row(Value schema, const FieldInfo& row) {
  const std::size_t most = row.max_characters != 0 ? row.max_characters : row.max_bytes;
  const Value* type = member(schema, "type");
  const bool is_text =
      type != nullptr && type->as<std::string>() != nullptr && *type->as<std::string>() == "string";
  if (is_text && most != 0) put(schema, "maxLength", json(most));
  auto& object = std::get<Value::Object>(schema.data);
  object.insert(object.begin(), {"description", json(row.help)});
  return schema;
}

Value detail::with_change(Value schema, Change change) {
  put(schema, "x-change", json(change_name(change)));
  return schema;
}

Value detail::as_document(Value schema, std::string_view kind, Form form) {
  const auto constant = [](std::string_view text) {
    return Members().add("type", "string").add("const", text).value();
  };
  if (Value* properties = member(schema, "properties")) {
    auto& object = std::get<Value::Object>(properties->data);
    object.insert(object.begin(),
                  {{"apiVersion", constant(kApiVersion)}, {"kind", constant(kind)}});
  }
  if (form == Form::Request) return schema;
  if (Value* required = member(schema, "required")) {
    auto& names = std::get<Value::Array>(required->data);
    names.insert(names.begin(),
                 {json(std::string_view("apiVersion")), json(std::string_view("kind"))});
  }
  return schema;
}

Value Schemas::to(std::string_view name) {
  return Members().add("$ref", fmt::format("#/components/schemas/{}", name)).value();
}

Value Schemas::bytes() {
  if (take("Bytes", typeid(Bytes))) named_.insert_or_assign("Bytes", SchemaWriter::bytes_alone());
  return to("Bytes");
}

bool Schemas::take(const std::string& name, std::type_index type) {
  const auto [known, is_new] = types_.try_emplace(name, type);
  if (known->second != type) shared_names_.insert(name);
  return is_new;
}

Value SchemaWriter::bytes_alone() {
  Value encoded = Members().add("type", "string").add("contentEncoding", "base64").value();
  Value wrapped = Members()
                      .add("type", "object")
                      .add("additionalProperties", json(false))
                      .add("properties", Members().add("base64", std::move(encoded)).value())
                      .add("required", Value{Value::Array{json(std::string_view("base64"))}})
                      .value();
  return Members()
      .add("description", "text; what is not UTF-8 is wrapped")
      .add("anyOf", Value{Value::Array{typed("string"), std::move(wrapped)}})
      .value();
}

Value SchemaWriter::bytes_schema() const {
  return schemas_ == nullptr ? typed("string") : schemas_->bytes();
}

Value SchemaWriter::typed(std::string_view type) { return Members().add("type", type).value(); }

Value SchemaWriter::with_format(std::string_view type, std::string_view format) {
  return Members().add("type", type).add("format", format).value();
}

Value SchemaWriter::nullable(Value schema) {
  Value* type = member(schema, "type");
  if (type == nullptr) {
    return Members().add("anyOf", Value{Value::Array{std::move(schema), typed("null")}}).value();
  }
  if (Value* names = member(schema, "enum")) {
    std::get<Value::Array>(names->data).push_back({nullptr});
  }
  *type = Value{Value::Array{std::move(*type), json(std::string_view("null"))}};
  return schema;
}

Value SchemaWriter::not_empty(Value schema, std::size_t most) {
  put(schema, "minItems", json(1));
  if (most != SIZE_MAX) put(schema, "maxItems", json(most));
  return schema;
}

/// What a type cannot hold is said where it would be sent.
Value SchemaWriter::number(Range range, Range of_type) const {
  if (form_ == Form::Request) {
    range = {std::max(range.least, of_type.least), std::min(range.most, of_type.most)};
  }
  Value schema = typed("integer");
  if (range.least != INT64_MIN) put(schema, "minimum", json(range.least));
  if (range.most != INT64_MAX) put(schema, "maximum", json(range.most));
  return schema;
}

void SchemaWriter::add(std::string_view name, Value schema, bool is_required) {
  if (is_required) required_.push_back(json(name));
  properties_.add(name, std::move(schema));
}

void SchemaWriter::between(std::string_view name, const double& value, Bounds bounds) {
  Value schema = typed("number");
  const bool excluded = bounds.at == Bounds::Least::Excluded;
  put(schema, excluded ? "exclusiveMinimum" : "minimum", {bounds.least});
  put(schema, "maximum", {bounds.most});
  add(name, with_default(nullable(std::move(schema)), value), form_ == Form::Answer);
}

void SchemaWriter::choice(std::string_view name, const std::string& value, Words words) {
  Value schema = typed("string");
  Value::Array all;
  for (const std::string_view word : words) all.push_back(json(word));
  put(schema, "enum", {std::move(all)});
  add(name, with_default(std::move(schema), value), form_ == Form::Answer);
}

void SchemaWriter::known_text(std::string_view name, const std::string& /*value*/) {
  field(name, std::optional<std::string>());
}

void SchemaWriter::text_map(std::string_view name,
                            const std::vector<std::pair<std::string, std::string>>& /*texts*/) {
  Value schema = typed("object");
  put(schema, "additionalProperties", typed("string"));
  add(name, std::move(schema), form_ == Form::Answer);
}

Value SchemaWriter::finish() {
  Members schema;
  schema.add("type", "object");
  if (form_ == Form::Request) schema.add("additionalProperties", json(false));
  schema.add("properties", properties_.value());
  if (!required_.empty()) schema.add("required", Value{std::move(required_)});
  return schema.value();
}

}  // namespace gflow::api

// SPDX-License-Identifier: Apache-2.0
#include "api/document_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/documents.h"
#include "api/schema_writer.h"
#include "base/text.h"
#include "base/translate.h"

namespace gflow::api {
namespace {

const Value* member(const Value& value, std::string_view name) {
  const auto* object = value.as<Value::Object>();
  if (object == nullptr) return nullptr;
  const auto found = std::ranges::find(*object, name, &Member::name);
  return found == object->end() ? nullptr : &found->value;
}

std::string text(const Value* value) {
  const auto* known = value == nullptr ? nullptr : value->as<std::string>();
  return known == nullptr ? "" : *known;
}

std::string bare(const Value& value) {
  const auto* words = value.as<std::string>();
  return words == nullptr ? value.text() : *words;
}

/// "0 to 255", "at least 1"; "" if anything goes.
std::string range_of(const Value& schema) {
  const Value* least = member(schema, "minimum");
  const Value* over = member(schema, "exclusiveMinimum");
  const Value* most = member(schema, "maximum");
  if (over != nullptr && most != nullptr) {
    return tr_format("over {}, at most {}", over->text(), most->text());
  }
  if (least != nullptr && most != nullptr)
    return tr_format("{} to {}", least->text(), most->text());
  return least == nullptr ? "" : tr_format("at least {}", least->text());
}

struct Typed {
  std::string words;
  std::string of;
};

Typed typed(const Value& schema);

/// One of several schemas: what may be null, and bytes.
Typed any_of(const Value::Array& choices) {
  Typed all;
  for (const Value& choice : choices) {
    const Typed one = typed(choice);
    all.words += (all.words.empty() ? "" : " | ") + one.words;
    if (all.of.empty()) all.of = one.of;
  }
  return all;
}

/// "a | b" of a list.
std::string either(const Value& values) {
  std::string words;
  for (const Value& one : *values.as<Value::Array>()) {
    words += (words.empty() ? "" : " | ") + bare(one);
  }
  return words;
}

/// What a value that is neither object nor list may be.
std::string plain(const Value& schema) {
  if (const Value* choices = member(schema, "enum")) return either(*choices);
  if (const Value* only = member(schema, "const")) return '"' + bare(*only) + '"';
  const Value* type = member(schema, "type");
  if (type != nullptr && type->as<Value::Array>() != nullptr) return either(*type);
  return text(type);
}

Typed typed(const Value& schema) {
  constexpr std::string_view kAt = "#/components/schemas/";
  if (const std::string to = text(member(schema, "$ref")); !to.empty()) {
    const std::string name = to.substr(kAt.size());
    return {name, name};
  }
  for (const std::string_view word : {"anyOf", "oneOf"}) {
    if (const Value* choices = member(schema, word)) {
      return any_of(*choices->as<Value::Array>());
    }
  }
  if (const Value* items = member(schema, "items")) {
    const Typed one = typed(*items);
    return {tr_format("list of {}", one.words), one.of};
  }
  std::string words = plain(schema);
  if (const std::string format = text(member(schema, "format")); !format.empty()) {
    words += ", " + format;
  }
  if (const std::string range = range_of(schema); !range.empty()) words += ", " + range;
  return {words, ""};
}

void add_fields(DocumentView& view, const Value& schema) {
  const Value* properties = member(schema, "properties");
  if (properties == nullptr) return;
  const Value* required = member(schema, "required");
  for (const Member& one : *properties->as<Value::Object>()) {
    if (std::ranges::count(view.fields, one.name, &DocumentView::Field::name) != 0) continue;
    Typed type = typed(one.value);
    DocumentView::Field field{one.name, std::move(type.words), std::move(type.of), false, ""};
    if (required != nullptr) {
      for (const Value& name : *required->as<Value::Array>()) {
        field.required = field.required || bare(name) == one.name;
      }
    }
    const std::string help = text(member(one.value, "description"));
    if (!help.empty()) field.help = tr(help);
    view.fields.push_back(std::move(field));
  }
}

}  // namespace

std::vector<DocumentView> document_views() {
  Schemas schemas;
  describe_documents(schemas);
  std::vector<DocumentView> views;
  for (const auto& [name, schema] : schemas.all()) {
    DocumentView& view = views.emplace_back(DocumentView{name, {}});
    add_fields(view, schema);
    const Value* forms = member(schema, "oneOf");
    if (forms == nullptr) continue;
    for (const Value& form : *forms->as<Value::Array>()) add_fields(view, form);
  }
  return views;
}

}  // namespace gflow::api

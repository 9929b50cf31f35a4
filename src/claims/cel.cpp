// SPDX-License-Identifier: Apache-2.0
#include "claims/cel.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "claims/cel_functions.h"

namespace gflow::claims {
namespace {

using Kind = CelNode::Kind;

constexpr std::size_t kTextOfStep = 16;  // bytes

std::unexpected<Error> no_such_key(std::string_view key) {
  return fail(Code::Usage, fmt::format("no such key: {}", printable(key)));
}

class CelRun {
 public:
  CelRun(const CelSyntax& syntax, const CelValue& device) : nodes_(syntax.nodes) {
    variables_.emplace_back("device", device);
  }

  Result<CelValue> all() { return value_of(nodes_.size() - 1); }
  [[nodiscard]] long spent() const { return CelBudget{}.left - budget_.left; }

 private:
  using Value = Result<CelValue>;

  /// What is copied costs, too.
  Value value_of(std::size_t number) {
    if (!budget_.spend(1)) return too_long();
    Value value = worked_out(nodes_[number]);
    if (value && !budget_.spend(cost_of(*value))) return too_long();
    return value;
  }

  static std::size_t cost_of(const CelValue& value) {
    const auto* text = std::get_if<std::string>(&value.is);
    return text == nullptr ? 0 : text->size() / kTextOfStep;
  }

  Value worked_out(const CelNode& node) {
    switch (node.kind) {
      case Kind::Literal:
        return node.value;
      case Kind::Name:
        return variable(node.name);
      case Kind::Field:
        return selected(node, GF_TRY(value_of(node.parts[0])), CelValue{node.name});
      case Kind::Index:
        return index(node);
      case Kind::Has:
        return has(node);
      case Kind::And:
      case Kind::Or:
        return logical(node);
      case Kind::Choice:
        return choice(node);
      case Kind::List:
        return list_of(GF_TRY(values_of(node)));
      case Kind::Bind:
        return bind(node);
      case Kind::Each:
        return each(node);
      case Kind::Operator:
        return apply_operator(node.name, GF_TRY(values_of(node)), budget_);
      case Kind::Call:
        return apply_call(node.name, GF_TRY(values_of(node)), budget_);
      case Kind::Method:
        return method(node);
    }
    return too_long();
  }

  Result<CelItems> values_of(const CelNode& node) {
    CelItems values;
    for (const std::size_t part : node.parts) values.push_back(GF_TRY(value_of(part)));
    return values;
  }

  [[nodiscard]] Value variable(const std::string& name) const {
    for (auto at = variables_.rbegin(); at != variables_.rend(); ++at) {
      if (at->first == name) return at->second;
    }
    return fail(Code::Usage, fmt::format("there is no '{}'", printable(name)));
  }

  Value index(const CelNode& node) {
    const CelValue of = GF_TRY(value_of(node.parts[0]));
    return selected(node, of, GF_TRY(value_of(node.parts[1])));
  }

  /// What stands there; empty: nothing does.
  static Result<std::optional<CelValue>> found(const CelValue& of, const CelValue& key) {
    if (const auto* list = std::get_if<CelList>(&of.is)) {
      const auto* at = std::get_if<std::int64_t>(&key.is);
      if (at == nullptr) return no_overload("[]", key);
      const bool is_there = *at >= 0 && static_cast<std::size_t>(*at) < list->items->size();
      if (!is_there) return std::nullopt;
      return (*list->items)[static_cast<std::size_t>(*at)];
    }
    const auto* map = std::get_if<CelMap>(&of.is);
    if (map == nullptr) return no_overload("[]", of);
    const auto* name = std::get_if<std::string>(&key.is);
    if (name == nullptr) return no_overload("[]", key);
    const auto at = map->fields->find(*name);
    if (at != map->fields->end()) return at->second;
    if (map->has_default) return map_of({});
    return std::nullopt;
  }

  /// Of what is optional all that is selected is, too.
  static Value selected(const CelNode& node, const CelValue& of, const CelValue& key) {
    const auto* optional = std::get_if<CelOptional>(&of.is);
    if (optional != nullptr && optional->value == nullptr) return of;
    std::optional<CelValue> there = GF_TRY(found(optional != nullptr ? *optional->value : of, key));
    if (optional != nullptr || node.is_optional) {
      if (!there) return CelValue{CelOptional{}};
      return CelValue{CelOptional{std::make_shared<const CelValue>(*std::move(there))}};
    }
    if (there) return *std::move(there);
    const auto* name = std::get_if<std::string>(&key.is);
    if (name != nullptr) return no_such_key(*name);
    return fail(Code::Usage, "a list is not so long");
  }

  Value has(const CelNode& node) {
    const CelValue of = GF_TRY(value_of(node.parts[0]));
    const auto* optional = std::get_if<CelOptional>(&of.is);
    if (optional != nullptr && optional->value == nullptr) return CelValue{false};
    const auto there =
        GF_TRY(found(optional != nullptr ? *optional->value : of, CelValue{node.name}));
    return CelValue{there.has_value()};
  }

  /// One of them decides whatever cannot be worked out beside it.
  Value logical(const CelNode& node) {
    const bool decides = node.kind == Kind::Or;
    std::optional<Error> failed;
    for (const std::size_t part : node.parts) {
      const Value value = value_of(part);
      const auto* is = value ? std::get_if<bool>(&value->is) : nullptr;
      if (is != nullptr && *is == decides) return CelValue{decides};
      if (is != nullptr || failed) continue;
      failed = value ? no_overload(decides ? "||" : "&&", *value).error() : value.error();
    }
    if (budget_.left < 0) return too_long();
    if (failed) return std::unexpected(*failed);
    return CelValue{!decides};
  }

  Value choice(const CelNode& node) {
    const CelValue condition = GF_TRY(value_of(node.parts[0]));
    const auto* is = std::get_if<bool>(&condition.is);
    if (is == nullptr) return no_overload("?:", condition);
    return value_of(node.parts[*is ? 1 : 2]);
  }

  Value with_variable(const std::string& name, CelValue value, std::size_t part) {
    variables_.emplace_back(name, std::move(value));
    Value made = value_of(part);
    variables_.pop_back();
    return made;
  }

  Value bind(const CelNode& node) {
    return with_variable(node.name, GF_TRY(value_of(node.parts[0])), node.parts[1]);
  }

  Value method(const CelNode& node) {
    // What stands for a value that is not there is worked out only where it is not.
    if (node.name == "orValue") {
      const CelValue of = GF_TRY(value_of(node.parts[0]));
      const auto* optional = std::get_if<CelOptional>(&of.is);
      if (optional == nullptr) return no_overload(node.name, of);
      return optional->value != nullptr ? Value(*optional->value) : value_of(node.parts[1]);
    }
    return apply_method(node.name, GF_TRY(values_of(node)), budget_);
  }

  /// The items of a list, and the keys of a map.
  static Result<CelItems> items_of(const CelValue& of) {
    if (const auto* list = std::get_if<CelList>(&of.is)) return *list->items;
    const auto* map = std::get_if<CelMap>(&of.is);
    if (map == nullptr) return no_overload("all", of);
    CelItems keys;
    for (const auto& [key, value] : *map->fields) keys.push_back(CelValue{key});
    return keys;
  }

  Value each(const CelNode& node) {
    const CelValue of = GF_TRY(value_of(node.parts[0]));
    CelItems items = GF_TRY(items_of(of));
    for (const CelValue& item : items) {
      if (!budget_.spend(1 + cost_of(item))) return too_long();
    }
    if (node.macro == "map") {
      for (CelValue& item : items) item = GF_TRY(with_variable(node.name, item, node.parts[1]));
      return list_of(std::move(items));
    }
    return node.macro == "all" || node.macro == "exists" ? any_or_all(node, items)
                                                         : those(node, items);
  }

  Value any_or_all(const CelNode& node, const CelItems& items) {
    const bool decides = node.macro == "exists";
    std::optional<Error> failed;
    for (const CelValue& item : items) {
      if (budget_.left < 0) return too_long();
      const Value value = with_variable(node.name, item, node.parts[1]);
      const auto* is = value ? std::get_if<bool>(&value->is) : nullptr;
      if (is != nullptr && *is == decides) return CelValue{decides};
      if (is != nullptr || failed) continue;
      failed = value ? no_overload(node.macro, *value).error() : value.error();
    }
    if (failed) return std::unexpected(*failed);
    return CelValue{!decides};
  }

  Value those(const CelNode& node, const CelItems& items) {
    CelItems kept;
    for (const CelValue& item : items) {
      const CelValue value = GF_TRY(with_variable(node.name, item, node.parts[1]));
      const auto* is = std::get_if<bool>(&value.is);
      if (is == nullptr) return no_overload(node.macro, value);
      if (*is) kept.push_back(item);
    }
    if (node.macro == "exists_one") return CelValue{kept.size() == 1};
    return list_of(std::move(kept));
  }

  const std::vector<CelNode>& nodes_;
  std::vector<std::pair<std::string, CelValue>> variables_;
  CelBudget budget_;
};

}  // namespace

Result<CelExpression> CelExpression::read(std::string_view text) {
  return CelExpression(GF_TRY(read_cel(text)));
}

Result<bool> CelExpression::holds(const CelValue& device, long& steps) const {
  CelRun run(syntax_, device);
  const auto worked_out = run.all();
  steps += run.spent();
  const CelValue value = GF_TRY(worked_out);
  const auto* is = std::get_if<bool>(&value.is);
  if (is == nullptr) return fail(Code::Usage, "it is " + type_name(value) + ", not bool");
  return *is;
}

}  // namespace gflow::claims

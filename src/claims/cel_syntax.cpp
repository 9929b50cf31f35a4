// SPDX-License-Identifier: Apache-2.0
#include "claims/cel_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "claims/cel_tokens.h"

namespace gflow::claims {
namespace {

/// The API server takes no longer one.
constexpr std::size_t kMostText = 10 * 1024;
/// Of parts in parts: who reads one, or works it out, goes down as deep.
constexpr int kMostDepth = 100;

using Node = CelNode;
using Token = CelToken;

struct Callable {
  std::string_view name;
  std::size_t least;  ///< arguments
  std::size_t most;
};

constexpr std::array kCalls = {Callable{"size", 1, 1},
                               Callable{"int", 1, 1},
                               Callable{"uint", 1, 1},
                               Callable{"double", 1, 1},
                               Callable{"string", 1, 1},
                               Callable{"bool", 1, 1},
                               Callable{"dyn", 1, 1},
                               Callable{"quantity", 1, 1},
                               Callable{"isQuantity", 1, 1},
                               Callable{"semver", 1, 1},
                               Callable{"isSemver", 1, 1},
                               Callable{"optional.of", 1, 1},
                               Callable{"optional.none", 0, 0}};

constexpr std::array kMethods = {Callable{"startsWith", 1, 1}, Callable{"endsWith", 1, 1},
                                 Callable{"contains", 1, 1},   Callable{"lowerAscii", 0, 0},
                                 Callable{"upperAscii", 0, 0}, Callable{"trim", 0, 0},
                                 Callable{"size", 0, 0},       Callable{"isGreaterThan", 1, 1},
                                 Callable{"isLessThan", 1, 1}, Callable{"compareTo", 1, 1},
                                 Callable{"add", 1, 1},        Callable{"sub", 1, 1},
                                 Callable{"sign", 0, 0},       Callable{"isInteger", 0, 0},
                                 Callable{"asInteger", 0, 0},  Callable{"asApproximateFloat", 0, 0},
                                 Callable{"major", 0, 0},      Callable{"minor", 0, 0},
                                 Callable{"patch", 0, 0},      Callable{"hasValue", 0, 0},
                                 Callable{"value", 0, 0},      Callable{"orValue", 1, 1}};

constexpr std::array kMacros = {Callable{"all", 2, 2},
                                Callable{"exists", 2, 2},
                                Callable{"exists_one", 2, 2},
                                Callable{"filter", 2, 2},
                                Callable{"map", 2, 2}};

template <typename Table>
const Callable* find_in(const Table& table, std::string_view name) {
  const auto at = std::ranges::find(table, name, &Callable::name);
  return at == table.end() ? nullptr : &*at;
}

std::unexpected<Error> unreadable(std::string_view what) {
  return fail(Code::Usage, fmt::format("gflow-kube cannot read '{}'", printable(what)));
}

class CelReader {
 public:
  explicit CelReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<CelSyntax> all() {
    GF_TRY(expression());
    if (peek().kind != Token::Kind::End) return unreadable(peek().text);
    return CelSyntax{std::move(nodes_)};
  }

 private:
  using Part = Result<std::size_t>;

  [[nodiscard]] const Token& peek() const { return tokens_[at_]; }
  [[nodiscard]] bool is_sign(std::string_view sign) const {
    return peek().kind == Token::Kind::Sign && peek().text == sign;
  }
  [[nodiscard]] bool is_name(std::string_view name) const {
    return peek().kind == Token::Kind::Name && peek().text == name;
  }
  bool take(std::string_view sign) {
    if (!is_sign(sign)) return false;
    ++at_;
    return true;
  }
  Result<void> need(std::string_view sign) {
    if (take(sign)) return {};
    const bool is_end = peek().kind == Token::Kind::End;
    return fail(Code::Usage,
                fmt::format("gflow-kube cannot read {}: '{}' is missing",
                            is_end ? "the end" : "'" + printable(peek().text) + "'",
                            sign));
  }

  Part add(Node node) {
    for (const std::size_t part : node.parts) {
      node.depth = std::max(node.depth, nodes_[part].depth + 1);
    }
    if (node.depth > kMostDepth) return unreadable("so many parts in parts");
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }
  Part add_operator(std::string name, std::vector<std::size_t> parts) {
    return add({.kind = Node::Kind::Operator, .name = std::move(name), .parts = std::move(parts)});
  }

  Part expression() {
    if (++nested_ > kMostDepth) return unreadable("so many parts in parts");
    const std::size_t condition = GF_TRY(either());
    if (!take("?")) {
      --nested_;
      return condition;
    }
    const std::size_t then = GF_TRY(either());
    GF_CHECK(need(":"));
    const std::size_t otherwise = GF_TRY(expression());
    --nested_;
    return add({.kind = Node::Kind::Choice, .parts = {condition, then, otherwise}});
  }

  Part either() {
    std::vector<std::size_t> parts = {GF_TRY(both())};
    while (take("||")) parts.push_back(GF_TRY(both()));
    if (parts.size() == 1) return parts.front();
    return add({.kind = Node::Kind::Or, .parts = std::move(parts)});
  }

  Part both() {
    std::vector<std::size_t> parts = {GF_TRY(relation())};
    while (take("&&")) parts.push_back(GF_TRY(relation()));
    if (parts.size() == 1) return parts.front();
    return add({.kind = Node::Kind::And, .parts = std::move(parts)});
  }

  [[nodiscard]] bool is_one_of(std::initializer_list<std::string_view> signs) const {
    return std::ranges::any_of(signs, [this](std::string_view sign) { return is_sign(sign); });
  }

  Part relation() {
    std::size_t left = GF_TRY(addition());
    while (is_name("in") || is_one_of({"==", "!=", "<=", ">=", "<", ">"})) {
      std::string name = tokens_[at_++].text;
      const std::size_t right = GF_TRY(addition());
      left = GF_TRY(add_operator(std::move(name), {left, right}));
    }
    return left;
  }

  Part addition() {
    std::size_t left = GF_TRY(product());
    while (is_one_of({"+", "-"})) {
      std::string name = tokens_[at_++].text;
      const std::size_t right = GF_TRY(product());
      left = GF_TRY(add_operator(std::move(name), {left, right}));
    }
    return left;
  }

  Part product() {
    std::size_t left = GF_TRY(unary());
    while (is_one_of({"*", "/", "%"})) {
      std::string name = tokens_[at_++].text;
      const std::size_t right = GF_TRY(unary());
      left = GF_TRY(add_operator(std::move(name), {left, right}));
    }
    return left;
  }

  Part unary() {
    if (!is_one_of({"!", "-"})) return member();
    const std::string sign = tokens_[at_].text;
    std::size_t times = 0;
    while (take(sign)) ++times;
    const bool is_number = sign == "-" && times == 1 && peek().kind == Token::Kind::Literal;
    if (is_number && std::holds_alternative<std::int64_t>(peek().value.is)) {
      Token& token = tokens_[at_];
      auto& number = std::get<std::int64_t>(token.value.is);
      if (!std::exchange(token.is_least, false)) number = -number;
      return member();
    }
    if (times % 2 == 0) times = 2;  // so that what is none of the kind is told
    if (times % 2 == 1) times = 1;
    std::size_t part = GF_TRY(member());
    for (std::size_t i = 0; i < times; ++i) part = GF_TRY(add_operator(sign + "x", {part}));
    return part;
  }

  Part member() {
    std::size_t part = GF_TRY(primary());
    while (true) {
      if (take("[")) {
        const bool is_optional = take("?");
        const std::size_t index = GF_TRY(expression());
        GF_CHECK(need("]"));
        part = GF_TRY(
            add({.kind = Node::Kind::Index, .parts = {part, index}, .is_optional = is_optional}));
      } else if (take(".")) {
        part = GF_TRY(selected(part));
      } else {
        return part;
      }
    }
  }

  /// Behind a point.
  Part selected(std::size_t of) {
    const bool is_optional = take("?");
    if (peek().kind != Token::Kind::Name) return unreadable("." + peek().text);
    std::string name = tokens_[at_++].text;
    if (is_optional || !is_sign("(")) {
      return add({.kind = Node::Kind::Field,
                  .name = std::move(name),
                  .parts = {of},
                  .is_optional = is_optional});
    }
    const Node& whose = nodes_[of];
    if (whose.kind == Node::Kind::Name && whose.name == "cel") return bind(name);
    if (whose.kind == Node::Kind::Name && whose.name == "optional") {
      return call("optional." + name);
    }
    if (const Callable* macro = find_in(kMacros, name)) return each(of, *macro);
    ++at_;
    std::vector<std::size_t> parts = {of};
    for (const std::size_t argument : GF_TRY(arguments(")"))) parts.push_back(argument);
    const Callable* method = find_in(kMethods, name);
    const bool is_one =
        method != nullptr && parts.size() > method->least && parts.size() <= method->most + 1;
    if (!is_one) return unreadable("." + name + "(...)");
    return add({.kind = Node::Kind::Method, .name = std::move(name), .parts = std::move(parts)});
  }

  Part bind(const std::string& name) {
    if (name != "bind") return unreadable("cel." + name + "(...)");
    ++at_;
    const std::string variable = GF_TRY(variable_name());
    const std::size_t value = GF_TRY(expression());
    GF_CHECK(need(","));
    const std::size_t in = GF_TRY(expression());
    GF_CHECK(need(")"));
    return add({.kind = Node::Kind::Bind, .name = variable, .parts = {value, in}});
  }

  Part each(std::size_t of, const Callable& macro) {
    ++at_;
    const std::string variable = GF_TRY(variable_name());
    const std::size_t what = GF_TRY(expression());
    if (!is_sign(")")) return unreadable(fmt::format(".{}(...)", macro.name));
    ++at_;
    return add({.kind = Node::Kind::Each,
                .name = variable,
                .macro = std::string(macro.name),
                .parts = {of, what}});
  }

  Result<std::string> variable_name() {
    if (peek().kind != Token::Kind::Name) return unreadable(peek().text);
    std::string name = tokens_[at_++].text;
    GF_CHECK(need(","));
    return name;
  }

  Result<std::vector<std::size_t>> arguments(std::string_view end) {
    std::vector<std::size_t> parts;
    while (!is_sign(end)) {
      if (is_sign("?")) return unreadable("?");
      parts.push_back(GF_TRY(expression()));
      if (!take(",")) break;
    }
    GF_CHECK(need(end));
    return parts;
  }

  Part call(const std::string& name) {
    const Callable* known = find_in(kCalls, name);
    if (known == nullptr) return unreadable(name + "(...)");
    ++at_;
    std::vector<std::size_t> parts = GF_TRY(arguments(")"));
    if (parts.size() < known->least || parts.size() > known->most) {
      return unreadable(name + "(...)");
    }
    return add({.kind = Node::Kind::Call, .name = name, .parts = std::move(parts)});
  }

  Part has() {
    ++at_;
    const std::size_t what = GF_TRY(expression());
    GF_CHECK(need(")"));
    const Node& field = nodes_[what];
    if (field.kind != Node::Kind::Field || field.is_optional) return unreadable("has(...)");
    return add({.kind = Node::Kind::Has, .name = field.name, .parts = field.parts});
  }

  Part primary() {
    if (take("(")) {
      const std::size_t part = GF_TRY(expression());
      GF_CHECK(need(")"));
      return part;
    }
    if (take("[")) {
      return add({.kind = Node::Kind::List, .parts = GF_TRY(arguments("]"))});
    }
    const Token& token = peek();
    if (token.kind == Token::Kind::Literal) {
      if (token.is_least) return unreadable(token.text);
      ++at_;
      return add({.kind = Node::Kind::Literal, .value = token.value});
    }
    if (token.kind != Token::Kind::Name || token.text == "in") {
      return unreadable(token.kind == Token::Kind::End ? "the end" : token.text);
    }
    const std::string name = tokens_[at_++].text;
    if (name == "true" || name == "false") {
      return add({.kind = Node::Kind::Literal, .value = {name == "true"}});
    }
    if (name == "null") return add({.kind = Node::Kind::Literal});
    if (is_sign("(")) return name == "has" ? has() : call(name);
    return add({.kind = Node::Kind::Name, .name = name});
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nested_ = 0;
  std::vector<Node> nodes_;
};

}  // namespace

Result<CelSyntax> read_cel(std::string_view text) {
  if (text.size() > kMostText) return unreadable("so long an expression");
  return CelReader(GF_TRY(cel_tokens_of(text))).all();
}

}  // namespace gflow::claims

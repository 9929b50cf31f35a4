// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <optional>

#include "claims/cel_functions.h"

namespace gflow::claims {
namespace {

constexpr std::size_t kMostBytes = 64 * 1024;  // of a text that is put together
constexpr std::size_t kMostItems = 4096;       // the same of a list

/// Of two numbers, of whatever kinds; not a number is unordered.
std::optional<std::partial_ordering> compare_numbers(const CelValue& a, const CelValue& b) {
  const auto* a_int = std::get_if<std::int64_t>(&a.is);
  const auto* a_uint = std::get_if<std::uint64_t>(&a.is);
  const auto* a_double = std::get_if<double>(&a.is);
  const auto* b_int = std::get_if<std::int64_t>(&b.is);
  const auto* b_uint = std::get_if<std::uint64_t>(&b.is);
  const auto* b_double = std::get_if<double>(&b.is);
  const bool is_a = a_int != nullptr || a_uint != nullptr || a_double != nullptr;
  const bool is_b = b_int != nullptr || b_uint != nullptr || b_double != nullptr;
  if (!is_a || !is_b) return std::nullopt;
  if (a_double == nullptr && b_double == nullptr) {
    const __int128 x = a_int != nullptr ? __int128{*a_int} : __int128{*a_uint};
    const __int128 y = b_int != nullptr ? __int128{*b_int} : __int128{*b_uint};
    if (x == y) return std::partial_ordering::equivalent;
    return x < y ? std::partial_ordering::less : std::partial_ordering::greater;
  }
  const auto as_double = [](const auto* n, const auto* u, const auto* d) {
    if (d != nullptr) return *d;
    return n != nullptr ? static_cast<double>(*n) : static_cast<double>(*u);
  };
  return as_double(a_int, a_uint, a_double) <=> as_double(b_int, b_uint, b_double);
}

Result<bool> are_items_equal(const CelItems& a, const CelItems& b, CelBudget& budget) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!GF_TRY(is_equal(a[i], b[i], budget))) return false;
  }
  return true;
}

Result<bool> are_fields_equal(const CelFields& a, const CelFields& b, CelBudget& budget) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, value] : a) {
    const auto at = b.find(name);
    if (at == b.end() || !GF_TRY(is_equal(value, at->second, budget))) return false;
  }
  return true;
}

Result<CelValue> ordered(const std::string& name,
                         const CelValue& a,
                         const CelValue& b,
                         CelBudget& budget) {
  std::optional<std::partial_ordering> order = compare_numbers(a, b);
  const auto* text_a = std::get_if<std::string>(&a.is);
  const auto* text_b = std::get_if<std::string>(&b.is);
  if (text_a != nullptr && text_b != nullptr) {
    if (!budget.spend(text_a->size() / 16)) return too_long();
    order = text_a->compare(*text_b) <=> 0;
  }
  const auto* bool_a = std::get_if<bool>(&a.is);
  const auto* bool_b = std::get_if<bool>(&b.is);
  if (bool_a != nullptr && bool_b != nullptr) order = int{*bool_a} <=> int{*bool_b};
  if (!order) return no_overload(name, a);
  if (name == "<") return CelValue{*order < 0};
  if (name == "<=") return CelValue{*order <= 0};
  if (name == ">") return CelValue{*order > 0};
  return CelValue{*order >= 0};
}

Result<CelValue> contained(const CelValue& what, const CelValue& in, CelBudget& budget) {
  if (const auto* list = std::get_if<CelList>(&in.is)) {
    for (const CelValue& one : *list->items) {
      if (GF_TRY(is_equal(one, what, budget))) return CelValue{true};
    }
    return CelValue{false};
  }
  const auto* map = std::get_if<CelMap>(&in.is);
  if (map == nullptr) return no_overload("in", in);
  const auto* key = std::get_if<std::string>(&what.is);
  return CelValue{key != nullptr && map->fields->contains(*key)};
}

std::unexpected<Error> overflow() { return fail(Code::Usage, "a number is too large"); }

template <typename Number>
Result<CelValue> integers(const std::string& name, Number a, Number b) {
  Number made = 0;
  bool is_over = false;
  if (name == "+") is_over = __builtin_add_overflow(a, b, &made);
  if (name == "-") is_over = __builtin_sub_overflow(a, b, &made);
  if (name == "*") is_over = __builtin_mul_overflow(a, b, &made);
  if (name == "/" || name == "%") {
    if (b == 0) return fail(Code::Usage, "something is divided by zero");
    if constexpr (std::is_signed_v<Number>) {
      if (b == -1 && a == std::numeric_limits<Number>::min()) return overflow();
    }
    made = name == "/" ? a / b : a % b;
  }
  if (is_over) return overflow();
  return CelValue{made};
}

Result<CelValue> doubles(const std::string& name, double a, double b, const CelValue& whose) {
  if (name == "+") return CelValue{a + b};
  if (name == "-") return CelValue{a - b};
  if (name == "*") return CelValue{a * b};
  if (name == "/") return CelValue{a / b};
  return no_overload(name, whose);
}

Result<CelValue> joined(const CelValue& a, const CelValue& b, CelBudget& budget) {
  const auto* text_a = std::get_if<std::string>(&a.is);
  const auto* text_b = std::get_if<std::string>(&b.is);
  if (text_a != nullptr && text_b != nullptr) {
    const std::size_t size = text_a->size() + text_b->size();
    if (size > kMostBytes || !budget.spend(size / 16)) return too_long();
    return CelValue{*text_a + *text_b};
  }
  const auto* list_a = std::get_if<CelList>(&a.is);
  const auto* list_b = std::get_if<CelList>(&b.is);
  if (list_a == nullptr || list_b == nullptr) return no_overload("+", a);
  const std::size_t size = list_a->items->size() + list_b->items->size();
  if (size > kMostItems || !budget.spend(size)) return too_long();
  CelItems items = *list_a->items;
  items.insert(items.end(), list_b->items->begin(), list_b->items->end());
  return list_of(std::move(items));
}

Result<CelValue> computed(const std::string& name,
                          const CelValue& a,
                          const CelValue& b,
                          CelBudget& budget) {
  if (a.is.index() == b.is.index()) {
    if (const auto* x = std::get_if<std::int64_t>(&a.is)) {
      return integers(name, *x, std::get<std::int64_t>(b.is));
    }
    if (const auto* x = std::get_if<std::uint64_t>(&a.is)) {
      return integers(name, *x, std::get<std::uint64_t>(b.is));
    }
    if (const auto* x = std::get_if<double>(&a.is)) {
      return doubles(name, *x, std::get<double>(b.is), a);
    }
  }
  return name == "+" ? joined(a, b, budget) : Result<CelValue>(no_overload(name, a));
}

Result<CelValue> negated(const std::string& name, const CelValue& of) {
  if (name == "!x") {
    const auto* is = std::get_if<bool>(&of.is);
    return is != nullptr ? CelValue{!*is} : Result<CelValue>(no_overload("!", of));
  }
  if (const auto* number = std::get_if<double>(&of.is)) return CelValue{-*number};
  const auto* number = std::get_if<std::int64_t>(&of.is);
  if (number == nullptr) return no_overload("-", of);
  return integers<std::int64_t>("-", 0, *number);
}

}  // namespace

std::unexpected<Error> no_overload(const std::string& name, const CelValue& value) {
  return fail(Code::Usage,
              fmt::format("'{}' is not for a value of type {}", name, type_name(value)));
}

std::unexpected<Error> too_long() {
  return fail(Code::Exhausted, "the expression takes too long to work out");
}

Result<bool> is_equal(const CelValue& a, const CelValue& b, CelBudget& budget) {
  if (!budget.spend(1)) return too_long();
  if (const auto order = compare_numbers(a, b)) return *order == 0;
  if (a.is.index() != b.is.index()) return false;
  if (const auto* x = std::get_if<bool>(&a.is)) return *x == std::get<bool>(b.is);
  if (const auto* x = std::get_if<std::string>(&a.is)) {
    if (!budget.spend(x->size() / 16)) return too_long();
    return *x == std::get<std::string>(b.is);
  }
  if (const auto* x = std::get_if<Amount>(&a.is)) return *x == std::get<Amount>(b.is);
  if (const auto* x = std::get_if<Version>(&a.is)) {
    return compare(*x, std::get<Version>(b.is)) == 0;
  }
  if (const auto* x = std::get_if<CelList>(&a.is)) {
    return are_items_equal(*x->items, *std::get<CelList>(b.is).items, budget);
  }
  if (const auto* x = std::get_if<CelMap>(&a.is)) {
    return are_fields_equal(*x->fields, *std::get<CelMap>(b.is).fields, budget);
  }
  if (const auto* x = std::get_if<CelOptional>(&a.is)) {
    const auto& y = std::get<CelOptional>(b.is);
    if (x->value == nullptr || y.value == nullptr) return x->value == y.value;
    return is_equal(*x->value, *y.value, budget);
  }
  return true;  // null
}

Result<CelValue> apply_operator(const std::string& name,
                                const std::vector<CelValue>& of,
                                CelBudget& budget) {
  if (of.size() == 1) return negated(name, of[0]);
  if (name == "==") return CelValue{GF_TRY(is_equal(of[0], of[1], budget))};
  if (name == "!=") return CelValue{!GF_TRY(is_equal(of[0], of[1], budget))};
  if (name == "in") return contained(of[0], of[1], budget);
  if (name.front() == '<' || name.front() == '>') return ordered(name, of[0], of[1], budget);
  return computed(name, of[0], of[1], budget);
}

}  // namespace gflow::claims

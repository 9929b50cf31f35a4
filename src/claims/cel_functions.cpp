// SPDX-License-Identifier: Apache-2.0
#include "claims/cel_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace gflow::claims {
namespace {

template <typename T>
Result<T> parsed(const std::string& text, const char* what) {
  T value{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) {
    return fail(Code::Usage, fmt::format("'{}' is no {}", printable(text), what));
  }
  return value;
}

Result<CelValue> to_int(const CelValue& of) {
  if (std::holds_alternative<std::int64_t>(of.is)) return of;
  if (const auto* x = std::get_if<std::uint64_t>(&of.is)) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (*x > kMost) return fail(Code::Usage, "a number is too large");
    return CelValue{static_cast<std::int64_t>(*x)};
  }
  if (const auto* x = std::get_if<double>(&of.is)) {
    if (!(std::fabs(*x) < 9.2e18)) return fail(Code::Usage, "a number is too large");
    return CelValue{static_cast<std::int64_t>(*x)};
  }
  const auto* text = std::get_if<std::string>(&of.is);
  if (text == nullptr) return no_overload("int()", of);
  return CelValue{GF_TRY(parsed<std::int64_t>(*text, "int"))};
}

Result<CelValue> to_uint(const CelValue& of) {
  if (std::holds_alternative<std::uint64_t>(of.is)) return of;
  if (const auto* text = std::get_if<std::string>(&of.is)) {
    return CelValue{GF_TRY(parsed<std::uint64_t>(*text, "uint"))};
  }
  const CelValue made = GF_TRY(to_int(of));
  const auto number = std::get<std::int64_t>(made.is);
  if (number < 0) return fail(Code::Usage, "a number is too small");
  return CelValue{static_cast<std::uint64_t>(number)};
}

Result<CelValue> to_double(const CelValue& of) {
  if (std::holds_alternative<double>(of.is)) return of;
  if (const auto* x = std::get_if<std::int64_t>(&of.is)) return CelValue{static_cast<double>(*x)};
  if (const auto* x = std::get_if<std::uint64_t>(&of.is)) return CelValue{static_cast<double>(*x)};
  const auto* text = std::get_if<std::string>(&of.is);
  if (text == nullptr) return no_overload("double()", of);
  return CelValue{GF_TRY(parsed<double>(*text, "double"))};
}

Result<CelValue> to_string_value(const CelValue& of) {
  if (std::holds_alternative<std::string>(of.is)) return of;
  if (const auto* x = std::get_if<bool>(&of.is))
    return CelValue{std::string(*x ? "true" : "false")};
  if (const auto* x = std::get_if<std::int64_t>(&of.is)) return CelValue{std::to_string(*x)};
  if (const auto* x = std::get_if<std::uint64_t>(&of.is)) return CelValue{std::to_string(*x)};
  if (const auto* x = std::get_if<double>(&of.is)) return CelValue{fmt::format("{}", *x)};
  return no_overload("string()", of);
}

Result<CelValue> to_bool(const CelValue& of) {
  if (std::holds_alternative<bool>(of.is)) return of;
  const auto* text = std::get_if<std::string>(&of.is);
  if (text == nullptr) return no_overload("bool()", of);
  if (*text != "true" && *text != "false") {
    return fail(Code::Usage, fmt::format("'{}' is no bool", printable(*text)));
  }
  return CelValue{*text == "true"};
}

Result<CelValue> size_of(const CelValue& of, CelBudget& budget) {
  if (const auto* list = std::get_if<CelList>(&of.is)) {
    return CelValue{static_cast<std::int64_t>(list->items->size())};
  }
  if (const auto* map = std::get_if<CelMap>(&of.is)) {
    return CelValue{static_cast<std::int64_t>(map->fields->size())};
  }
  const auto* text = std::get_if<std::string>(&of.is);
  if (text == nullptr) return no_overload("size", of);
  if (!budget.spend(text->size() / 16)) return too_long();
  const auto points = std::ranges::count_if(
      *text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
  return CelValue{static_cast<std::int64_t>(points)};
}

CelValue optional_of(const CelValue& value) {
  return {CelOptional{std::make_shared<const CelValue>(value)}};
}

/// Of a text, "" if it is none of these functions.
Result<CelValue> of_text_alone(const std::string& name, const std::string& text) {
  std::string made = text;
  const auto change = [&made](char first, char last, int by) {
    for (char& c : made) {
      if (c >= first && c <= last) c = static_cast<char>(c + by);
    }
  };
  if (name == "lowerAscii") change('A', 'Z', 'a' - 'A');
  if (name == "upperAscii") change('a', 'z', 'A' - 'a');
  if (name == "trim") made = std::string(trim(text));
  if (name != "lowerAscii" && name != "upperAscii" && name != "trim") {
    return no_overload(name, CelValue{text});
  }
  return CelValue{std::move(made)};
}

Result<CelValue> of_text(const std::string& name,
                         const std::vector<CelValue>& of,
                         CelBudget& budget) {
  const std::string& text = std::get<std::string>(of[0].is);
  if (!budget.spend(1 + text.size() / 16)) return too_long();
  if (of.size() == 1) return of_text_alone(name, text);
  const auto* other = std::get_if<std::string>(&of[1].is);
  if (other == nullptr) return no_overload(name, of[1]);
  if (name == "startsWith") return CelValue{text.starts_with(*other)};
  if (name == "endsWith") return CelValue{text.ends_with(*other)};
  if (name != "contains") return no_overload(name, of[0]);
  // Where each place is tried for all of it, at worst.
  if (!budget.spend(text.size() / 16 * (1 + other->size() / 16))) return too_long();
  return CelValue{text.contains(*other)};
}

Result<CelValue> of_amount_alone(const std::string& name, const Amount& amount) {
  if (name == "sign") {
    return CelValue{std::int64_t{amount.nanos == 0 ? 0 : amount.nanos < 0 ? -1 : 1}};
  }
  if (name == "isInteger") return CelValue{is_whole(amount)};
  if (name == "asApproximateFloat") return CelValue{static_cast<double>(amount.nanos) / 1e9};
  if (name != "asInteger") return no_overload(name, CelValue{amount});
  if (!is_whole(amount)) return fail(Code::Usage, "a quantity is no integer");
  return CelValue{rounded(amount)};
}

Result<CelValue> compared(const std::string& name, std::strong_ordering order, const CelValue& of) {
  if (name == "isGreaterThan") return CelValue{order > 0};
  if (name == "isLessThan") return CelValue{order < 0};
  if (name != "compareTo") return no_overload(name, of);
  return CelValue{std::int64_t{order == 0 ? 0 : order < 0 ? -1 : 1}};
}

Result<CelValue> of_amount(const std::string& name, const std::vector<CelValue>& of) {
  const Amount& amount = std::get<Amount>(of[0].is);
  if (of.size() == 1) return of_amount_alone(name, amount);
  const auto* number = std::get_if<std::int64_t>(&of[1].is);
  const auto* other = std::get_if<Amount>(&of[1].is);
  if (other == nullptr && number == nullptr) return no_overload(name, of[1]);
  const Amount by = other != nullptr ? *other : whole(*number);
  if (name == "add") return CelValue{sum(amount, by)};
  if (name == "sub") return CelValue{difference(amount, by)};
  if (other == nullptr) return no_overload(name, of[1]);
  return compared(name, amount <=> by, of[0]);
}

Result<CelValue> of_version(const std::string& name, const std::vector<CelValue>& of) {
  const Version& version = std::get<Version>(of[0].is);
  if (of.size() == 2) {
    const auto* other = std::get_if<Version>(&of[1].is);
    if (other == nullptr) return no_overload(name, of[1]);
    return compared(name, compare(version, *other), of[0]);
  }
  if (name == "major") return CelValue{static_cast<std::int64_t>(version.major)};
  if (name == "minor") return CelValue{static_cast<std::int64_t>(version.minor)};
  if (name == "patch") return CelValue{static_cast<std::int64_t>(version.patch)};
  return no_overload(name, of[0]);
}

Result<CelValue> of_optional(const std::string& name, const std::vector<CelValue>& of) {
  const auto& optional = std::get<CelOptional>(of[0].is);
  if (name == "hasValue") return CelValue{optional.value != nullptr};
  if (name == "orValue" && optional.value == nullptr) return of[1];
  if (name != "orValue" && name != "value") return no_overload(name, of[0]);
  if (optional.value == nullptr) return fail(Code::Usage, "an optional value is not there");
  return *optional.value;
}

}  // namespace

Result<CelValue> apply_call(const std::string& name,
                            const std::vector<CelValue>& of,
                            CelBudget& budget) {
  if (name == "optional.none") return CelValue{CelOptional{}};
  const CelValue& first = of.front();
  if (name == "optional.of") return optional_of(first);
  if (name == "dyn") return first;
  if (name == "size") return size_of(first, budget);
  if (name == "int") return to_int(first);
  if (name == "uint") return to_uint(first);
  if (name == "double") return to_double(first);
  if (name == "string") return to_string_value(first);
  if (name == "bool") return to_bool(first);
  const auto* text = std::get_if<std::string>(&first.is);
  if (text == nullptr) return no_overload(name + "()", first);
  if (name == "isQuantity") return CelValue{read_amount(*text).has_value()};
  if (name == "isSemver") return CelValue{read_version(*text).has_value()};
  if (name == "quantity") return CelValue{GF_TRY(read_amount(*text))};
  return CelValue{GF_TRY(read_version(*text))};
}

Result<CelValue> apply_method(const std::string& name,
                              const std::vector<CelValue>& of,
                              CelBudget& budget) {
  const CelValue& whose = of.front();
  if (name == "size") return size_of(whose, budget);
  if (std::holds_alternative<std::string>(whose.is)) return of_text(name, of, budget);
  if (std::holds_alternative<Amount>(whose.is)) return of_amount(name, of);
  if (std::holds_alternative<Version>(whose.is)) return of_version(name, of);
  if (std::holds_alternative<CelOptional>(whose.is)) return of_optional(name, of);
  return no_overload(name, whose);
}

}  // namespace gflow::claims

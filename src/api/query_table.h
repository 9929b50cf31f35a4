// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "base/time.h"
#include "core/description.h"
#include "core/job_id.h"
#include "core/status.h"

/// One description per query: a table beside the type it is read into, with a row for each
/// parameter. It is read, refused and documented by that table, so that no parameter is read which
/// is not told of, and none told of which is not read. docs/design/0007-one-description.md.
namespace gflow::api {

/// What is told of a parameter. Its type follows from the member it is read into.
struct QueryParameter {
  enum class Type { Text, Number, Decimal, Truth, Time };
  enum class Many { One, Commas, Repeated };
  std::string_view name;
  std::string_view help;
  Range range = {.least = 0};                    ///< of a number
  std::span<const std::string_view> words = {};  ///< it is one of, if there are any
  std::string_view pattern{};                    ///< of a text
  Many many = Many::One;
  std::string_view example{};
  Type type = Type::Text;
};

/// A parameter, and what reads it. Errors: Usage naming the parameter.
template <class T>
struct QueryRow {
  QueryParameter told;
  Result<void> (*read)(T& into, const QueryParameter& told, std::string_view value);
};

template <class T>
struct QueryTable {
  std::span<const QueryRow<T>> rows;
  /// What is to be said once all of it is read. Errors: Usage.
  Result<void> (*finish)(T&) = nullptr;
};
/// The table of T: each has its own.
template <class T>
[[nodiscard]] QueryTable<T> query_table();

namespace detail {

/// Values as they are written in a query.
Result<void> read_value(std::string& into, const QueryParameter& told, std::string_view value);
Result<void> read_value(std::vector<std::string>& into,
                        const QueryParameter& told,
                        std::string_view value);
Result<void> read_value(StatusSet& into, const QueryParameter& told, std::string_view value);
/// "1,3,5-7", ascending.
Result<void> read_value(std::vector<JobId>& into,
                        const QueryParameter& told,
                        std::string_view value);
Result<void> read_value(bool& into, const QueryParameter& told, std::string_view value);
Result<void> read_value(double& into, const QueryParameter& told, std::string_view value);
Result<void> read_value(WallTime& into, const QueryParameter& told, std::string_view value);
[[nodiscard]] Result<std::uint64_t> number_of(const QueryParameter& told, std::string_view value);
/// Where it stands among the words.
[[nodiscard]] Result<std::size_t> word_of(const QueryParameter& told, std::string_view value);

template <std::integral Number>
  requires(!std::same_as<Number, bool>)
Result<void> read_value(Number& into, const QueryParameter& told, std::string_view value) {
  into = static_cast<Number>(GF_TRY(number_of(told, value)));
  return {};
}
template <class Tag>
Result<void> read_value(Id<Tag>& into, const QueryParameter& told, std::string_view value) {
  into = Id<Tag>(GF_TRY(number_of(told, value)));
  return {};
}
/// The words are its enumerators, in their order.
template <class Enum>
  requires std::is_enum_v<Enum>
Result<void> read_value(Enum& into, const QueryParameter& told, std::string_view value) {
  into = static_cast<Enum>(GF_TRY(word_of(told, value)));
  return {};
}
template <class Value>
Result<void> read_value(std::optional<Value>& into,
                        const QueryParameter& told,
                        std::string_view value) {
  return read_value(into.emplace(), told, value);
}

template <class Value>
struct TypeOf {
  static constexpr auto kType = [] {
    using enum QueryParameter::Type;
    if (std::same_as<Value, bool>) return Truth;
    if (std::integral<Value> || std::same_as<Value, JobId>) return Number;
    if (std::same_as<Value, double>) return Decimal;
    return std::same_as<Value, WallTime> ? Time : Text;
  }();
};
template <class Value>
struct TypeOf<std::optional<Value>> : TypeOf<Value> {};

inline constexpr auto kStatusNames = [] {
  std::array<std::string_view, kStatuses.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kStatuses[i].name;
  return names;
}();

/// The member at the end of a path.
template <class Owner>
[[nodiscard]] constexpr Owner& member_at(Owner& owner) {
  return owner;
}
template <class Owner, class Member, class... Rest>
[[nodiscard]] constexpr auto& member_at(Owner& owner, Member member, Rest... rest) {
  return member_at(owner.*member, rest...);
}
template <class First, class... Rest>
[[nodiscard]] consteval auto owner_of(First /*member*/, Rest... /*rest*/) {
  return std::type_identity<typename MemberOf<First>::Owner>();
}

/// Calls take(row, value) for each parameter of a query.
[[nodiscard]] Result<void> read_rows(
    std::string_view query,
    const std::vector<QueryParameter>& rows,
    const std::function<Result<void>(std::size_t, std::string_view)>& take);

}  // namespace detail

/// A row of the member that is reached by this path: parameter<&T::a, &A::b>({...}).
template <auto... kPath>
[[nodiscard]] consteval auto parameter(QueryParameter told) {
  using Owner = typename decltype(detail::owner_of(kPath...))::type;
  using Parsed = std::remove_cvref_t<decltype(detail::member_at(std::declval<Owner&>(), kPath...))>;
  told.type = detail::TypeOf<Parsed>::kType;
  if constexpr (std::same_as<Parsed, StatusSet>) told.words = detail::kStatusNames;
  if constexpr (std::integral<Parsed> && !std::same_as<Parsed, bool>) {
    // What is in the range has to be one of the type, too.
    if (std::cmp_greater(told.range.most, std::numeric_limits<Parsed>::max())) throw told.name;
  }
  return QueryRow<Owner>{told, [](Owner& into, const QueryParameter& row, std::string_view value) {
                           return detail::read_value(detail::member_at(into, kPath...), row, value);
                         }};
}

/// What is told of the parameters of T.
template <class T>
[[nodiscard]] std::vector<QueryParameter> parameters_of() {
  std::vector<QueryParameter> parameters;
  for (const QueryRow<T>& row : query_table<T>().rows) parameters.push_back(row.told);
  return parameters;
}

/// "a=1&b=x%20y", of what T's table has. Errors: Usage for a parameter that it has not, naming the
/// nearest, and for a value that is none.
template <class T>
[[nodiscard]] Result<T> read_query_of(std::string_view query) {
  T read{};
  const QueryTable<T> table = query_table<T>();
  if (!query.empty()) {
    GF_CHECK(
        detail::read_rows(query, parameters_of<T>(), [&](std::size_t row, std::string_view value) {
          return table.rows[row].read(read, table.rows[row].told, value);
        }));
  }
  if (table.finish != nullptr) GF_CHECK(table.finish(read));
  return read;
}

}  // namespace gflow::api

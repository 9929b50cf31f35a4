// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// One description per entity: a table beside the type, with a row for each member. JSON, the
/// store, `gjob update` and `show`, the columns of gqueue and the documents are made from it, so
/// that a field is told once. docs/design/0007-one-description.md.
namespace gflow {

/// Numbers a field may have, inclusive.
struct Range {
  std::int64_t least = INT64_MIN;
  std::int64_t most = INT64_MAX;

  [[nodiscard]] constexpr bool contains(std::int64_t number) const {
    return number >= least && number <= most;
  }
};

/// Until when a field may be changed by the owner of the entity, or an operator.
enum class Change {
  Never,    ///< it is what was submitted, or follows from something else
  Pending,  ///< until it starts: it is held, or given to the process, from then on
  Active,   ///< until it ends
};

/// How a field is kept in the store.
enum class Stored {
  UnlessDefault,  ///< NULL stands for the default
  Always,         ///< in a column that is NOT NULL
  Elsewhere,      ///< in a table of its own
};

/// How a field stands in the JSON of its entity.
enum class Wire {
  Plain,
  Required,       ///< a document without it is refused
  NullIfDefault,  ///< an empty text or a 0 that means: not known
  Elsewhere,      ///< beside the object, or not at all
};

/// Who is shown a field.
enum class Sight {
  Everybody,
  Owner,  ///< and operators: it says what is run, and where
};

/// What a text may hold. A name has only characters that can be seen (first_unseen()), so that two
/// which look alike are alike; a trimmed one has no blanks at its ends either.
enum class Letters { Any, Name, TrimmedName };

/// What is told of a field besides its type and its default, which are the member's.
struct FieldInfo {
  std::string_view name;      ///< in JSON and in the store; ends with its unit: "grace_seconds"
  std::string_view help;      ///< one clause, for manuals and the schema
  Range range{};              ///< of numbers
  std::size_t max_bytes = 0;  ///< of a text, or of each text of a list
  std::size_t max_characters = 0;  ///< of a text whose bytes say little to people; 0: any number
  Letters letters = Letters::Any;  ///< of a text
  Change change = Change::Never;
  Stored stored = Stored::UnlessDefault;
  Wire wire = Wire::Plain;
  Sight sight = Sight::Everybody;
  std::string_view column{};  ///< in the store where it is not `name`
  std::string_view prefix{};  ///< of the columns of a member that has a table of its own
  /// What stands before a number in its place where people are not to be known: "project".
  std::string_view alias{};

  [[nodiscard]] constexpr std::string_view column_name() const {
    return column.empty() ? name : column;
  }
};

template <class Member>
struct MemberOf;
template <class O, class V>
struct MemberOf<V O::*> {
  using Owner = O;
  using Value = V;
};

/// A row: the member and what is told of it.
template <auto Member>
struct Field : FieldInfo {
  using Owner = typename MemberOf<decltype(Member)>::Owner;
  using Value = typename MemberOf<decltype(Member)>::Value;

  template <class Entity>
  [[nodiscard]] static constexpr auto& of(Entity& entity) {
    return entity.*Member;
  }
};
template <auto Member>
[[nodiscard]] consteval Field<Member> field(FieldInfo info) {
  return {info};
}

/// The table of a type: `static constexpr std::tuple kFields{field<&T::a>({...}), ...}`.
template <class T>
struct Description;

template <class T>
concept Described = requires { Description<std::remove_const_t<T>>::kFields; };

/// Calls visit(row) for each row of T's table.
template <Described T, class Visit>
constexpr void each_field(Visit&& visit) {
  std::apply([&visit](const auto&... rows) { (visit(rows), ...); },
             Description<std::remove_const_t<T>>::kFields);
}

/// Calls visit(row, values...) for each row that has no table of its own, within members that have
/// one too, with its value in each of the entities.
template <class Visit, Described First, class... More>
constexpr void each_leaf(Visit&& visit, First& first, More&... more) {
  each_field<First>([&](const auto& row) {
    using Value = typename std::remove_cvref_t<decltype(row)>::Value;
    if constexpr (Described<Value>) {
      each_leaf(visit, row.of(first), row.of(more)...);
    } else {
      visit(row, row.of(first), row.of(more)...);
    }
  });
}

/// How many rows each_leaf() visits.
template <Described T>
[[nodiscard]] consteval std::size_t leaf_count() {
  std::size_t count = 0;
  each_field<T>([&count](const auto& row) {
    using Value = typename std::remove_cvref_t<decltype(row)>::Value;
    if constexpr (Described<Value>) {
      count += leaf_count<Value>();
    } else {
      ++count;
    }
  });
  return count;
}

/// A name as people say it, without its unit: "time limit" for "time_limit_seconds".
[[nodiscard]] std::string field_words(std::string_view name);
/// The same in the reader's language, to be said to people.
[[nodiscard]] std::string field_label(std::string_view name);

}  // namespace gflow

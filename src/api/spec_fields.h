// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "api/json_reader.h"
#include "api/json_writer.h"
#include "api/schema_writer.h"
#include "core/job_changes.h"
#include "core/job_description.h"

/// Fields of what has a description, for requests and answers alike.
namespace gflow::api {

/// Whose JSON is what its description says. Also for a document that has these fields among others.
template <class Io, Described T>
void fields(Io& io, T& entity) {
  each_field<T>([&](const auto& row) {
    auto& value = row.of(entity);
    using MemberType = typename std::remove_cvref_t<decltype(row)>::Value;
    if (row.wire == Wire::Elsewhere) return;
    if constexpr (std::same_as<Io, SchemaWriter>) return io.described(row, value);
    if (row.wire == Wire::Required) return io.required(row.name, value, row.range);
    if (row.wire == Wire::Plain) return io.field(row.name, value, row.range);
    if constexpr (std::same_as<MemberType, std::string>) {
      io.known_text(row.name, value);
    } else if constexpr (std::same_as<MemberType, Memory> || std::same_as<MemberType, int>) {
      io.known_amount(row.name, value);
    }
  });
}

template <>
inline constexpr std::string_view kSchemaName<User> = "User";
template <>
inline constexpr std::string_view kSchemaName<Label> = "Label";
template <>
inline constexpr std::string_view kSchemaName<Request> = "Request";
template <>
inline constexpr std::string_view kSchemaName<Dependencies> = "Dependencies";
template <>
inline constexpr std::string_view kSchemaName<JobSpec> = "JobSpec";
template <>
inline constexpr std::string_view kSchemaName<Allocation> = "Allocation";
template <>
inline constexpr std::string_view kSchemaName<Outcome> = "Outcome";

/// A part of what is to be changed: only what is meant is written, and what is read is meant.
template <Described T>
struct Patch {
  std::conditional_t<std::is_const_v<T>, const JobChanges, JobChanges>* changes;
  T* to;
};

template <>
inline constexpr std::string_view kSchemaName<Patch<const Request>> = "PatchRequest";
template <>
inline constexpr std::string_view kSchemaName<Patch<const Dependencies>> = "PatchDependencies";
template <>
inline constexpr std::string_view kSchemaName<Patch<const User>> = "PatchUser";
template <>
inline constexpr std::string_view kSchemaName<Patch<const Allocation>> = "PatchAllocation";
template <>
inline constexpr std::string_view kSchemaName<Patch<const JobSpec>> = "PatchJobSpec";

[[nodiscard]] inline Patch<JobSpec> patch_of(JobChanges& changes) {
  return {&changes, &changes.edit()};
}
[[nodiscard]] inline Patch<const JobSpec> patch_of(const JobChanges& changes) {
  return {&changes, &changes.to()};
}

/// A field that has none of its own.
template <class Io, class Changes, class Row, class Value>
void patch_value(Io& io, Changes& changes, const Row& row, Value& value) {
  if constexpr (std::same_as<Io, SchemaWriter>) {
    io.changeable(row, value);
  } else if constexpr (std::same_as<Io, Reader>) {
    if (io.given(row.name, value, row.range)) changes.mark(&value, sizeof value);
  } else {
    if (changes.marked(&value, sizeof value)) io.field(row.name, value);
  }
}

/// One that has fields of its own, and is there where some of these is.
template <class Io, class Row, class T>
void patch_part(Io& io, const Row& row, Patch<T>& within) {
  if constexpr (std::same_as<Io, SchemaWriter>) {
    io.changeable(row, within);
  } else if (std::same_as<Io, Reader> || within.changes->marked(within.to, sizeof *within.to)) {
    io.field(row.name, within);
  }
}

template <class Io, Described T>
void patch_fields(Io& io, const Patch<T>& patch) {
  each_field<T>([&](const auto& row) {
    auto& value = row.of(*patch.to);
    using MemberType = typename std::remove_cvref_t<decltype(row)>::Value;
    if (row.wire == Wire::Elsewhere) return;
    if constexpr (std::same_as<Io, SchemaWriter>) {
      if (row.change == Change::Never) return;
    }
    if constexpr (Described<MemberType>) {
      Patch<std::remove_reference_t<decltype(value)>> within{patch.changes, &value};
      patch_part(io, row, within);
    } else {
      patch_value(io, *patch.changes, row, value);
    }
  });
}

template <class Io, class T>
void fields(Io& io, const Patch<T>& patch) {
  patch_fields(io, patch);
}

/// Sorted and each once, as the engine wants lists of jobs.
void put_in_order(std::vector<JobId>& jobs);

}  // namespace gflow::api

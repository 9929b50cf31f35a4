// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/job.h"
#include "core/job_description.h"

namespace gflow {

/// A change of some of what was asked for of a job: new values, and which of them are meant. Only
/// what is meant is read, written, checked and applied.
class JobChanges {
 public:
  /// The new values; the rest are defaults.
  [[nodiscard]] const JobSpec& to() const { return to_; }
  [[nodiscard]] bool empty() const { return meant_.none(); }

  /// changes.set(&JobSpec::priority, 50)
  template <class V>
  void set(V JobSpec::* member, std::type_identity_t<V> value) {
    to_.*member = std::move(value);
    mark(&(to_.*member), sizeof(V));
  }
  /// changes.set(&Request::gpus, 2)
  template <class V>
  void set(V Request::* member, std::type_identity_t<V> value) {
    to_.request.*member = std::move(value);
    mark(&(to_.request.*member), sizeof(V));
  }
  /// Whether the member, or anything in it, is to be changed.
  template <class V>
  [[nodiscard]] bool has(V JobSpec::* member) const {
    return marked(&(to_.*member), sizeof(V));
  }
  template <class V>
  [[nodiscard]] bool has(V Request::* member) const {
    return marked(&(to_.request.*member), sizeof(V));
  }

  void apply(JobSpec& spec) const;
  /// The rows of what is to be changed and is not as it will be already.
  [[nodiscard]] std::vector<FieldInfo> rows(const JobSpec& from) const;

  /// For readers and writers, which go through the table: `value` is a part of what edit() gives.
  [[nodiscard]] JobSpec& edit() { return to_; }
  void mark(const void* value, std::size_t size);
  [[nodiscard]] bool marked(const void* value, std::size_t size) const;

  friend bool operator==(const JobChanges&, const JobChanges&) = default;

 private:
  JobSpec to_;
  std::bitset<leaf_count<JobSpec>()> meant_;
};

}  // namespace gflow

// SPDX-License-Identifier: Apache-2.0
#include "engine/spec_hash.h"

#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/job_description.h"

namespace gflow::engine {
namespace {

/// Another value than the first one.
template <class Value>
void change(Value& value) {
  if constexpr (std::same_as<Value, std::string>) {
    value += 'x';
  } else if constexpr (requires { value.emplace_back(); }) {
    value.emplace_back();
  } else if constexpr (requires { value.has_value(); }) {
    value.emplace();
  } else if constexpr (std::same_as<Value, bool>) {
    value = !value;
  } else if constexpr (std::is_enum_v<Value>) {
    value = static_cast<Value>(static_cast<int>(value) + 1);
  } else if constexpr (requires { value.parts; }) {
    ++value.parts;
  } else if constexpr (requires { value.bytes; }) {
    ++value.bytes;
  } else {
    ++value;
  }
}

TEST(SpecHash, DiffersInEachField) {
  std::map<std::size_t, std::string> seen = {{hash_of(JobSpec{}), "none"}};
  JobSpec spec;
  each_leaf(
      [&](const auto& row, auto& value) {
        const auto before = value;
        change(value);
        const auto [at, is_new] = seen.emplace(hash_of(spec), row.name);
        EXPECT_TRUE(is_new) << row.name << " is as good as " << at->second;
        value = before;
      },
      spec);
  EXPECT_GT(seen.size(), 30U);
  EXPECT_EQ(hash_of(spec), hash_of(JobSpec{}));
}

TEST(SpecHash, DiffersInTheOrderOfWhatAListHas) {
  JobSpec one;
  JobSpec other;
  one.request.models = {"A100", "V100"};
  other.request.models = {"V100", "A100"};
  EXPECT_NE(hash_of(one), hash_of(other));
}

}  // namespace
}  // namespace gflow::engine

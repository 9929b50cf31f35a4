// SPDX-License-Identifier: Apache-2.0
#include "engine/spec_hash.h"

#include <chrono>
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/job_description.h"

namespace gflow::engine {
namespace {

/// By what values there are; one of a type that is not here does not compile.
class Hash {
 public:
  template <class Value>
    requires std::integral<Value>
  void add(Value value) {
    constexpr std::size_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 by the golden ratio
    state_ = (state_ ^ static_cast<std::size_t>(value)) * kOdd;
    state_ ^= state_ >> 32;
  }
  template <class Value>
    requires std::is_enum_v<Value>
  void add(Value value) {
    add(std::to_underlying(value));
  }
  void add(const std::string& text) { add(std::hash<std::string>{}(text)); }
  void add(Memory memory) { add(memory.bytes); }
  void add(Share share) { add(share.parts); }
  void add(JobId id) { add(id.value); }
  void add(const Label& label) {
    add(label.key);
    add(label.value);
  }
  template <class Count, class Period>
  void add(std::chrono::duration<Count, Period> time) {
    add(time.count());
  }
  template <class Clock, class Duration>
  void add(std::chrono::time_point<Clock, Duration> at) {
    add(at.time_since_epoch());
  }
  template <class Value>
  void add(const std::optional<Value>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  template <class Value>
  void add(const std::vector<Value>& values) {
    add(values.size());
    for (const Value& value : values) add(value);
  }

  [[nodiscard]] std::size_t take() const { return state_; }

 private:
  std::size_t state_ = 0;
};

}  // namespace

std::size_t hash_of(const JobSpec& spec) {
  Hash hash;
  each_leaf([&hash](const auto& /*row*/, const auto& value) { hash.add(value); }, spec);
  return hash.take();
}

}  // namespace gflow::engine

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/driver.h"

/// What the program can be told to do. An answer is the driver's result and, if that is none of its
/// errors, what it gave.
namespace client {

struct Request {
  std::vector<std::uint64_t> numbers;
  std::string name;  ///< what stands behind the numbers

  [[nodiscard]] std::uint64_t number(std::size_t at) const {
    return at < numbers.size() ? numbers[at] : 0;
  }
  template <typename Handle>
  [[nodiscard]] Handle handle(std::size_t at) const {
    return reinterpret_cast<Handle>(number(at));
  }
};

using Commands = std::map<std::string, std::function<std::string(const Request&)>>;

template <typename... Values>
[[nodiscard]] std::string said(abi::Result result, Values... values) {
  std::string text = std::to_string(result);
  if (result == abi::kSuccess) (text.append(" ").append(std::to_string(values)), ...);
  return text;
}
/// What `make` put where it was told to.
template <typename Handle, typename Make>
[[nodiscard]] std::string made(Make make) {
  Handle handle{};
  const abi::Result result = make(&handle);
  return said(result, (std::uint64_t)handle);  // NOLINT: a number or a pointer
}

// Each adds its own; `cu` is used as long as they are.
void add_contexts(Commands& commands, const Functions& cu);
void add_memory(Commands& commands, const Functions& cu);
void add_pools(Commands& commands, const Functions& cu);
void add_launches(Commands& commands, const Functions& cu);
void add_threads(Commands& commands, const Functions& cu);
void add_questions(Commands& commands, const Functions& cu);
void add_checkpoints(Commands& commands, const Functions& cu);
void add_processes(Commands& commands, char* program);

}  // namespace client

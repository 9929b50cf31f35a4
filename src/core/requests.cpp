// SPDX-License-Identifier: Apache-2.0
#include "core/requests.h"

#include <fmt/format.h>

#include "base/text.h"

namespace gflow {
namespace {

constexpr std::uint64_t kMostGpus = 1024;

/// Why a GPU request that is not a plain number is refused.
std::string_view gpus_trouble(std::string_view text) {
  constexpr std::string_view kWideBracket = "\xef\xbc\x88";  // U+FF08
  if (text.find('(') != std::string_view::npos ||
      text.find(kWideBracket) != std::string_view::npos) {
    return "choosing GPUs by vendor or model is not supported";
  }
  if (text.find('.') != std::string_view::npos) {
    return "sharing a GPU is not supported, each job has its GPUs to itself";
  }
  if (text.find(',') != std::string_view::npos) {
    return "asking for GPU memory or for certain GPUs is not supported";
  }
  return "that is not a number of GPUs";
}

}  // namespace

Result<int> parse_gpus(std::string_view text) {
  const std::string_view body = trim(text);
  const auto number = parse_number(body);
  if (!number) {
    return fail(
        Code::Usage,
        fmt::format(
            "'{}': {}; write a whole number, such as 2", printable(text), gpus_trouble(body)));
  }
  if (*number > kMostGpus) {
    return fail(Code::Usage,
                fmt::format("{} GPUs are more than the {} a job may ask for", *number, kMostGpus));
  }
  return static_cast<int>(*number);
}

Result<int> parse_priority(std::string_view text) {
  const auto number = parse_number(trim(text));
  if (!number || *number > static_cast<std::uint64_t>(kMaxPriority)) {
    return fail(Code::Usage,
                fmt::format("'{}' is not a priority; write a number from 0 to {}, higher is first",
                            printable(text),
                            kMaxPriority));
  }
  return static_cast<int>(*number);
}

}  // namespace gflow

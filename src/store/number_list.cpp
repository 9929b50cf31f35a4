// SPDX-License-Identifier: Apache-2.0
#include "store/number_list.h"

#include <fmt/format.h>

#include <iterator>

#include "base/text.h"

namespace gflow::store {
namespace {

constexpr std::size_t kMax = 10'000'000;

}  // namespace

std::string write_numbers(const std::vector<std::uint64_t>& numbers) {
  std::string text;
  const auto goes_on = [&](std::size_t at) {
    return at + 1 < numbers.size() && numbers[at + 1] > numbers[at] &&
           numbers[at + 1] - numbers[at] == 1;
  };
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (goes_on(last)) ++last;
    if (!text.empty()) text += ',';
    fmt::format_to(std::back_inserter(text), "{}", numbers[first]);
    if (last > first) fmt::format_to(std::back_inserter(text), "-{}", numbers[last]);
    first = last + 1;
  }
  return text;
}

std::optional<std::vector<std::uint64_t>> read_numbers(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  if (text.empty()) return numbers;
  for (const std::string_view piece : split(text, ',')) {
    const std::size_t dash = piece.find('-');
    const auto first = parse_number(piece.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(piece.substr(dash + 1));
    if (!first || !last || *last < *first || *last - *first >= kMax - numbers.size()) return {};
    for (std::uint64_t step = 0; step <= *last - *first; ++step) numbers.push_back(*first + step);
  }
  return numbers;
}

}  // namespace gflow::store

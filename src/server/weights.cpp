// SPDX-License-Identifier: Apache-2.0
#include "server/weights.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "base/text.h"

namespace gflow::server {
namespace {

/// Of a part with its parameters: "gzip;q=0.5". One that cannot be read is as good as none.
double weight_of(std::string_view part) {
  const std::size_t semicolon = part.find(';');
  if (semicolon == std::string_view::npos) return 1;
  for (const std::string_view parameter : split(part.substr(semicolon + 1), ';')) {
    const std::string_view text = trim(parameter);
    if (!text.starts_with("q=") && !text.starts_with("Q=")) continue;
    double weight = 1;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), weight);
    return error == std::errc() && end == text.data() + text.size() ? weight : 1;
  }
  return 1;
}

std::string_view word_of(std::string_view part) { return trim(part.substr(0, part.find(';'))); }

}  // namespace

std::optional<double> weight_in(std::string_view header, std::string_view word) {
  std::optional<double> most;
  for (const std::string_view part : split(header, ',')) {
    if (to_lower(word_of(part)) == word) most = std::max(most.value_or(0), weight_of(part));
  }
  return most;
}

std::vector<std::string_view> by_weight(std::string_view header) {
  std::vector<std::pair<double, std::string_view>> weighed;
  for (const std::string_view part : split(header, ',')) {
    const double weight = weight_of(part);
    if (weight > 0 && !word_of(part).empty()) weighed.emplace_back(weight, word_of(part));
  }
  std::ranges::stable_sort(weighed, std::greater{}, &decltype(weighed)::value_type::first);
  std::vector<std::string_view> words;
  for (const auto& [weight, word] : weighed) words.push_back(word);
  return words;
}

}  // namespace gflow::server

// SPDX-License-Identifier: Apache-2.0
#include "core/cpu_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"

namespace gflow {
namespace {

constexpr std::uint64_t kMaxCpu = 65'535;

std::unexpected<Error> not_a_list(std::string_view text) {
  return fail(Code::Usage, tr_format("'{}' is not a list of CPUs, such as 0-3,8", printable(text)));
}

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  const std::string_view body = trim(text);
  if (body.empty()) return cpus;
  for (const std::string_view part : split(body, ',')) {
    const std::string_view range = trim(part);
    const std::size_t dash = range.find('-');
    const auto first = parse_number(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(range.substr(dash + 1));
    if (!first || !last || *first > *last || *last > kMaxCpu) return not_a_list(text);
    for (std::uint64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  std::ranges::sort(cpus);
  cpus.erase(std::ranges::unique(cpus).begin(), cpus.end());
  return cpus;
}

std::string cpu_list_text(const std::vector<int>& cpus) {
  return ranges_text(std::span<const int>(cpus));
}

}  // namespace gflow

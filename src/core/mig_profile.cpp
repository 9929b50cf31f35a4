// SPDX-License-Identifier: Apache-2.0
#include "core/mig_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace gflow {
namespace {

bool is_profile_digit(char c) { return c >= '0' && c <= '9'; }
bool is_profile_letter(char c) { return is_profile_digit(c) || (c >= 'a' && c <= 'z'); }

/// Reads a profile of lower-case letters from its front.
class ProfileReader {
 public:
  explicit ProfileReader(std::string_view text) : left_(text), all_(text.size()) {}

  [[nodiscard]] std::optional<MigProfile> read() {
    MigProfile profile;
    const auto first = number();
    if (!first) return std::nullopt;
    profile.compute_slices = profile.gpu_slices = *first;
    if (take("c.")) {
      const auto second = number();
      if (!second) return std::nullopt;
      profile.gpu_slices = *second;
    }
    if (!take("g.")) return std::nullopt;
    const auto gigabytes = number();
    if (!gigabytes || !take("gb")) return std::nullopt;
    profile.gigabytes = *gigabytes;
    profile.attributes = attributes();
    const bool goes_on = !left_.empty() && is_profile_letter(left_.front());
    if (goes_on || profile.compute_slices > profile.gpu_slices) return std::nullopt;
    return profile;
  }
  [[nodiscard]] std::size_t taken() const { return all_ - left_.size(); }

 private:
  [[nodiscard]] bool take(std::string_view word) {
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }

  /// 1 to 999.
  [[nodiscard]] std::optional<int> number() {
    const auto end = std::ranges::find_if_not(left_, is_profile_digit);
    const auto digits = static_cast<std::size_t>(end - left_.begin());
    if (digits == 0 || digits > 3) return std::nullopt;
    const auto value = parse_number(left_.substr(0, digits)).value_or(0);
    left_.remove_prefix(digits);
    return value == 0 ? std::nullopt : std::optional(static_cast<int>(value));
  }

  /// Kubernetes writes '.' where '+' is not allowed.
  [[nodiscard]] std::string attributes() {
    constexpr std::array<std::string_view, 2> kWords = {"me", "gfx"};
    for (const std::string_view word : kWords) {
      for (const char sign : {'+', '-', '.'}) {
        const std::string_view rest = left_.substr(std::min<std::size_t>(left_.size(), 1));
        if (!left_.starts_with(sign) || !rest.starts_with(word)) continue;
        left_.remove_prefix(1 + word.size());
        const std::string all = take(".all") ? ".all" : "";
        return fmt::format("{}{}{}", sign == '.' ? '+' : sign, word, all);
      }
    }
    return "";
  }

  std::string_view left_;
  std::size_t all_;
};

}  // namespace

std::string mig_profile_text(const MigProfile& profile) {
  const std::string part = profile.compute_slices == profile.gpu_slices
                               ? ""
                               : fmt::format("{}c.", profile.compute_slices);
  return fmt::format(
      "{}{}g.{}gb{}", part, profile.gpu_slices, profile.gigabytes, profile.attributes);
}

std::optional<MigProfileAt> find_mig_profile(std::string_view text) {
  if (text.find('.') == std::string_view::npos)
    return std::nullopt;  // as most names: it is asked often
  const std::string lower = to_lower(text);
  for (std::size_t at = 0; at < lower.size(); ++at) {
    if (!is_profile_digit(lower[at]) ||
        (at > 0 && (is_profile_letter(lower[at - 1]) || lower[at - 1] == '.'))) {
      continue;
    }
    ProfileReader reader(std::string_view(lower).substr(at));
    if (auto profile = reader.read()) return MigProfileAt{*profile, at, at + reader.taken()};
  }
  return std::nullopt;
}

std::optional<MigProfile> parse_mig_profile(std::string_view text) {
  const auto found = find_mig_profile(text);
  if (!found || found->begin != 0 || found->end != text.size()) return std::nullopt;
  return found->profile;
}

}  // namespace gflow

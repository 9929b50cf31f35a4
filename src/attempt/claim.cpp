// SPDX-License-Identifier: Apache-2.0
#include "attempt/claim.h"

#include <algorithm>

#include "base/text_fields.h"

namespace gflow::attempt {
namespace {

constexpr std::string_view kRevoked = "revoked";
constexpr std::string_view kStarted = "started ";
constexpr std::string_view kFailed = "failed ";

bool is_boot_id(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

}  // namespace

std::string encode_claim(const Claim& claim) {
  const auto* shim = std::get_if<ShimClaim>(&claim);
  if (shim == nullptr) return std::string(kRevoked) + "\n";
  return "shim " + std::to_string(shim->protocol) + " " + std::to_string(shim->pid) + " " +
         std::to_string(shim->start_time) + " " + shim->boot_id + "\n";
}

std::optional<Claim> decode_claim(std::string_view text) {
  std::string_view line = take_field(text, '\n');
  if (!text.empty()) return std::nullopt;
  if (line == kRevoked) return Revoked{};
  if (take_field(line, ' ') != "shim") return std::nullopt;
  const auto protocol = number_of<std::uint32_t>(take_field(line, ' '));
  const auto pid = number_of<std::int32_t>(take_field(line, ' '));
  const auto start_time = number_of<std::uint64_t>(take_field(line, ' '));
  if (!protocol || !pid || *pid <= 0 || !start_time || !is_boot_id(line)) return std::nullopt;
  return ShimClaim{*protocol, *pid, *start_time, std::string(line)};
}

std::string encode_status(const StatusLine& line) {
  if (const auto* started = std::get_if<ShimStarted>(&line)) {
    return std::string(kStarted) + std::to_string(started->pid) + "\n";
  }
  const auto& failed = std::get<ShimFailed>(line);
  std::string message = failed.message;
  std::ranges::replace(message, '\n', ' ');
  return std::string(kFailed) + std::to_string(failed.error) + " " + message + "\n";
}

std::optional<StatusLine> decode_status(std::string_view line) {
  if (line.starts_with(kFailed)) {
    std::string_view rest = line.substr(kFailed.size());
    const auto error = number_of<int>(take_field(rest, ' '));
    if (!error) return std::nullopt;
    return ShimFailed{std::string(rest), *error};
  }
  if (!line.starts_with(kStarted)) return std::nullopt;
  const auto pid = number_of<std::int32_t>(line.substr(kStarted.size()));
  if (!pid || *pid <= 0) return std::nullopt;
  return ShimStarted{*pid};
}

}  // namespace gflow::attempt

// SPDX-License-Identifier: Apache-2.0
#include "core/turns.h"

#include <algorithm>

namespace gflow {
namespace {

// A multiple of every weight up to 16 and fine for the others; 2^63 / kScale milliseconds are more
// than 400,000 years of one device.
constexpr std::int64_t kScale = 720'720;

std::int64_t weight_of(const TurnTaker& taker) {
  return std::int64_t{std::clamp(taker.priority, 0, kMaxPriority)} + 1;
}

}  // namespace

std::vector<TurnShare> turn_shares(const std::vector<TurnTaker>& takers) {
  std::int64_t sum = 0;
  for (const TurnTaker& taker : takers) sum += weight_of(taker);
  std::vector<TurnShare> shares;
  std::vector<std::pair<std::int64_t, std::size_t>> cut;  // what rounding cut, negative; position
  std::int32_t left = takers.empty() ? 0 : Share::kWholeParts;
  for (const TurnTaker& taker : takers) {
    const std::int64_t exact = weight_of(taker) * Share::kWholeParts;
    const auto parts = static_cast<std::int32_t>(exact / sum);
    cut.emplace_back(-(exact % sum), shares.size());
    shares.push_back({taker.job, Share{parts}});
    left -= parts;
  }
  std::sort(cut.begin(), cut.end());
  for (const auto& [remainder, position] : cut) {
    if (left-- <= 0) break;
    shares[position].time += Share{1};
  }
  return shares;
}

void TurnAccount::join(const TurnTaker& taker) {
  std::int64_t behind = entries_.empty() ? reached_ : INT64_MAX;
  for (const auto& [job, entry] : entries_) behind = std::min(behind, entry.virtual_time);
  entries_.try_emplace(taker.job, Entry{weight_of(taker), behind, Span{0}});
}

void TurnAccount::leave(JobId job) {
  const auto at = entries_.find(job);
  if (at == entries_.end()) return;
  reached_ = std::max(reached_, at->second.virtual_time);
  entries_.erase(at);
}

void TurnAccount::change(const TurnTaker& taker) {
  const auto at = entries_.find(taker.job);
  if (at != entries_.end()) at->second.weight = weight_of(taker);
}

std::optional<std::pair<JobId, TurnAccount::Span>> TurnAccount::next() const {
  const auto first = std::ranges::min_element(entries_, [](const auto& a, const auto& b) {
    return a.second.virtual_time < b.second.virtual_time;
  });
  if (first == entries_.end()) return std::nullopt;
  return std::pair(first->first, turn_);
}

void TurnAccount::charge(JobId job, Span used) {
  const auto at = entries_.find(job);
  if (at == entries_.end()) return;
  at->second.had += used;
  at->second.virtual_time += used.count() * kScale / at->second.weight;
}

TurnAccount::Span TurnAccount::had(JobId job) const {
  const auto at = entries_.find(job);
  return at == entries_.end() ? Span{0} : at->second.had;
}

TurnAccount::Span TurnAccount::longest_wait() const {
  if (entries_.size() < 2) return Span{0};
  std::int64_t sum = 0;
  std::int64_t least = INT64_MAX;
  for (const auto& [job, entry] : entries_) {
    sum += entry.weight;
    least = std::min(least, entry.weight);
  }
  // In a round in which the lightest has one turn, the others have theirs by weight, each rounded
  // up.
  const std::int64_t turns =
      (sum - least + least - 1) / least + static_cast<std::int64_t>(entries_.size()) - 1;
  return turn_ * turns;
}

}  // namespace gflow

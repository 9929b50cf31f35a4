// SPDX-License-Identifier: Apache-2.0
#include "kube/job_id.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <tuple>

namespace gflow::kube {
namespace {

constexpr int kUidBits = 23;
constexpr std::int64_t kMostSeconds = (std::int64_t{1} << 30) - 1;
/// Before there was any cluster.
constexpr WallTime kBegin = std::chrono::sys_days(std::chrono::year(2014) / 1 / 1);

/// FNV-1a, its bits mixed as by splitmix64: the same everywhere and for ever.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100'0000'01b3;
  }
  hash = (hash ^ (hash >> 30)) * 0xbf58'476d'1ce4'e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d0'49bb'1331'11eb;
  return hash ^ (hash >> 31);
}

}  // namespace

JobId job_id_of(const Pod& pod) {
  const auto since = std::chrono::floor<std::chrono::seconds>(pod.created - kBegin).count();
  const auto seconds = static_cast<std::uint64_t>(std::clamp<std::int64_t>(since, 1, kMostSeconds));
  return JobId((seconds << kUidBits) | (hash_of(pod.uid) >> (64 - kUidBits)));
}

std::map<std::string, JobId> job_ids_of(const std::vector<const Pod*>& pods) {
  std::vector<const Pod*> sorted = pods;
  std::ranges::sort(sorted, [](const Pod* a, const Pod* b) {
    return std::tie(a->created, a->uid) < std::tie(b->created, b->uid);
  });
  std::set<JobId> given;
  std::map<std::string, JobId> ids;
  for (const Pod* pod : sorted) {
    JobId id = job_id_of(*pod);
    while (!given.insert(id).second) ++id.value;
    ids.emplace(pod->uid, id);
  }
  return ids;
}

}  // namespace gflow::kube

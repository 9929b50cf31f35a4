// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/blocker.h"
#include "kube/lack.h"
#include "kube/scheduler.h"
#include "placement/demand.h"

/// Why pods wait, for people and for what reads the condition PodScheduled.
namespace gflow::kube {
std::vector<Waiting> Scheduler::waiting(Now now) {
  now_ = now;
  std::vector<Waiting> all;
  std::map<std::tuple<int, gflow::Request>, Why> known;  // pods alike wait for the same
  std::optional<placement::Ledger> whatif;
  for (const auto& [uid, entry] : pods_) {
    if (auto apart = waiting_apart(entry)) {
      all.push_back(*std::move(apart));
      continue;
    }
    if (entry.role != Role::Refused && entry.role != Role::Queued) continue;
    Why& of_all = known[{entry.pods_class->id, *entry.request}];
    if (of_all.text.empty()) of_all = why(entry, whatif);
    const std::string own = why_not_yet(entry, of_all.has_room);
    const bool is_at_limit = entry.role == Role::Queued && state_.is_at_user_limit(entry.job);
    all.push_back({&entry.pod,
                   own.empty() ? of_all.text : of_all.text + " " + own,
                   is_at_limit ? kLimitReached : kUnschedulable});
  }
  return all;
}

/// Of one that waits for no node; empty: it does, or does not wait.
std::optional<Waiting> Scheduler::waiting_apart(const PodEntry& entry) const {
  if (entry.role == Role::Refused && !entry.trouble.empty()) {
    const bool is_beyond = entry.request && !beyond_limit(entry).empty();
    return Waiting{&entry.pod, entry.trouble, is_beyond ? kLimitReached : kUnschedulable};
  }
  if (entry.role != Role::Launched || entry.claims.empty()) return std::nullopt;
  return Waiting{&entry.pod, why_not_bound(entry), kVolumesToCome};
}

Scheduler::Why Scheduler::why(const PodEntry& entry,
                              std::optional<placement::Ledger>& whatif) const {
  gflow::Request request = *entry.request;
  request.selector = selector_of(*entry.pods_class);
  placement::Demand demand = placement::demand_of(request);
  demand.borrows = request.gpus > 0 && may_be_evicted(entry);
  const placement::Ledger* ledger = &state_.ledger();
  std::optional<placement::DemandIndex> index = ledger->find(demand);
  if (!index) {  // the engine keeps no request that no node could meet
    if (!whatif) whatif = *ledger;
    index = whatif->intern(demand);
    ledger = &*whatif;
  }
  std::map<std::string, int> counts;
  int fits = 0;
  for (const auto& [name, node] : nodes_) {
    std::string reason = lacks(node, *entry.pods_class);
    const auto at = ledger->find(name);
    if (reason.empty() && at) reason = lack(ledger->shortfall(*index, *at), request);
    if (reason.empty()) {
      ++fits;
    } else {
      ++counts[reason];
    }
  }
  if (nodes_.empty()) return {"0/0 nodes are available: there are none."};
  if (const std::string& trouble = entry.pods_class->storage.trouble; !trouble.empty()) {
    return {fmt::format("0/{} nodes are available: {}.", nodes_.size(), trouble)};
  }
  if (const std::string& trouble = entry.pods_class->devices.trouble; !trouble.empty()) {
    return {fmt::format("0/{} nodes are available: {}.", nodes_.size(), trouble)};
  }
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : counts) reasons.push_back(fmt::format("{} {}", count, reason));
  std::ranges::sort(reasons);
  return {fmt::format("{}/{} nodes are available{}{}.",
                      fits,
                      nodes_.size(),
                      reasons.empty() ? "" : ": ",
                      fmt::join(reasons, ", ")),
          fits > 0};
}

/// Of one whose claims are waited for.
std::string Scheduler::why_not_bound(const PodEntry& entry) {
  const std::string before =
      entry.failed.empty() ? "" : fmt::format(" The try before failed: {}.", entry.failed);
  return fmt::format("It has its node {}, and waits for its PersistentVolumeClaims to be bound.{}",
                     entry.node,
                     before);
}

/// That its namespace may never hold what it asks for; "" if it may.
std::string Scheduler::beyond_limit(const PodEntry& entry) const {
  const auto limit = policy_.gpu_quota.of(entry.pod.name_space);
  const std::int64_t parts = gpu_parts_of(*entry.request);
  if (!limit || parts <= limit->parts) return {};
  return fmt::format("It asks for {} GPUs, and its namespace {} may hold {} at once.",
                     share_text(Share{static_cast<std::int32_t>(parts)}),
                     entry.pod.name_space,
                     share_text(*limit));
}

/// What besides the nodes keeps it from them.
std::string Scheduler::why_not_yet(const PodEntry& entry, bool has_room) const {
  if (entry.role != Role::Queued) return {};
  const Job* job = state_.find(entry.job);
  const auto* queued = job == nullptr ? nullptr : std::get_if<gflow::Queued>(&job->state);
  if (queued != nullptr && queued->not_before && *queued->not_before > state_.lived(now_.mono)) {
    return fmt::format("Binding it failed, and is tried again: {}.", queued->why);
  }
  if (state_.is_at_user_limit(entry.job)) {
    if (std::string never = beyond_limit(entry); !never.empty()) return never;
    const auto limit = policy_.gpu_quota.of(entry.pod.name_space).value_or(Share{});
    const std::string with = with_gang(entry);
    return fmt::format("Its namespace {} holds {} GPUs and may hold {} at once{}.",
                       entry.pod.name_space,
                       share_text(state_.gpus_held(job->spec.user.uid)),
                       share_text(limit),
                       with.empty() ? "" : "; " + with);
  }
  if (std::string gang = why_gang(entry); !gang.empty()) return gang;
  if (queued != nullptr && !queued->victims.empty()) return why_evicting(*queued);
  const auto ahead = has_room ? state_.ahead_of(entry.job, now_) : std::nullopt;
  if (!ahead) return {};
  const auto uid = by_job_.find(ahead->behind);
  if (uid == by_job_.end()) return "It waits for pods ahead of it.";
  return fmt::format("It would delay pod {}, which is ahead of it.",
                     pods_.at(uid->second).pod.full_name());
}

}  // namespace gflow::kube

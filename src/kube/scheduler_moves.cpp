// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "api/defrag.h"
#include "core/principal.h"
#include "core/stop.h"
#include "kube/movable.h"
#include "kube/picture.h"
#include "kube/scheduler.h"

/// Moves of pods that somebody asked for. That they are made is written before anybody is evicted,
/// so that a scheduler that comes later goes on with them; what became of them is written once
/// those who waited have their room, or are not to have it.
namespace gflow::kube {
namespace {

constexpr std::chrono::minutes kAskAgain{1};  // after a budget refused an eviction
constexpr std::chrono::minutes kGivenUp{10};  // after they were begun
constexpr std::chrono::hours kLongestGrace{24};
constexpr std::chrono::seconds kLookAfterRefusal{
    10};  // after some were refused: to look takes its time
constexpr WallTime kBeforeAll = std::chrono::sys_days(std::chrono::year(2014) / 1 / 2);
constexpr std::size_t kMostLooked = api::kMaxDefrag;  // plans, as whoever asks is shown
constexpr std::size_t kMostStaying = 3;
constexpr const char* kNotTogether = "these are not the pods that start together by these moves";

bool is_one_of(const std::vector<PodName>& pods, const std::string& uid) {
  return std::ranges::find(pods, uid, &PodName::uid) != pods.end();
}

PodName name_of(const Pod& pod) { return {pod.name_space, pod.name, pod.uid}; }

std::string names_of(const std::vector<PodName>& pods) {
  const std::string first = pods.front().full_name();
  if (pods.size() == 1) return first;
  return fmt::format("{} and {} that start together with it", first, pods.size() - 1);
}

}  // namespace

void Scheduler::put(MovesRecord record) {
  moves_version_ = record.version;
  if (!has_begun_) {
    left_ = std::move(record);
    return;
  }
  const bool is_known = moving_ && record.asked && record.asked->id == moving_->asked.id;
  if (is_known) return;  // who writes what is answered tells
  drop_moves();          // whoever asked took it back, or another came in its place
  if (!record.is_open()) return;
  moving_ = Moving{.asked = *std::move(record.asked)};
  if (!record.answer) return;
  // Somebody else wrote that these are made; or what was written last is told only now.
  if (last_moves_ && last_moves_->id == moving_->asked.id) {
    tell_moves(last_moves_->state, last_moves_->why);
  } else {
    tell_moves(MovesState::GivenUp, "it is not this scheduler that makes them: ask again");
  }
}

void Scheduler::drop_moves() {
  if (!moving_) return;
  if (moving_->phase == Moving::Phase::UnderWay) {
    decided_.dropped_moves = names_of(moving_->asked.pods);
  }
  keep_no_room();
  moving_.reset();
}

void Scheduler::moves_told(const std::string& id, bool is_written) {
  if (!moving_ || moving_->asked.id != id) return;
  if (moving_->phase == Moving::Phase::ToEnd) {
    moving_.reset();
  } else if (moving_->phase == Moving::Phase::ToBegin && is_written) {
    moving_->phase = Moving::Phase::Begun;
  } else if (!is_written) {  // what is there instead is told
    drop_moves();
  }
}

/// When it begins, and all pods are known to the engine: whoever decided before had begun with
/// these, however long ago that is.
void Scheduler::resume_moves(Now now) {
  const std::optional<MovesRecord> left = std::exchange(left_, std::nullopt);
  if (!left || !left->is_open()) return;
  now_ = now;
  moving_ = Moving{.asked = *left->asked};
  if (!left->answer) {
    moving_->trouble = "it was asked for before this scheduler began: ask again";
    return;
  }
  moving_->phase = Moving::Phase::Begun;
  moving_->priority = left->answer->priority;
  begin_moves();
}

/// What was right when it was asked for need not be when it is written. Once some are on the way,
/// where they go does not matter any more.
void Scheduler::begin_moves() {
  (void)follow_gang();
  const auto is_to_move = [this](const PodName& pod) { return this->is_to_move(pod); };
  const bool is_new = std::ranges::all_of(moving_->asked.moves, is_to_move);
  std::string why;
  if (!are_one_gang()) {
    why = kNotTogether;
  } else if (is_new) {
    why = why_not_moved();
  } else if (are_all_waiting()) {  // else it is being bound, or is to be made anew
    why = why_no_room();
  }
  if (!why.empty()) return tell_moves(MovesState::GivenUp, std::move(why));
  make_room();
}

/// Null if there is none: a name with the uid of another is nobody.
const Scheduler::PodEntry* Scheduler::entry_of(const PodName& pod) const {
  const auto at = pods_.find(pod.uid);
  return at != pods_.end() && name_of(at->second.pod) == pod ? &at->second : nullptr;
}

bool Scheduler::is_waiting(const PodName& pod) const {
  const PodEntry* entry = entry_of(pod);
  return entry != nullptr && entry->role == Role::Queued;
}

bool Scheduler::is_to_move(const PodName& pod) const {
  const PodEntry* entry = entry_of(pod);
  return entry != nullptr && entry->role == Role::Bound && !entry->pod.is_deleted;
}

std::vector<JobId> Scheduler::jobs_of(const std::vector<PodName>& pods) const {
  std::vector<JobId> jobs;
  for (const PodName& pod : pods) {
    const PodEntry* entry = entry_of(pod);
    if (entry != nullptr && entry->job.is_set()) jobs.push_back(entry->job);
  }
  std::ranges::sort(jobs);
  return jobs;
}

/// As many as were asked for.
bool Scheduler::are_all_waiting() const {
  const auto waits = [this](const PodName& pod) { return is_waiting(pod); };
  return moving_->asked.pods.size() == moving_->size &&
         std::ranges::all_of(moving_->asked.pods, waits);
}

/// Of those that are there. Who takes over has not seen how it was when it was asked for.
bool Scheduler::are_one_gang() const {
  if (moving_->size < 2) return true;
  return std::ranges::all_of(moving_->asked.pods, [this](const PodName& pod) {
    const PodEntry* entry = entry_of(pod);
    return entry == nullptr || (entry->gang && entry->gang->name == moving_->gang);
  });
}

bool Scheduler::is_moving(const std::string& uid) const {
  return moving_ && moving_->phase == Moving::Phase::UnderWay &&
         is_one_of(moving_->asked.moves, uid);
}

/// Where they stand, before it is looked at what else there is to decide.
void Scheduler::see_moves() {
  if (!moving_) return;
  if (moving_->phase == Moving::Phase::Asked) {
    if (now_.mono < looks_at_moves_) return;
    std::string why = why_not_moved();
    if (!why.empty()) {
      looks_at_moves_ = now_.mono + kLookAfterRefusal;
      return tell_moves(MovesState::Refused, std::move(why));
    }
    moving_->priority = priority_to_move();
    tell_moves(MovesState::Making, "");
  } else if (moving_->phase == Moving::Phase::Begun) {
    begin_moves();
  } else if (moving_->phase == Moving::Phase::UnderWay) {
    if (follow_gang()) keep_room();
    evict_again();
  }
}

void Scheduler::tell_moves(MovesState state, std::string why) {
  moving_->phase = state == MovesState::Making ? Moving::Phase::ToBegin : Moving::Phase::ToEnd;
  decided_.moves = MovesToTell{{moving_->asked.id,
                                state,
                                std::move(why),
                                state == MovesState::Making ? moving_->priority : 0},
                               moves_version_,
                               names_of(moving_->asked.pods)};
  if (state != MovesState::Making) last_moves_ = decided_.moves->answer;
}

/// Why they are not made; "" if they are.
std::string Scheduler::why_not_moved() const {
  if (!moving_->trouble.empty()) return moving_->trouble;
  for (const PodName& pod : moving_->asked.pods) {
    if (!is_waiting(pod)) return fmt::format("pod {} does not wait for room", pod.full_name());
    const PodEntry& entry = *entry_of(pod);
    const auto gang = state_.gang_of(entry.job);
    if (!gang || gang->start != engine::GangStart::NotYet) continue;
    return fmt::format("pod {} waits for more than room: {}", pod.full_name(), why_gang(entry));
  }
  for (const PodName& pod : moving_->asked.moves) {
    if (is_to_move(pod)) continue;
    return fmt::format("pod {} is not on a node by gflow-kube, or is about to go", pod.full_name());
  }
  for (const auto& [job, uid] : by_job_) {
    const auto* queued = std::get_if<gflow::Queued>(&state_.find(job)->state);
    if (queued == nullptr) continue;
    const bool is_made = std::ranges::any_of(queued->victims, [this](JobId id) {
      const Job* victim = state_.find(id);
      return victim != nullptr && is_active(*victim);
    });
    if (is_made) return fmt::format("room is being made for pod {}", pods_.at(uid).pod.full_name());
  }
  return why_not_moved_now();
}

/// By the same picture that who asks was shown, of what is known here.
std::string Scheduler::why_not_moved_now() const {
  const Picture picture = picture_of(facts(), now_, 0);
  const auto number_of = [&picture](const PodName& pod) {
    const auto at = picture.numbers.find(pod.uid);
    return at == picture.numbers.end() ? JobId() : at->second;
  };
  std::vector<JobId> moves;
  for (const PodName& pod : moving_->asked.moves) moves.push_back(number_of(pod));
  std::ranges::sort(moves);
  const JobId first = number_of(moving_->asked.pods.front());
  const auto checked = picture.state.check_moves(first, moves, kMostLooked, now_);
  if (!checked) return with_pods_named(checked.error().message, picture.state);
  const std::vector<DefragPlan> plans = picture.state.defrag(kMostLooked, now_);
  const auto plan = std::ranges::find(plans, first, &DefragPlan::job);
  const bool is_whole =
      plan != plans.end() && plan->together.size() + 1 == moving_->asked.pods.size() &&
      std::ranges::all_of(moving_->asked.pods,
                          [&](const PodName& pod) { return plan->starts(number_of(pod)); });
  return is_whole ? "" : kNotTogether;
}

/// Why it was for nothing to evict those who are left to move: who waits had no room then, or they
/// may not be moved; "" if it is not. Where they go then is not looked at: some are on the way.
std::string Scheduler::why_no_room() const {
  const auto waiting = std::ranges::find_if(moving_->asked.pods,
                                            [this](const PodName& pod) { return is_waiting(pod); });
  if (waiting == moving_->asked.pods.end()) return {};  // nobody is evicted then
  ClusterFacts facts = this->facts();
  for (const PodName& pod : moving_->asked.moves) {
    const auto at = facts.pods.find(pod.uid);
    if (at == facts.pods.end()) continue;
    if (is_to_move(pod) && !may_move(at->second, nullptr)) {
      return fmt::format("pod {} may not be moved", pod.full_name());
    }
    facts.pods.erase(at);
  }
  const Picture picture = picture_of(facts, now_, 0);
  const auto first = picture.numbers.find(waiting->uid);
  for (const DefragPlan& plan : picture.state.defrag(kMostLooked, now_)) {
    if (first != picture.numbers.end() && plan.starts(first->second) &&
        plan.outcome == DefragOutcome::HasRoom)
      return {};
  }
  return fmt::format("pod {} would not start by these moves any more", waiting->full_name());
}

/// Nobody else is to move. Of what was begun before, others that wait come behind; before that
/// those of the same priority do, as they will: who of these was there first, who asks may see
/// otherwise, who knows Jobs. Whether the eviction of a pod of one counts as a failure of that, it
/// knows, too.
ClusterFacts Scheduler::facts() const {
  ClusterFacts facts;
  facts.scheduler = name_;
  facts.quota = policy_.gpu_quota;
  facts.levels = levels_;
  facts.are_levels_unread = are_levels_unread_;
  for (const auto& [name, group] : groups_) facts.nears.emplace(name, group.near);
  for (const auto& [name, entry] : nodes_) facts.nodes.emplace(entry.node.uid, entry.node);
  const bool is_begun = moving_->phase != Moving::Phase::Asked;
  for (const auto& [uid, entry] : pods_) {
    if (is_begun && entry.node.empty() && !is_one_of(moving_->asked.pods, uid)) continue;
    Pod& pod = facts.pods.emplace(uid, entry.pod).first->second;
    const auto asked = std::ranges::find(moving_->asked.pods, uid, &PodName::uid);
    if (asked != moving_->asked.pods.end()) {
      pod.created = kBeforeAll + std::chrono::seconds(asked - moving_->asked.pods.begin());
    }
    if (pod.node.empty() && !entry.node.empty()) {  // its binding is under way
      pod.node = entry.node;
      pod.allocation = entry.given;
    }
    if (!is_one_of(moving_->asked.moves, uid)) {
      pod.may_evict = false;
    } else if (!pod.may_evict && !pod.job.empty() && !pod.has_local_data) {
      pod.may_evict = true;
    }
  }
  return facts;
}

/// Above that of all who move, and of all that are as urgent as who waits.
int Scheduler::priority_to_move() const {
  int highest = 0;
  for (const auto* pods : {&moving_->asked.pods, &moving_->asked.moves}) {
    for (const PodName& pod : *pods) {
      highest = std::max(highest, priority_of(entry_of(pod)->pod.priority));
    }
  }
  return std::min(highest + 1, kMaxPriority);
}

/// Of pods that start together, those that are there by now are who waits: one that is made anew
/// has another name. Whether others wait by now.
bool Scheduler::follow_gang() {
  std::vector<PodName>& pods = moving_->asked.pods;
  if (moving_->size < 2) return false;
  for (const PodName& pod : pods) {
    const PodEntry* entry = entry_of(pod);
    if (entry != nullptr && entry->gang) moving_->gang = entry->gang->name;
  }
  const auto gang = moving_->gang ? gangs_.find(*moving_->gang) : gangs_.end();
  if (gang == gangs_.end()) return false;
  const std::vector<PodName> before = pods;
  std::erase_if(pods, [&](const PodName& pod) { return !gang->second.pods.contains(pod.uid); });
  for (const std::string& uid : gang->second.pods) {
    const PodEntry& entry = pods_.at(uid);
    if (pods.size() == moving_->size) break;
    const bool is_higher = priority_of(entry.pod.priority) > moving_->priority;
    if (entry.role != Role::Queued || is_higher || is_one_of(pods, uid)) continue;
    pods.push_back(name_of(entry.pod));
  }
  if (!pods.empty()) return pods != before;
  pods = before;
  return false;
}

/// Those who move and are not being deleted are evicted: by take() of what the engine says.
void Scheduler::make_room() {
  moving_->phase = Moving::Phase::UnderWay;
  std::chrono::seconds grace{0};
  for (const PodName& pod : moving_->asked.moves) {
    const PodEntry* entry = entry_of(pod);
    if (entry != nullptr) grace = std::max(grace, entry->pod.grace);
  }
  moving_->patience = kGivenUp + std::chrono::ceil<std::chrono::minutes>(
                                     std::min<std::chrono::seconds>(grace, kLongestGrace));
  moving_->until = now_.mono + moving_->patience;
  if (const auto gang = moving_->gang ? gangs_.find(*moving_->gang) : gangs_.end();
      gang != gangs_.end()) {
    for (const std::string& uid : gang->second.pods) {
      const bool runs = pods_.at(uid).role == Role::Bound;
      if (runs && !is_one_of(moving_->asked.pods, uid)) moving_->ran.insert(uid);
    }
  }
  keep_room();
}

void Scheduler::keep_room() {
  const std::vector<JobId> jobs = jobs_of(moving_->asked.pods);
  for (const JobId job : jobs) state_.spare(job, true);
  std::vector<JobId> moves;
  for (const JobId job : jobs_of(moving_->asked.moves)) {
    if (is_active(*state_.find(job))) moves.push_back(job);
  }
  step(engine::event::MakeRoom{jobs, std::move(moves), moving_->priority});
}

/// What is left of them is as if nobody had asked.
void Scheduler::keep_no_room() {
  if (moving_->phase != Moving::Phase::UnderWay) return;
  for (const PodName& pod : moving_->asked.pods) {
    const auto at = pods_.find(pod.uid);
    if (at == pods_.end() || !at->second.job.is_set()) continue;
    const PodEntry& entry = at->second;
    const int priority = priority_of(entry.pod.priority);
    events_.emplace_back(engine::event::MakeRoom{{entry.job}, {}, priority});
    state_.spare(entry.job, entry.pod.is_sparing);
    if (entry.role == Role::Queued) continue;
    engine::event::Update update{{entry.job}, system_principal(), {}};
    update.changes.set(&JobSpec::priority, priority);
    events_.emplace_back(std::move(update));
  }
  for (const PodName& pod : moving_->asked.moves) {
    const auto at = pods_.find(pod.uid);
    if (at == pods_.end() || at->second.role != Role::Bound || at->second.pod.is_deleted) continue;
    const Job* job = state_.find(at->second.job);
    if (job == nullptr || stop_of(*job) == nullptr) continue;
    events_.emplace_back(engine::event::StopRefused{job->id, attempt_of(*job)->number});
    protected_.emplace(now_.mono, pod.uid);
  }
}

void Scheduler::evict_again() {
  const auto is_due = [this](const auto& one) { return one.second.at <= now_.mono; };
  // Nobody is evicted as they are given up.
  const bool is_over = now_.mono >= moving_->until || !moving_->trouble.empty();
  if (is_over || std::ranges::none_of(moving_->again, is_due)) return;
  if (!are_all_waiting()) {  // it is being bound, or others of its gang are made anew
    for (auto& [uid, next] : moving_->again) next.at = std::max(next.at, now_.mono + kAskAgain);
    return;
  }
  moving_->trouble = why_no_room();
  if (!moving_->trouble.empty()) return;  // end_moves() gives them up
  std::erase_if(moving_->again, [this](const auto& one) {
    const auto& [uid, next] = one;
    if (next.at > now_.mono) return false;
    const auto at = pods_.find(uid);
    if (at == pods_.end() || at->second.role != Role::Bound || at->second.pod.is_deleted) {
      return true;
    }
    const Pod& pod = at->second.pod;
    const std::string& by = moving_->asked.pods.front().name_space;
    decided_.evictions.push_back({pod.uid, pod.name_space, pod.name, by, true});
    return true;
  });
}

std::optional<MonoTime> Scheduler::wake_for_moves() const {
  if (!moving_) return std::nullopt;
  if (moving_->phase == Moving::Phase::Asked) return looks_at_moves_;
  if (moving_->phase == Moving::Phase::Begun) return now_.mono;
  if (moving_->phase != Moving::Phase::UnderWay) return std::nullopt;
  MonoTime first = moving_->until;
  for (const auto& [uid, next] : moving_->again) first = std::min(first, next.at);
  return first;
}

/// Once it is decided what starts.
void Scheduler::end_moves() {
  if (!moving_ || moving_->phase != Moving::Phase::UnderWay) return;
  const bool have_all = have_started();
  std::string why = have_all ? "" : why_given_up();
  if (!have_all && why.empty()) return;
  keep_no_room();
  tell_moves(have_all ? MovesState::Started : MovesState::GivenUp, std::move(why));
}

/// Of those that start together as many as were asked for, whichever they are.
bool Scheduler::have_started() const {
  if (moving_->gang) {
    const auto gang = gangs_.find(*moving_->gang);
    return gang != gangs_.end() && has_started(gang->second);
  }
  return std::ranges::all_of(moving_->asked.pods, [this](const PodName& pod) {
    const PodEntry* entry = entry_of(pod);
    return entry != nullptr && entry->role == Role::Bound;
  });
}

/// Those that ran when its moves began are none of them, and neither are those that are to go.
bool Scheduler::has_started(const Gang& gang) const {
  std::size_t there = 0;
  std::size_t bound = 0;
  std::size_t ran = 0;
  for (const std::string& uid : gang.pods) {
    const PodEntry& entry = pods_.at(uid);
    if (entry.pod.is_deleted) continue;
    ++there;
    if (entry.role != Role::Bound) continue;
    ++bound;
    if (moving_->ran.contains(uid)) ++ran;
  }
  if (bound < gang.least) return false;
  return bound == there || bound - ran >= moving_->size;
}

/// "" if they are not.
std::string Scheduler::why_given_up() const {
  if (!moving_->trouble.empty()) return moving_->trouble;
  const std::vector<PodName>& pods = moving_->asked.pods;
  const auto is_there = [this](const PodName& pod) {
    const PodEntry* entry = entry_of(pod);
    return entry != nullptr && !entry->pod.is_deleted;
  };
  const auto gone = std::ranges::find_if_not(pods, is_there);
  const bool is_made_anew = moving_->gang && std::ranges::any_of(pods, is_there);
  if (gone != pods.end() && !is_made_anew) {
    return fmt::format("pod {} is gone", gone->full_name());
  }
  for (const PodName& pod : pods) {
    const PodEntry* entry = entry_of(pod);
    if (entry != nullptr && entry->role == Role::Queued && state_.is_at_user_limit(entry->job)) {
      return fmt::format("namespace {} holds as many GPUs as it may", pod.name_space);
    }
  }
  if (now_.mono < moving_->until) return {};
  return fmt::format(
      "it had no room {} minutes after it was asked for{}", moving_->patience.count(), who_stays());
}

/// Of those who move who has not left.
std::string Scheduler::who_stays() const {
  std::vector<std::string> names;
  std::size_t more = 0;
  for (const PodName& pod : moving_->asked.moves) {
    if (entry_of(pod) == nullptr) continue;
    if (names.size() < kMostStaying) {
      names.push_back(pod.full_name());
    } else {
      ++more;
    }
  }
  if (names.empty()) return {};
  const bool is_one = names.size() == 1;
  return fmt::format(", and {}{} {} not left",
                     fmt::join(names, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more),
                     is_one ? "has" : "have");
}

void Scheduler::not_moved(const std::string& uid, const EvictionRefused& refusal) {
  if (refusal.is_of_budget || refusal.is_passing) {
    moving_->again[uid] = {now_.mono + kAskAgain, refusal.is_of_budget};
  } else {
    moving_->trouble = refusal.why;
  }
}

}  // namespace gflow::kube

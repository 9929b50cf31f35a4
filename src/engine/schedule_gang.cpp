// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "engine/backfill.h"
#include "engine/candidates.h"
#include "engine/step_internal.h"

/// Jobs that start together: all of them at once, and as near each other as they are to be.
namespace gflow::engine {

/// Starts enough jobs of the gang at once, and what else of it there is room for, or none of it in
/// this pass. Those that are left after a start may start alone.
void Step::look_at_gang(const Candidate& first,
                        GangNumber gang,
                        Candidates& candidates,
                        Places& places) {
  std::vector<Start> starts;
  bool is_full = true;
  if (!index_.fronts.is_full(first.shape)) {
    starts = starts_of_gang(index_.gangs.at(gang), places, is_full);
  }
  if (starts.empty()) {
    tell_blocked(first, places);
    if (is_full) index_.fronts.set_gang_full(gang);
  }
  const auto is_of_gang = [&](Fronts::ShapeNumber shape) {
    return index_.fronts.shape(shape).gang == gang;
  };
  candidates.drop_if([&](const Candidate& one) { return is_of_gang(one.shape); });
  if (starts.empty()) return;
  for (const Start& one : starts) start(one.job, one.there);
  for (const Front& front : index_.fronts.all()) {
    if (is_of_gang(front.shape)) candidates.add(front);
  }
  candidates.put_in_order();
}

/// Whether so much of GPUs is free as the smallest of them need. To try it would take long where a
/// gang is large.
bool Step::has_as_much(const Gang& gang) const {
  std::vector<std::int64_t> parts;
  for (const QueueKey& key : gang.waiting) {
    parts.push_back(gpu_parts_of(index_.find(key.id)->spec.request));
  }
  const auto last = parts.begin() + static_cast<std::ptrdiff_t>(gang.needed());
  std::nth_element(parts.begin(), std::prev(last), parts.end());
  const std::int64_t needed = std::accumulate(parts.begin(), last, std::int64_t{0});
  std::int64_t free = 0;
  for (placement::NodeIndex node = 0; node < index_.ledger.size() && free < needed; ++node) {
    const placement::NodeState& state = index_.ledger.state(node);
    if (!state.open) continue;
    for (const placement::DeviceState& device : state.devices) {
      if (device.usable) free += device.free.parts;
    }
  }
  return free >= needed;
}

/// The places that those who start go through, while it is tried where.
class Step::GangTrial {
 public:
  GangTrial(Step& step, const Gang& gang, const Ground& ground, Places& places)
      : step_(step), index_(step.index_), gang_(gang), ground_(ground), places_(places) {
    for (const Ground::Part& part : ground.parts) left_.push_back(part.jobs);
  }
  GangTrial(Step& step,
            const Gang& gang,
            Ground&& ground,
            Places& places) = delete;  // it is looked at later

  /// Where jobs of it go, in the order of the queue, each as if those before were there.
  std::vector<Start> run() {
    const std::int64_t quota =
        index_.gpu_limit_left(index_.find(gang_.waiting.begin()->id)->spec.user.uid);
    std::int64_t held = 0;  // of GPUs, by those that have their place
    std::size_t left = gang_.waiting.size();
    for (const QueueKey& key : gang_.waiting) {
      if (starts_.size() + left-- < gang_.needed()) break;
      Passer passer = index_.passer_of(*index_.find(key.id));
      passer.parts += held;
      if (full_.contains(passer.shape.demand)) continue;
      auto there = passer.parts > quota ? std::nullopt : place(passer);
      if (!there) {
        is_kept_out_ = is_kept_out_ || passer.parts > quota;
        full_.insert(passer.shape.demand);
        continue;
      }
      held = passer.parts;
      for (const auto& placement : there->placements) {
        index_.ledger.take(passer.shape.demand, placement);
      }
      starts_.push_back({key.id, passer.shape.demand, *std::move(there)});
    }
    for (const Start& one : starts_) {
      for (const auto& placement : one.there.placements) {
        index_.ledger.give_back(one.demand, placement);
      }
    }
    return std::move(starts_);
  }
  /// Whether somebody found no place as others go before, or by his limit.
  [[nodiscard]] bool is_kept_out() const { return is_kept_out_; }

 private:
  /// In the first part that has room, else anywhere in the ground.
  std::optional<Chosen> place(const Passer& passer) {
    while (first_ < left_.size() && left_[first_] == 0) ++first_;
    for (std::size_t part = first_; part < left_.size(); ++part) {
      if (left_[part] == 0) continue;
      if (auto there = place_among(passer, ground_.parts[part].nodes)) {
        --left_[part];
        return there;
      }
    }
    return place_among(passer, ground_.nodes);
  }
  /// What has no room in an area has none in this trial any more.
  std::optional<Chosen> place_among(const Passer& passer, Area area) {
    const std::pair key(passer.shape.demand, area);
    if (full_areas_.contains(key)) return std::nullopt;
    ++index_.looks;
    auto there = index_.choose(passer.shape.demand, {}, area);
    const bool is_free = there.has_value();
    if (is_free && step_.pass(places_, passer, *there, area)) return there;
    is_kept_out_ = is_kept_out_ || is_free;
    full_areas_.insert(key);
    return std::nullopt;
  }

  Step& step_;
  Index& index_;
  const Gang& gang_;
  const Ground& ground_;
  Places& places_;
  std::vector<std::size_t> left_;  ///< of each part, how many are still to go there
  std::size_t first_ = 0;          ///< parts before it are done with
  std::set<placement::DemandIndex> full_;
  std::set<std::pair<placement::DemandIndex, Area>> full_areas_;
  std::vector<Start> starts_;
  bool is_kept_out_ = false;
};

/// Where jobs of a gang go, in the order of the queue, each as if those before were there. Nothing
/// if there is room for too few; `is_full`: for all that is free, and not for who goes before.
std::vector<Step::Start> Step::starts_of_gang(Gang& gang, Places& places, bool& is_full) {
  constexpr std::size_t kLarge = 64;
  gang.room.reset();
  if (gang.needed() > kLarge && !has_as_much(gang)) {
    gang.refused.clear();  // that was of what was free then
    return {};
  }
  places.keep_outranking(index_, gang.waiting.rbegin()->priority);
  if (!gang.near.levels.empty() && !gang.near.is_any()) {
    return starts_near(gang, places, is_full);
  }
  Places::Kept before = places.kept();
  const Ground everywhere;
  GangTrial trial(*this, gang, everywhere, places);
  std::vector<Start> starts = trial.run();
  is_full = is_full && !trial.is_kept_out();
  gang.room = starts.size();
  if (starts.size() < gang.needed()) {
    places.put_back(std::move(before));
    return {};
  }
  gang.tried.reset();
  if (!gang.near.levels.empty()) prefer_near(gang, std::move(before), places, starts);
  return starts;
}

/// The same on the first ground that has room for enough.
std::vector<Step::Start> Step::starts_near(Gang& gang, Places& places, bool& is_full) {
  const Places::Kept before = places.kept();
  Gathering gathering(index_, gang);
  std::size_t room = 0;
  bool is_any = false;
  while (const auto ground = gathering.next()) {
    GangTrial trial(*this, gang, *ground, places);
    std::vector<Start> starts = trial.run();
    is_full = is_full && !trial.is_kept_out();
    if (starts.size() >= gang.needed()) {
      gang.kept.reset();
      if (ground->nodes != nullptr) {
        gang.tried = {ground->level, index_.ledger.node(ground->nodes->front()).name};
      }
      return starts;
    }
    room = std::max(room, starts.size());
    is_any = true;
    places.put_back(before);
  }
  // Those that were not tried may have less room than was counted, and no more.
  gang.room = is_any ? room : std::min(gathering.most_room(), gang.needed() - 1);
  // Where some were started just now, the others may have to go elsewhere with them.
  if (gang.active == 0) gang.refused = std::exchange(gang.avoided, {});
  return {};
}

/// Nearer each other than `starts`, if as many start and no more nodes on which nothing runs are
/// used: what is left for others is the same then.
void Step::prefer_near(const Gang& gang,
                       Places::Kept before,
                       Places& places,
                       std::vector<Start>& starts) {
  constexpr int kMostTries = 4;
  const auto idle = [this](const std::vector<Start>& those) {
    std::set<placement::NodeIndex> nodes;
    for (const Start& one : those) {
      for (const auto& placement : one.there.placements) nodes.insert(placement.node);
    }
    return idle_nodes(index_, std::move(nodes));
  };
  const Places::Kept otherwise = places.kept();
  Gathering gathering(index_, gang);
  for (int tries = 0; tries < kMostTries; ++tries) {
    const auto ground = gathering.next();
    if (!ground) break;
    places.put_back(before);
    std::vector<Start> near = GangTrial(*this, gang, *ground, places).run();
    if (near.size() < starts.size() || idle(near) > idle(starts)) continue;
    starts = std::move(near);
    return;
  }
  places.put_back(otherwise);
}

/// Starts one more job of a gang of which others run near these, or leaves it out for this pass.
/// False: it goes anywhere.
bool Step::start_near(const Candidate& first,
                      const Passer& passer,
                      Candidates& candidates,
                      Places& places) {
  const Gang* gang = index_.gangs.find(first.job());
  if (gang == nullptr || gang->near.levels.empty()) return false;
  const auto opens = [this](const Chosen& there) {
    return index_.ledger.holds(there.placements.front().node).empty();
  };
  const placement::DemandIndex demand = passer.shape.demand;
  const auto anywhere = gang->near.is_any() ? index_.choose(demand, {}) : std::nullopt;
  bool is_kept_out = false;
  for (const auto& area : areas_near(index_, *gang)) {
    ++index_.looks;
    auto there = index_.choose(demand, {}, &area);
    if (!there) continue;
    if (anywhere && opens(*there) && !opens(*anywhere)) continue;
    if (pass(places, passer, *there, &area)) {
      start_first(first, *there, candidates);
      return true;
    }
    is_kept_out = true;
  }
  if (gang->near.required == 0) return false;
  if (is_kept_out) {
    candidates.drop_line();
    return true;
  }
  tell_blocked(first, places);
  index_.fronts.set_full(first.shape);
  candidates.drop_shape();
  return true;
}

}  // namespace gflow::engine

// SPDX-License-Identifier: Apache-2.0
#include "lab/queue_peers.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace gflow::lab {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNever = milliseconds::max();
constexpr std::int64_t kFirstQueue = 36'000'000;  // GPU-milliseconds of service

/// A job of one peer's world. Positions in the trace are their names.
struct Runner {
  int nodes = 1;
  int gpus = 0;  ///< on each
  milliseconds limit{kNever};
  std::vector<int> on;  ///< nodes it has; empty while it waits
  milliseconds since{0};
  milliseconds overhead{0};  ///< of the present start
  std::uint64_t start = 0;   ///< number of the present start
  std::vector<int> kept;     ///< nodes kept for it since it was guarded, while it waits
};

class World {
 public:
  World(QueuePeer peer, const std::vector<TraceJob>& jobs, EqualNodes machines, PeerRules rules)
      : peer_(peer),
        machines_(machines),
        rules_(rules),
        free_(static_cast<std::size_t>(machines.nodes), machines.gpus),
        jobs_on_(free_.size()) {
    for (const TraceJob& job : jobs) add(job);
  }

  std::vector<Life> play() {
    std::size_t next = 0;
    while (next < lives_.size() || !events_.empty()) {
      now_ = events_.empty() ? lives_[next].submitted : std::get<0>(events_.top());
      if (next < lives_.size()) now_ = std::min(now_, lives_[next].submitted);
      while (!events_.empty() && std::get<0>(events_.top()) <= now_) happen();
      while (next < lives_.size() && lives_[next].submitted <= now_) enter(next++);
      if (peer_ == QueuePeer::Tiresias) {
        share_out();
      } else {
        if (peer_ == QueuePeer::Guard) start_guarded();
        start_in_order();
      }
    }
    return std::move(lives_);
  }

 private:
  using Event = std::tuple<milliseconds, std::size_t, std::uint64_t>;
  /// Jobs that differ in nothing a decision looks at.
  using Shape = std::tuple<int, int, milliseconds>;
  /// The place of the first job that does not fit.
  struct Kept {
    milliseconds from{kNever};
    std::map<int, int> spare;  ///< by node: GPUs it leaves there from then on
  };

  void add(const TraceJob& job) {
    const Request& asks = job.spec.request;
    Runner runner;
    runner.nodes = std::max(asks.nodes, (asks.gpus + machines_.gpus - 1) / machines_.gpus);
    runner.gpus = std::min(asks.gpus, machines_.gpus);
    if (job.spec.time_limit) runner.limit = *job.spec.time_limit;
    Life life;
    life.id = JobId(lives_.size() + 1);
    life.parts = std::int64_t{runner.nodes} * runner.gpus * Share::kWholeParts;
    life.submitted = job.submitted;
    life.work = job.run_time;
    lives_.push_back(std::move(life));
    runners_.push_back(std::move(runner));
  }

  [[nodiscard]] int free_on(int node) const { return free_[static_cast<std::size_t>(node)]; }
  void take(int node, std::size_t job) {
    free_[static_cast<std::size_t>(node)] -= runners_[job].gpus;
    jobs_on_[static_cast<std::size_t>(node)].insert(job);
  }
  void give_back(int node, std::size_t job) {
    free_[static_cast<std::size_t>(node)] += runners_[job].gpus;
    jobs_on_[static_cast<std::size_t>(node)].erase(job);
  }
  [[nodiscard]] Shape shape_of(std::size_t job) const {
    const Runner& runner = runners_[job];
    return {runner.nodes, runner.gpus, peer_ == QueuePeer::Easy ? runner.limit : kNever};
  }
  void enter(std::size_t job) {
    waiting_[shape_of(job)].insert(job);
    if (peer_ == QueuePeer::Guard) events_.push({guarded_at(job), job, 0});
    active_.insert({queue_of(job), job});
  }

  /// Work done up to now.
  [[nodiscard]] milliseconds done(std::size_t job) const {
    const Runner& runner = runners_[job];
    if (runner.on.empty()) return lives_[job].done;
    return lives_[job].done + std::max(now_ - runner.since - runner.overhead, milliseconds::zero());
  }
  [[nodiscard]] int queue_of(std::size_t job) const {
    if (peer_ != QueuePeer::Tiresias) return 0;
    const Runner& runner = runners_[job];
    return done(job).count() * runner.nodes * runner.gpus < kFirstQueue ? 0 : 1;
  }

  void start(std::size_t job, std::vector<int> nodes) {
    Runner& runner = runners_[job];
    Life& life = lives_[job];
    for (const int node : nodes) take(node, job);
    runner.on = std::move(nodes);
    runner.since = now_;
    runner.overhead = life.done.count() > 0 ? rules_.runner.restart_cost : milliseconds::zero();
    if (!life.first_start) life.first_start = now_;
    ++life.starts;
    runner.start = ++starts_;
    const milliseconds begins = now_ + runner.overhead;
    events_.push({begins + life.work - life.done, job, runner.start});
    if (peer_ == QueuePeer::Tiresias && queue_of(job) == 0) {
      const std::int64_t gpus = std::max<std::int64_t>(std::int64_t{runner.nodes} * runner.gpus, 1);
      const milliseconds falls = milliseconds((kFirstQueue + gpus - 1) / gpus) - life.done;
      events_.push({begins + falls, job, runner.start});
    }
  }
  void leave(std::size_t job) {
    Runner& runner = runners_[job];
    lives_[job].done = done(job);
    for (const int node : runner.on) give_back(node, job);
    runner.on.clear();
  }
  void happen() {
    const auto [at, job, start] = events_.top();
    events_.pop();
    if (runners_[job].on.empty() || runners_[job].start != start) return;
    if (done(job) < lives_[job].work) {
      active_.erase({0, job});
      active_.insert({1, job});
      return;
    }
    active_.erase({0, job});
    active_.erase({1, job});
    leave(job);
    lives_[job].ended = now_;
  }

  /// The nodes where least is left over, by `room`; empty if there are not enough.
  template <typename Room>
  [[nodiscard]] std::vector<int> best_fit(const Runner& runner, Room room) const {
    std::vector<std::pair<int, int>> fits;
    for (int node = 0; node < machines_.nodes; ++node) {
      const int left = room(node);
      if (left >= runner.gpus) fits.emplace_back(left, node);
    }
    const auto wanted = static_cast<std::size_t>(runner.nodes);
    if (fits.size() < wanted) return {};
    std::ranges::partial_sort(fits, fits.begin() + runner.nodes);
    std::vector<int> nodes;
    for (std::size_t i = 0; i < wanted; ++i) nodes.push_back(fits[i].second);
    return nodes;
  }

  [[nodiscard]] bool ends_before(const Runner& runner, milliseconds at) const {
    return runner.limit != kNever && now_ + runner.limit <= at;
  }
  /// Where the job may start now without delaying the job whose place is kept.
  [[nodiscard]] std::vector<int> place(const Runner& runner, const std::optional<Kept>& kept) {
    if (peer_ == QueuePeer::Guard) {
      return best_fit(runner, [&](int node) { return room_for(runner, node); });
    }
    const bool in_time = !kept || ends_before(runner, kept->from);
    return best_fit(runner, [&](int node) {
      if (in_time || !kept->spare.contains(node)) return free_on(node);
      return std::min(free_on(node), kept->spare.at(node));
    });
  }

  using Ends = std::vector<std::pair<milliseconds, int>>;  ///< of jobs, with their GPUs
  /// When so many GPUs of the node are free if its jobs end at these times, and what is left over.
  [[nodiscard]] std::pair<milliseconds, int> free_after(int node, int gpus, Ends ends) const {
    std::ranges::sort(ends);
    int room = free_on(node);
    milliseconds at = now_;
    for (const auto& [end, given] : ends) {
      if (room >= gpus) break;
      room += given;
      at = end;
    }
    return {at, room - gpus};
  }
  /// The same at the latest, by limits.
  [[nodiscard]] std::pair<milliseconds, int> drained(int node, int gpus) {
    Ends ends;
    for (const std::size_t job : jobs_on_[static_cast<std::size_t>(node)]) {
      const Runner& runner = runners_[job];
      const milliseconds end = runner.limit == kNever ? kNever : runner.since + runner.limit;
      ends.emplace_back(end, runner.gpus);
    }
    return free_after(node, gpus, std::move(ends));
  }
  [[nodiscard]] Kept keep(const Runner& runner) {
    std::vector<std::tuple<milliseconds, int, int>> nodes;
    for (int node = 0; node < machines_.nodes; ++node) {
      const auto [at, spare] = drained(node, runner.gpus);
      nodes.emplace_back(at, spare, node);
    }
    std::ranges::sort(nodes);
    Kept kept;
    if (nodes.size() < static_cast<std::size_t>(runner.nodes)) return kept;
    nodes.resize(static_cast<std::size_t>(runner.nodes));
    kept.from = std::get<0>(nodes.back());
    for (const auto& [at, spare, node] : nodes) kept.spare[node] = spare;
    return kept;
  }

  [[nodiscard]] milliseconds guarded_at(std::size_t job) const {
    return lives_[job].submitted + rules_.guard;
  }
  /// When so many GPUs of the node are free, expecting of each job that it runs to its limit, or as
  /// long again as it did.
  [[nodiscard]] milliseconds expected_free(int node, int gpus) const {
    Ends ends;
    for (const std::size_t job : jobs_on_[static_cast<std::size_t>(node)]) {
      const Runner& runner = runners_[job];
      const milliseconds whole = runner.limit == kNever ? 2 * (now_ - runner.since) : runner.limit;
      ends.emplace_back(runner.since + whole, runner.gpus);
    }
    return free_after(node, gpus, std::move(ends)).first;
  }
  /// Those nodes that are expected to be free first; none if they are too few.
  void keep_nodes(Runner& runner) {
    std::vector<std::pair<milliseconds, int>> nodes;
    for (int node = 0; node < machines_.nodes; ++node) {
      nodes.emplace_back(expected_free(node, runner.gpus), node);
    }
    if (std::cmp_less(nodes.size(), runner.nodes)) return;
    std::ranges::partial_sort(nodes, nodes.begin() + runner.nodes);
    nodes.resize(static_cast<std::size_t>(runner.nodes));
    for (const auto& [at, node] : nodes) {
      runner.kept.push_back(node);
      spare_[node] = machines_.gpus - runner.gpus;
    }
  }
  /// GPUs of the node that a job may have: all of those kept for it, and what others leave.
  [[nodiscard]] int room_for(const Runner& runner, int node) const {
    const auto kept = spare_.find(node);
    const bool own = std::ranges::find(runner.kept, node) != runner.kept.end();
    if (kept == spare_.end() || own) return free_on(node);
    return std::min(free_on(node), kept->second);
  }
  void take_spare(const Runner& runner) {
    for (const int node : runner.on) {
      const auto kept = spare_.find(node);
      if (kept != spare_.end()) kept->second -= runner.gpus;
    }
  }
  /// Those who waited long enough, oldest first.
  void start_guarded() {
    while (unguarded_ < lives_.size() && guarded_at(unguarded_) <= now_) {
      guarded_.push_back(unguarded_++);
    }
    std::erase_if(guarded_, [this](std::size_t job) {
      const auto shape = waiting_.find(shape_of(job));
      if (shape == waiting_.end() || !shape->second.contains(job)) return true;
      Runner& runner = runners_[job];
      std::vector<int> nodes = best_fit(runner, [&](int node) { return room_for(runner, node); });
      if (nodes.empty()) {
        if (spare_.empty()) keep_nodes(runner);
        return false;
      }
      for (const int node : std::exchange(runner.kept, {})) spare_.erase(node);
      shape->second.erase(job);
      if (shape->second.empty()) waiting_.erase(shape);
      start(job, std::move(nodes));
      take_spare(runner);
      return true;
    });
  }

  /// Starts the job unless it has to wait; false if it has to.
  bool try_start(std::size_t job, std::optional<Kept>& kept) {
    const Runner& runner = runners_[job];
    std::vector<int> nodes = place(runner, kept);
    if (nodes.empty()) return false;
    if (kept && !ends_before(runner, kept->from)) {
      for (const int node : nodes) {
        if (kept->spare.contains(node)) kept->spare[node] -= runner.gpus;
      }
    }
    start(job, std::move(nodes));
    take_spare(runner);
    return true;
  }

  void start_in_order() {
    using Head = std::pair<std::size_t, const Shape*>;
    std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
    for (const auto& [shape, jobs] : waiting_) heads.push({*jobs.begin(), &shape});
    std::optional<Kept> kept;
    while (!heads.empty()) {
      const auto [job, shape] = heads.top();
      heads.pop();
      if (!try_start(job, kept)) {
        if (peer_ == QueuePeer::Fifo) return;
        if (peer_ == QueuePeer::Easy && !kept) kept = keep(runners_[job]);
        continue;
      }
      const auto at = waiting_.find(*shape);
      at->second.erase(job);
      if (!at->second.empty()) heads.push({*at->second.begin(), &at->first});
      if (at->second.empty()) waiting_.erase(at);
    }
  }

  /// All GPUs, dealt out anew from the first of all jobs on.
  struct Deal {
    std::vector<int> left;        ///< by node
    std::map<int, int> too_many;  ///< GPUs on each of so many nodes that are not to be had
    std::set<std::size_t> stay;   ///< who keeps what it has
    std::vector<std::pair<std::size_t, std::vector<int>>> starts;
  };
  /// Who runs keeps its nodes where it can. The nodes the job gets; empty if there are none.
  [[nodiscard]] std::vector<int> deal(std::size_t job, Deal& out) const {
    const Runner& runner = runners_[job];
    const auto room = [&out](int node) { return out.left[static_cast<std::size_t>(node)]; };
    const auto keeps = [&](int node) { return room(node) >= runner.gpus; };
    if (!runner.on.empty() && std::ranges::all_of(runner.on, keeps)) {
      out.stay.insert(job);
      return runner.on;
    }
    const auto failed = out.too_many.find(runner.nodes);
    if (failed != out.too_many.end() && runner.gpus >= failed->second) return {};
    std::vector<int> nodes = best_fit(runner, room);
    if (nodes.empty()) {
      out.too_many[runner.nodes] = runner.gpus;
    } else {
      out.starts.emplace_back(job, nodes);
    }
    return nodes;
  }
  void share_out() {
    Deal out{std::vector<int>(free_.size(), machines_.gpus), {}, {}, {}};
    int left = machines_.nodes * machines_.gpus;
    for (const auto& [queue, job] : active_) {
      if (left == 0) break;
      for (const int node : deal(job, out)) {
        out.left[static_cast<std::size_t>(node)] -= runners_[job].gpus;
        left -= runners_[job].gpus;
      }
    }
    for (const auto& [queue, job] : active_) {
      if (runners_[job].on.empty() || out.stay.contains(job)) continue;
      leave(job);
      ++lives_[job].preemptions;
    }
    for (auto& [job, nodes] : out.starts) start(job, std::move(nodes));
  }

  QueuePeer peer_;
  EqualNodes machines_;
  PeerRules rules_;
  std::vector<Life> lives_;
  std::vector<Runner> runners_;
  std::vector<int> free_;                       ///< by node
  std::vector<std::set<std::size_t>> jobs_on_;  ///< by node
  std::map<int, int> spare_;                    ///< of the kept nodes: GPUs others may take
  std::vector<std::size_t> guarded_;            ///< by submission; some do not wait any more
  std::size_t unguarded_ = 0;                   ///< the first that did not wait so long
  std::map<Shape, std::set<std::size_t>> waiting_;
  std::set<std::pair<int, std::size_t>> active_;  ///< waiting and running, by queue
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  milliseconds now_{0};
  std::uint64_t starts_ = 0;
};

}  // namespace

std::string_view queue_peer_name(QueuePeer peer) {
  switch (peer) {
    case QueuePeer::Fifo:
      return "FIFO";
    case QueuePeer::FirstFit:
      return "first fit";
    case QueuePeer::Guard:
      return "simple guard";
    case QueuePeer::Easy:
      return "EASY backfill";
    case QueuePeer::Tiresias:
      return "Tiresias-like";
  }
  return "";
}

std::vector<Life> play_peer(QueuePeer peer,
                            const std::vector<TraceJob>& jobs,
                            const EqualNodes& machines,
                            const PeerRules& rules) {
  return World(peer, jobs, machines, rules).play();
}

}  // namespace gflow::lab

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "engine/step.h"

/// For tests: the engine with all that happens to it, and the store, runner and clock around it.
namespace gflow::engine::world {

constexpr int kNodes = 2;
constexpr int kGpus = 4;  ///< on each
constexpr Memory kGpuMemory = Memory::gib(16);
constexpr Memory kHostMemory = Memory::gib(40);  ///< of each: not all can be parked at once

/// Something people, machines or time do.
struct Act {
  enum class Kind {
    Submit,
    End,     ///< a running job ends by itself
    Wait,    ///< time passes
    Cancel,  ///< any job
    Raise,   ///< its priority changes
    Update,  ///< its time limit and the limit of its group change
    Hold,
    Release,
    Suspend,  ///< by hand
    Resume,
    Launches,   ///< from now on launches fail, in one of the ways there are, or do not
    Reports,    ///< from now on the runner tells nothing; or tells all it has not told
    Clock,      ///< somebody sets the clock
    Node,       ///< a node does not answer, answers again, is removed, comes
    Drain,      ///< a device or node is drained, or resumed
    Configure,  ///< the administrator changes the policy
    Idle,       ///< from now on no GPU of a node is seen to be used; or each is
    Want,       ///< a program uses the GPU of a job that lends it
    Move,       ///< a running job is to move to another GPU of its node
  };
  Kind kind = Kind::Submit;
  int which = 0;  ///< of the running jobs, or of all, or of the ways there are
  int gpus = 0;
  int nodes = 1;
  int percent = 100;  ///< of a GPU; below 100 only where gpus is 1
  int gigabytes = 0;  ///< of GPU memory
  int priority = 10;
  int limit = 0;  ///< minutes; 0 is none
  Preemption preemption = Preemption::None;
  int begin = 0;    ///< minutes from now; 0: none
  int group = 0;    ///< 0: none
  int retries = 0;  ///< more than 0: it is queued again when it is lost, too
  int after = 0;    ///< depends on the job so many before it; 0: on none
  int tasks = 0;    ///< of an array with a name; 0: one job
};
void showValue(const Act& act, std::ostream& out);  // NOLINT(readability-identifier-naming)

[[nodiscard]] JobSpec spec_of(const Act& act, WallTime now);

/// The engine, and around it a store that takes what it is told to save, a runner that does as it
/// is told, nodes, and a clock.
class World {
 public:
  explicit World(Order order);

  void act(const Act& act);
  /// An event at the present moment, and what follows from it.
  void tell(const Event& event);
  void pass(std::chrono::milliseconds time);
  /// Ends one of those who run and are not suspended; nothing if there is none.
  void end_one(int which);
  /// The daemon is killed, and the next one knows what was saved; or, for comparison, it hears of
  /// its nodes once more and lives on.
  void restart();
  void hear_of_nodes();
  /// Everything is well from now on: nodes are there, launches succeed, all is told.
  void heal();

  [[nodiscard]] std::vector<const Job*> jobs(Status status) const;
  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] Now now() const { return now_; }
  /// Why what was asked last was refused, or "".
  [[nodiscard]] const std::string& refused() const { return refused_; }
  /// What jobs hold of each device, counted here and not by the ledger. The first trouble, or "".
  [[nodiscard]] std::string held_twice() const;
  /// Every job and what is said of it, of drains and of nodes that fail: the same text for worlds
  /// that cannot be told apart.
  [[nodiscard]] std::string told() const;

 private:
  void take(const std::vector<Effect>& effects);
  void save(const Effect& effect);
  [[nodiscard]] Machine machine(const std::string& name) const;
  void idle(int which);
  void want(int which);
  void move(const Act& act);
  void arrive(const effect::Move& move);
  void halt(const effect::Suspend& suspend);
  void go_on(const effect::Resume& resume);
  void deliver(const Event& report);
  [[nodiscard]] Event answer_to_launch(const LaunchOrder& order) const;
  void change_nodes(int which);
  void configure(int which);

  Policy policy_;
  State state_;
  Now now_;
  std::map<std::string, Machine> machines_;    ///< that are there
  std::map<std::string, std::string> silent_;  ///< of them, those that do not answer, and why
  std::map<JobId, Job> saved_;
  std::vector<Drain> drains_;
  std::vector<NodeHealth> unhealthy_;
  int launches_ = 0;       ///< how they go; 0: well
  bool withheld_ = false;  ///< the runner tells nothing
  std::string refused_;
  std::vector<Event> reports_;
  /// As the runner knows it, of attempts that are under way.
  std::map<std::pair<JobId, int>, ParkedMemory> parked_;
  std::set<std::pair<JobId, int>> watching_;
};

}  // namespace gflow::engine::world

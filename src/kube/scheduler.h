// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "engine/step.h"
#include "kube/counts.h"
#include "kube/device_claims.h"
#include "kube/gang.h"
#include "kube/moves.h"
#include "kube/neighbours.h"
#include "kube/objects.h"
#include "kube/volumes.h"
#include "kube/want.h"

namespace gflow::kube {

struct ClusterFacts;

/// A pod that is to be bound.
struct Bind {
  std::string uid;
  std::string name_space;
  std::string name;
  std::string node;
  std::string allocation;  ///< for its annotation; "" if it has no GPU
  MonoTime seen{};         ///< when it could be decided on for the first time
  /// If there are some: these are to be written, and nothing else. It is bound by another decision.
  std::vector<ClaimStep> claims{};
  std::vector<DeviceStep> devices{};  ///< to be written before it is bound
};

/// A pod that has to make room.
struct Evict {
  std::string uid;
  std::string name_space;
  std::string name;
  std::string by;        ///< the namespace of who gets the room
  bool is_move = false;  ///< somebody asked for it, whatever their priorities
};

/// Why one is not evicted.
struct EvictionRefused {
  bool is_of_budget = false;
  std::string why;          ///< a sentence
  bool is_passing = false;  ///< nobody refused it: the API server did not do it, often
};

/// A pod of this scheduler that is on a node, and does not say which GPUs it has there, or says
/// what cannot be: as many as it asks for are given to nobody else.
struct Unnamed {
  std::string uid;
  std::string name_space;
  std::string name;
  std::string node;
  int gpus = 0;
};

/// What becomes of moves that somebody asked for, to be written before any of it is done.
struct MovesToTell {
  MovesAnswer answer;
  std::string version;  ///< of the ConfigMap that asked
  std::string pods;     ///< for whom, for people
};

/// What is to be done.
struct Decisions {
  std::vector<Bind> binds;
  std::vector<Evict> evictions;
  std::vector<Unnamed> unnamed;  ///< to be told of, each once
  std::optional<MovesToTell> moves{};
  std::string dropped_moves{};  ///< for whom room was being made, and nobody wants it any more
};

/// Why a pod waits, in a word of its condition.
constexpr const char* kUnschedulable = "Unschedulable";
constexpr const char* kLimitReached = "LimitReached";    ///< its namespace may hold no more
constexpr const char* kVolumesToCome = "VolumesToCome";  ///< it has its node

/// Why a pod waits.
struct Waiting {
  const Pod* pod = nullptr;
  std::string why;  ///< whole sentences
  /// For programs: Unschedulable has some of them make more nodes.
  const char* reason = kUnschedulable;
};

/// A cluster as events of the engine, and what the engine decides as bindings. Nothing is decided
/// here: order, fit and place are the engine's, which is told of each node what it has and which
/// pods it admits. All it knows it was told; a new one that is told the same knows the same. One
/// thread owns it.
///
/// What the engine has no notion of (taints, selectors, host ports, numbers of pods, further
/// resources) is a label of the machine for each class of pods that are alike in it: a machine has
/// it while it admits them, and jobs of the class ask for it. Where one decision of the engine puts
/// more on a node than that allows, the rest is taken back and decided again with the label gone.
/// Whether a machine admits a class may hang on pods elsewhere (Neighbours); and a pod that waits
/// may come into another class, as others come that keep it apart from themselves.
class Scheduler {
 public:
  /// `name`: the schedulerName of its pods.
  Scheduler(std::string name, engine::Policy policy);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void put(Node node);
  void node_gone(const std::string& uid);
  void put(Pod pod);
  void pod_gone(const std::string& uid);
  /// What a PodGroup says may be told before begin() and after.
  void put(PodGroup group);
  void group_gone(const std::string& uid);
  /// Whose PodGroups say when pods start that were told of, so far.
  [[nodiscard]] const std::set<GangSource>& group_sources() const { return sources_; }
  void put(const NameSpace& name_space);
  void name_space_gone(const std::string& uid);
  /// All namespaces were told. Pods that go by labels of namespaces wait until then.
  void know_name_spaces() { neighbours_.know_name_spaces(); }
  [[nodiscard]] bool knows_name_spaces() const { return neighbours_.knows_name_spaces(); }
  /// What pods with PersistentVolumeClaims go by; until all were told these wait.
  [[nodiscard]] Volumes& volumes() { return volumes_; }
  /// The same of pods with ResourceClaims.
  [[nodiscard]] DeviceClaims& devices() { return devices_; }

  /// Before begin(), for who shows what moves would give, and decides nothing: machines() and
  /// seen() say of these pods, too, that run, which nodes admit them.
  void class_running(std::set<std::string> uids) { classed_running_ = std::move(uids); }
  /// Once, when all there is was told: pods that are bound are taken as they say they are.
  void begin(Now now);
  /// How the network is divided, before begin() and after; what runs stays where it is.
  /// `are_unread`: what says so cannot be read, and nothing was known before.
  void divide(Levels levels, bool are_unread = false);
  /// How many GPUs the pods of a namespace hold at once; what runs goes on.
  void limit(engine::GpuQuota quota);
  /// Decides what was told since. Changes nothing where nothing was.
  [[nodiscard]] Decisions settle(Now now);
  /// A binding was accepted.
  void bound(const std::string& uid);
  /// What was to be of its claims was written.
  void claims_written(const std::string& uid);
  /// A binding was refused, or what was to be written of its claims: the pod waits again, for a
  /// while.
  void not_bound(const std::string& uid, const std::string& why);
  /// An eviction was refused. By a disruption budget: others make room in its place, for a while.
  /// For another reason, which is that of all: nobody is evicted for a while. One who moves as
  /// somebody asked is asked again; where it may not be evicted all its moves are given up.
  void not_evicted(const std::string& uid, const EvictionRefused& refusal);
  /// The moves that somebody wants made. Told before begin(), too, as whoever decided before left
  /// them; from then on those that were asked for before are not begun.
  void put(MovesRecord record);
  /// What was to be told of them is written; or they are not those that were asked for any more.
  void moves_told(const std::string& id, bool is_written);

  /// All pods of it that wait, with the reasons.
  [[nodiscard]] std::vector<Waiting> waiting(Now now);
  /// When settle() is to be called though nothing is told; empty: never.
  [[nodiscard]] std::optional<MonoTime> wake() const;
  [[nodiscard]] const engine::State& state() const { return state_; }
  [[nodiscard]] std::size_t nodes() const { return nodes_.size(); }
  [[nodiscard]] std::size_t pods() const { return pods_.size(); }
  /// As of the last settle(). Looks at each pod and each GPU.
  [[nodiscard]] Counts counts() const;
  /// A pod of it, and what the engine knows of it; null: it is not asked.
  struct Seen {
    const Pod* pod = nullptr;
    const Job* job = nullptr;
    bool has_class = false;  ///< the nodes that its job asks for are those that admit it
    engine::GangNumber gang = engine::kNoGang;
    std::size_t least = 0;  ///< of its gang, to start together
    engine::Nearness near{};
    bool is_held = false;  ///< its gang does not start, whatever room there is
  };
  /// All of them, for who shows them. Good until it is told more.
  [[nodiscard]] std::vector<Seen> seen() const;
  /// The nodes as the engine is told of them.
  [[nodiscard]] std::vector<Machine> machines();
  /// The first contradiction in words, or "": for tests, after settle().
  [[nodiscard]] std::string check() const;

 private:
  enum class Role {
    Ignored,   ///< not on a node, and not to be put on one by this
    New,       ///< to be told to the engine
    Refused,   ///< the engine sees no node that could ever take it, as they are
    Queued,    ///< waits in the engine
    Launched,  ///< its binding is under way
    Bound,     ///< holds in the engine what it has
    Foreign,   ///< on a node by somebody else, or without a word of what it has there: what it
               ///< holds is missing from the machine
  };
  /// Pods alike in what the engine does not count.
  struct Class {
    int id = 0;
    Wishes wishes;
    Amounts extras;
    std::vector<HostPort> ports;
    Bonds bonds;
    Storage storage;
    DeviceWish devices;
    std::size_t waiting = 0;  ///< pods of it that are not on a node, or of classed_running_
  };
  using ClassKey = std::tuple<Wishes, Amounts, std::vector<HostPort>, Bonds, Storage, DeviceWish>;
  struct PodEntry {
    Pod pod;
    Role role = Role::Ignored;
    JobId job{};                        ///< of Queued, Launched and Bound
    std::string node;                   ///< of Launched, Bound and Foreign
    std::string given;                  ///< gflow/allocation of these, whatever it says later
    std::vector<ClaimStep> claims{};    ///< of Launched, as long as these are not bound
    std::vector<DeviceStep> devices{};  ///< the same, of those that it is given with its node
    Class* pods_class = nullptr;        ///< of those not on a node, and of classed_running_
    bool is_stale = false;              ///< Launched, and not as it was decided on any more
    std::optional<gflow::Request> request{};
    std::optional<GangWish> gang{};  ///< of those that are counted there
    NearWish near{};                 ///< the same
    std::vector<std::string> shared{};
    std::string failed;              ///< why its last binding failed; "" if none did
    std::string trouble;             ///< why the engine is not asked, or what it refused
    std::optional<MonoTime> seen{};  ///< when it could be decided on for the first time
  };
  struct NodeEntry {
    Node node;
    Machine sent;
    bool was_sent = false;
    Amounts extras_used;
    std::vector<HostPort> ports_used;
  };
  struct Gang {
    engine::GangNumber number = engine::kNoGang;
    std::size_t least = 0;             ///< 0: nobody says
    std::set<std::string> pods;        ///< uids
    std::multiset<std::size_t> sizes;  ///< as these say
    std::map<NearWish, std::size_t> wishes;
    std::map<std::string, std::size_t> shared;  ///< labels in one value of which they have to be
    NearWish group_near{};  ///< as its PodGroup says, or said while there was one
    NearGang near;
  };
  struct Launched {
    JobId job;
    int attempt = 0;
  };

  // scheduler.cpp
  void step(const engine::Event& event);
  void take(const engine::effect::Launch& launch);
  void see(const engine::effect::Save& save);
  void lose(JobId id);
  void admit(PodEntry& entry);
  [[nodiscard]] bool is_mine(const Pod& pod) const;
  void submit_new();
  void take_back();
  void submit(PodEntry& entry);
  void update(PodEntry& entry, Pod pod);
  void replace(PodEntry& entry, Pod pod);
  void leave(PodEntry& entry);
  void end(PodEntry& entry);
  void tell_over(JobId id);
  void place(PodEntry& entry, const std::string& node, const std::string& given);
  void unplace(PodEntry& entry);
  [[nodiscard]] gflow::JobSpec spec_of(const PodEntry& entry);
  [[nodiscard]] bool may_be_evicted(const PodEntry& entry) const {
    return preempts_ && !entry.gang;
  }
  [[nodiscard]] bool begin_anew(PodEntry& entry);
  struct Steps {
    std::vector<ClaimStep> claims;
    std::vector<DeviceStep> devices;
  };
  // scheduler_claims.cpp
  [[nodiscard]] std::optional<Steps> steps_for(const PodEntry& entry, const NodeEntry& node);
  void hand_out();
  [[nodiscard]] Bind bind_of(const PodEntry& entry) const;
  void see_claims();
  // scheduler_gangs.cpp
  void join_gang(PodEntry& entry);
  void leave_gang(PodEntry& entry);
  void size_gang(const GangName& name, Gang& gang);
  [[nodiscard]] std::size_t least_of(const GangName& name, const Gang& gang) const;
  [[nodiscard]] NearGang near_of(const GangName& name, const Gang& gang) const;
  void use_labels(const Levels& labels);
  void drop_labels(const Levels& labels);
  void know_labels();
  [[nodiscard]] std::vector<std::string> labels_of_gangs() const;
  [[nodiscard]] std::string why_no_domain(const Gang& gang) const;
  void tell_gang(const PodEntry& entry);
  void take_back_gangs();
  void take_back(const Gang& gang);
  void take_back(PodEntry& entry);
  [[nodiscard]] bool is_broken(const Gang& gang) const;
  [[nodiscard]] std::string gang_trouble(const PodEntry& entry) const;
  [[nodiscard]] std::string with_gang(const PodEntry& entry) const;
  [[nodiscard]] std::string why_gang(const PodEntry& entry) const;
  [[nodiscard]] std::string why_at_home(const PodEntry& entry) const;
  // scheduler_classes.cpp
  [[nodiscard]] ClassKey key_of(const Pod& pod) const;
  Class& class_of(ClassKey key);
  [[nodiscard]] static std::vector<Label> selector_of(const Class& pods);
  void join_class(PodEntry& entry);
  void drop_class(PodEntry& entry);
  void sort_again();
  void sort_by_volumes();
  void sort_by_devices();
  void sort_relabelled();
  bool turn_class(Class& its, const ClassKey& key);
  void tell_classes();
  void judge_again();
  // scheduler_evict.cpp
  void take(const engine::effect::StopAttempt& stop);
  void drop_needless_evictions();
  void pass_pauses();
  [[nodiscard]] engine::event::Configure preempting(bool is_on);
  void note_deleted(const PodEntry& entry);
  [[nodiscard]] std::string why_evicting(const gflow::Queued& queued) const;
  [[nodiscard]] std::string why_evicting_again(const gflow::Queued& queued) const;
  // scheduler_moves.cpp
  struct Again {
    MonoTime at{};
    bool is_of_budget = false;  ///< which keeps it until then
  };
  /// Moves that somebody asked for.
  struct Moving {
    enum class Phase {
      Asked,     ///< not looked at yet
      ToBegin,   ///< that they are made is being written
      Begun,     ///< that is written
      UnderWay,  ///< who moves is evicted, and the room kept
      ToEnd,     ///< what became of them is being written
    };
    MovesAsked asked;                      ///< pods: of a gang those that are there by now
    std::size_t size = asked.pods.size();  ///< of these when it was asked for
    Phase phase = Phase::Asked;
    std::string trouble{};                 ///< why they are not to be made; "" if they are
    int priority = 0;                      ///< of who waits, from then on
    std::optional<GangName> gang{};        ///< of who waits, where several start together
    std::set<std::string> ran{};           ///< uids of others of it, that had started before
    std::chrono::minutes patience{};       ///< with which it waits for room,
    MonoTime until{};                      ///< which ends then
    std::map<std::string, Again> again{};  ///< uids of those whose eviction is asked for then
  };
  void resume_moves(Now now);
  void drop_moves();
  void see_moves();
  void begin_moves();
  void end_moves();
  [[nodiscard]] std::optional<MonoTime> wake_for_moves() const;
  void tell_moves(MovesState state, std::string why);
  [[nodiscard]] std::string why_not_moved() const;
  [[nodiscard]] std::string why_not_moved_now() const;
  [[nodiscard]] std::string why_no_room() const;
  [[nodiscard]] bool have_started() const;
  [[nodiscard]] bool has_started(const Gang& gang) const;
  [[nodiscard]] std::string why_given_up() const;
  [[nodiscard]] std::string who_stays() const;
  [[nodiscard]] ClusterFacts facts() const;
  [[nodiscard]] int priority_to_move() const;
  [[nodiscard]] const PodEntry* entry_of(const PodName& pod) const;
  [[nodiscard]] bool is_waiting(const PodName& pod) const;
  [[nodiscard]] bool is_to_move(const PodName& pod) const;
  [[nodiscard]] std::vector<JobId> jobs_of(const std::vector<PodName>& pods) const;
  [[nodiscard]] bool is_moving(const std::string& uid) const;
  [[nodiscard]] bool are_all_waiting() const;
  [[nodiscard]] bool are_one_gang() const;
  [[nodiscard]] bool follow_gang();
  void make_room();
  void keep_room();
  void keep_no_room();
  void evict_again();
  void not_moved(const std::string& uid, const EvictionRefused& refusal);
  // scheduler_check.cpp
  [[nodiscard]] std::string check_job(const PodEntry& entry) const;
  [[nodiscard]] std::string check_place(const PodEntry& entry) const;
  // scheduler_recover.cpp
  void adopt(PodEntry& entry, JobId job);
  void queue(PodEntry& entry, JobId job);
  void class_if_shown(PodEntry& entry);
  [[nodiscard]] std::optional<std::vector<int>> devices_held(const PodEntry& entry);
  void restore(PodEntry& entry, JobState state);
  void note_unnamed(const PodEntry& entry);
  [[nodiscard]] std::vector<PodEntry*> by_age();
  // scheduler_nodes.cpp
  void touch(const std::string& node) { dirty_.insert(node); }
  void touch_all();
  void judge_all();
  void flush_nodes();
  [[nodiscard]] std::vector<Machine> machines_changed();
  void count_extras(NodeEntry& node) const;
  [[nodiscard]] std::string lacks(const NodeEntry& node, const Class& pods) const;
  [[nodiscard]] std::vector<Label> admits(const NodeEntry& node) const;
  [[nodiscard]] std::vector<Label> labels_of(const NodeEntry& node) const;
  [[nodiscard]] Machine machine_of(const NodeEntry& node) const;
  void mark_foreign(Machine& machine) const;
  void mark_asked_for(Machine& machine, const Pod& pod) const;
  struct Asked {
    std::string prefix;  ///< of the devices, "nvidia.com/gpu/"; "" is any
    std::int64_t count = 0;
    std::int32_t held = 0;  ///< parts of a device that pods of this scheduler may have
  };
  [[nodiscard]] std::int64_t mark(Machine& machine, const Pod& pod, const Asked& asked) const;
  [[nodiscard]] std::int32_t parts_held(const std::string& node, int device) const;
  // scheduler_counts.cpp
  [[nodiscard]] WaitsFor queued_for(const PodEntry& entry) const;
  [[nodiscard]] WaitsFor refused_for(const PodEntry& entry) const;
  void count_gpus(const NodeEntry& node, Counts& counts) const;
  // scheduler_reasons.cpp
  struct Why {
    std::string text;
    bool has_room = false;  ///< some node has what it asks for
  };
  [[nodiscard]] Why why(const PodEntry& entry, std::optional<placement::Ledger>& whatif) const;
  [[nodiscard]] std::optional<Waiting> waiting_apart(const PodEntry& entry) const;
  [[nodiscard]] static std::string why_not_bound(const PodEntry& entry);
  [[nodiscard]] std::string beyond_limit(const PodEntry& entry) const;
  [[nodiscard]] std::string why_not_yet(const PodEntry& entry, bool has_room) const;

  std::string name_;
  bool preempts_;
  engine::Policy policy_;  ///< as the engine knows it when it has been told all of events_
  engine::State state_;
  Now now_{};
  bool has_begun_ = false;
  std::map<std::string, NodeEntry> nodes_;                ///< by name
  std::map<std::string, std::string> node_names_;         ///< by uid
  std::map<std::string, PodEntry> pods_;                  ///< by uid
  std::map<std::string, std::set<std::string>> on_node_;  ///< uids by the node's name
  std::map<JobId, std::string> by_job_;                   ///< uids
  std::map<ClassKey, Class> classes_;
  std::set<std::string> classed_running_;  ///< uids
  int next_class_ = 0;
  Levels levels_;  ///< of the network
  bool are_levels_unread_ = false;
  std::map<std::string, std::size_t> gang_labels_;  ///< by which gangs go, and how many
  std::set<std::string> labels_;                    ///< of nodes, that the engine is told of
  std::map<GangName, Gang> gangs_;                  ///< that have pods
  std::map<GangName, PodGroup> groups_;             ///< that are there
  std::map<std::string, GangName> group_names_;     ///< by uid
  std::set<GangSource> sources_;
  std::set<GangName> launched_gangs_;  ///< of pods that were given nodes, to be looked at
  engine::GangNumber last_gang_ = engine::kNoGang;
  std::set<std::string> dirty_;     ///< nodes to be looked at
  std::set<std::string> rejudged_;  ///< nodes of which only who is admitted may be another
  Neighbours neighbours_{rejudged_};
  Volumes volumes_;
  mutable DeviceClaims devices_;              ///< remembers what it judged
  std::map<std::string, MonoTime> claiming_;  ///< uids of pods that have their node, and whose
                                              ///< claims are to be bound until then
  bool has_volume_news_ = false;              ///< for these
  std::set<std::string> claimants_;           ///< uids of pods with claims that wait
  std::set<std::string> device_claimants_;    ///< and of those with ResourceClaims
  std::map<std::string, std::string> name_spaces_;  ///< their names by uid
  std::set<std::string> relabelled_;                ///< uids of pods whose class may be another
  std::set<std::string> reclassed_;    ///< and of those of which the engine may know another class
  std::vector<std::string> removed_;   ///< nodes to be told of as gone
  std::vector<engine::Event> events_;  ///< to be told to the engine
  std::vector<JobId> over_;            ///< jobs whose pods are gone, to be told after these
  std::vector<std::string> new_;       ///< uids
  std::vector<Launched> revoked_;      ///< to be taken back
  Decisions decided_;
  std::multimap<MonoTime, std::string> protected_;  ///< uids of pods not evicted until then
  std::vector<std::string> refused_;                ///< uids of those that become such
  std::optional<MonoTime> evicts_again_;            ///< empty: it does now, or never
  std::optional<Moving> moving_;
  std::string moves_version_;              ///< of the ConfigMap that asks for them
  std::optional<MovesRecord> left_;        ///< until begin(): what it says
  std::optional<MovesAnswer> last_moves_;  ///< what became of those before
  MonoTime looks_at_moves_{};              ///< not before that, as some were just refused
  std::set<MonoTime> looks_;  ///< when others may make room for one whose room was lost
  std::map<std::string, std::uint32_t> users_;                    ///< uid of each namespace
  std::map<std::tuple<std::string, int>, std::int32_t> adopted_;  ///< parts of each device
  std::optional<Error> answer_;
  bool retries_refused_ = false;
  std::optional<MonoTime> wake_;
};

}  // namespace gflow::kube

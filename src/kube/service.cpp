// SPDX-License-Identifier: Apache-2.0
#include "kube/service.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "base/text.h"
#include "kube/election.h"
#include "kube/fields.h"
#include "kube/follower.h"
#include "kube/health.h"
#include "kube/inbox.h"
#include "kube/limits.h"
#include "kube/log.h"
#include "kube/metrics.h"
#include "kube/scheduler.h"
#include "kube/status_pages.h"
#include "kube/status_server.h"
#include "kube/workers.h"
#include "kube/writer.h"
#include "os/clock.h"
#include "os/random.h"
#include "os/signals.h"

namespace gflow::kube {
namespace {

using namespace std::chrono_literals;

constexpr auto kTellAtMost = 200ms;  // how often reasons are looked at anew
constexpr auto kTellAgain = 1s;
constexpr int kKinds = 6;  ///< of objects that are waited for whatever pods say
constexpr int kStorageKinds = 3;
constexpr int kDeviceKinds = 3;

engine::Policy policy_of(const Options& options) {
  engine::Policy policy;
  policy.preempt = options.preempt;
  return policy;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

/// The one thread that decides, and all that tell it something.
class Service {
 public:
  Service(const Options& options,
          const Access& access,
          Inbox inbox,
          os::SignalWatch signals,
          std::ostream& log)
      : options_(options),
        access_(access),
        log_(log),
        metrics_(options.name),
        credentials_(access_),
        inbox_(std::move(inbox)),
        signals_(std::move(signals)),
        identity_(fmt::format("{}_{}_{}", host_name(), ::getpid(), os::random_hex(4))),
        scheduler_(options.name, policy_of(options)) {}

  Result<void> run() {
    GF_CHECK(show());
    GF_CHECK(greet());
    Election election(access_,
                      credentials_,
                      {options_.name_space, lease_name(), identity_, options_.lease},
                      log_,
                      health_);
    auto workers = std::make_unique<Workers>(access_, credentials_, options_.writers);
    Writer writer(*workers, election, log_, metrics_, identity_);
    writer_ = &writer;
    election.run([this] { won(); },
                 [this](const std::string& why) { inbox_.post([this, why] { lost_ = why; }); });
    const auto ended = loop();
    health_.not_ready("it ends");
    followers_.clear();
    workers.reset();  // before the writer that its tasks have
    if (writer.uncertain() > 0) election.keep();
    return ended;
  }

 private:
  [[nodiscard]] std::string lease_name() const { return name_in_cluster(options_.name); }
  [[nodiscard]] std::string limits_name() const { return limits_name_of(options_.name); }

  /// Before all else, so that whoever looks is told what it waits for.
  Result<void> show() {
    if (!options_.listen) return {};
    ListenAddress address = *options_.listen;
    status_ = GF_TRY(StatusServer::listen(address, status_pages(health_, metrics_)));
    log_.info(fmt::format("health and metrics at http://{}", to_text(address)));
    return {};
  }

  /// Whether that is a cluster, and knows who asks. One that is not there yet is waited for.
  Result<void> greet() {
    Api api(access_, credentials_);
    while (true) {
      const auto answer = api.ask({.path = "/version"});
      if (answer && answer->is_ok()) {
        const auto version = nlohmann::json::parse(answer->body, nullptr, false);
        log_.info(fmt::format("{} ({}), Kubernetes {}, pods of schedulerName {}",
                              access_.url(),
                              access_.source,
                              text(version, "gitVersion"),
                              options_.name));
        return {};
      }
      const Error error = answer ? error_of(*answer, "ask " + access_.url()) : answer.error();
      if (error.code != Code::Unreachable && error.code != Code::Timeout) {
        return std::unexpected(error);
      }
      health_.not_ready("it waits for the API server: " + error.message);
      log_.warn_again(error.message + "; trying again");
      if (is_ended(500ms)) return {};
    }
  }

  [[nodiscard]] bool is_ended(std::chrono::milliseconds wait) {
    pollfd came{signals_.fd(), POLLIN, 0};
    (void)::poll(&came, 1, static_cast<int>(wait.count()));
    if (signals_.next()) ends_ = true;
    return ends_;
  }

  void won() {
    health_.not_ready("it waits for the first lists of nodes, pods and limits");
    inbox_.post([this] { begin(); });
  }

  /// What it decides by is read only now: all that another decided before is in it.
  void begin() {
    log_.info(fmt::format("{} has the lease {}/{}", identity_, options_.name_space, lease_name()));
    won_ = os::now().mono;
    Listener nodes =
        listener(Watched::Nodes, [](Scheduler& to, const std::string& uid) { to.node_gone(uid); });
    nodes.put = [this](const nlohmann::json& object) {
      inbox_.post([this, node = node_of(object)] { scheduler_.put(node); });
    };
    Listener pods =
        listener(Watched::Pods, [](Scheduler& to, const std::string& uid) { to.pod_gone(uid); });
    pods.put = [this](const nlohmann::json& object) {
      inbox_.post([this, pod = pod_of(object)] { scheduler_.put(pod); });
    };
    Listener limits = listener(Watched::Limits, [](Scheduler&, const std::string&) {});
    limits.put = [this](const nlohmann::json& object) {
      inbox_.post([this, object] { take_limits(object); });
    };
    limits.gone = [this](const std::string& uid) {
      inbox_.post([this, uid] {
        if (uid == limits_uid_) take_limits({});  // another has its name by now otherwise
      });
    };
    follow({"/api/v1/namespaces", "", 500}, name_spaces());
    follow_storage();
    follow_devices();
    follow({fmt::format("/api/v1/namespaces/{}/configmaps", options_.name_space),
            "&fieldSelector=metadata.name%3D" + limits_name(),
            1},
           std::move(limits));
    if (options_.defrag) follow_moves();
    follow({"/api/v1/nodes", "", 500}, std::move(nodes));
    follow({"/api/v1/pods", std::string(kNotEnded), 500}, std::move(pods));
  }

  /// Those that were begun have to be known before anything is decided. Without the right to read
  /// them none are made until it is there.
  void follow_moves() {
    ++kinds_;
    Listener moves =
        listener(Watched::Limits, [](Scheduler& to, const std::string&) { to.put(MovesRecord{}); });
    moves.put = [this](const nlohmann::json& object) {
      inbox_.post([this, record = moves_record_of(object)] { scheduler_.put(record); });
    };
    moves.synced = [this] { inbox_.post([this] { pass_moves(); }); };
    moves.forbidden = [this] { inbox_.post([this] { pass_moves(); }); };
    follow({fmt::format("/api/v1/namespaces/{}/configmaps", options_.name_space),
            "&fieldSelector=metadata.name%3D" + moves_name_of(options_.name),
            1,
            kMovesRights},
           std::move(moves));
  }

  void pass_moves() {
    if (!std::exchange(passed_moves_, true)) synced();
  }

  /// Few pods go by their labels: nobody else waits until they can be read.
  Listener name_spaces() {
    Listener made = listener(Watched::NameSpaces, [](Scheduler& to, const std::string& uid) {
      to.name_space_gone(uid);
    });
    made.put = [this](const nlohmann::json& object) {
      inbox_.post([this, one = name_space_of(object)] { scheduler_.put(one); });
    };
    made.synced = [this] {
      inbox_.post([this] {
        scheduler_.know_name_spaces();
        pass_name_spaces();
      });
    };
    made.trouble = [this](const std::string& what) {
      inbox_.post([this, what] {
        const bool is_known = scheduler_.knows_name_spaces();
        log_.warn_again(is_known ? what : what + "; pods with a namespaceSelector wait for that");
        pass_name_spaces();
      });
    };
    return made;
  }

  /// Nor for what has to do with storage.
  void follow_storage() {
    const auto follow_kind = [this](const char* path, auto read, auto gone) {
      Listener made = listener(Watched::Storage, gone);
      made.put = [this, read](const nlohmann::json& object) {
        inbox_.post([this, one = read(object)] { scheduler_.volumes().put(one); });
      };
      made.synced = [this] {
        inbox_.post([this] {
          if (++synced_storage_ < kStorageKinds) return;
          scheduler_.volumes().know();
          pass_storage();
        });
      };
      made.trouble = [this](const std::string& what) {
        inbox_.post([this, what] {
          const bool is_known = scheduler_.volumes().is_known();
          log_.warn_again(is_known ? what : what + "; pods with a PersistentVolumeClaim wait");
          pass_storage();
        });
      };
      follow({path, "", 500}, std::move(made));
    };
    follow_kind("/api/v1/persistentvolumeclaims",
                volume_claim_of,
                [](Scheduler& to, const std::string& uid) { to.volumes().claim_gone(uid); });
    follow_kind("/api/v1/persistentvolumes", volume_of, [](Scheduler& to, const std::string& uid) {
      to.volumes().volume_gone(uid);
    });
    follow_kind("/apis/storage.k8s.io/v1/storageclasses",
                storage_class_of,
                [](Scheduler& to, const std::string& uid) { to.volumes().class_gone(uid); });
  }

  /// What ResourceClaims go by, from Kubernetes 1.34 on. Where it is not there, or may not be read,
  /// pods that have some are told so, and nobody else is.
  void follow_devices() {
    const auto follow_kind = [this](const char* kind, auto read, auto gone) {
      Listener made = listener(Watched::Devices, gone);
      made.put = [this, read](const nlohmann::json& object) {
        inbox_.post([this, one = read(object)] { scheduler_.devices().put(one); });
      };
      made.synced = [this] {
        inbox_.post([this] {
          if (++synced_devices_ < kDeviceKinds) return;
          scheduler_.devices().know();
          pass_devices();
        });
      };
      made.trouble = [this, kind](const std::string& what) {
        inbox_.post([this, kind, what] {
          log_.warn_again(what + "; pods with a ResourceClaim wait as long as that lasts");
          scheduler_.devices().cannot_read(kind, what);
          pass_devices();
        });
      };
      made.works = [this, kind] {
        inbox_.post([this, kind] { scheduler_.devices().can_read(kind); });
      };
      follow({fmt::format("/apis/resource.k8s.io/v1/{}", kind), "", 500}, std::move(made));
    };
    follow_kind("resourceslices", slice_of, [](Scheduler& to, const std::string& uid) {
      to.devices().slice_gone(uid);
    });
    follow_kind("deviceclasses", device_class_of, [](Scheduler& to, const std::string& uid) {
      to.devices().class_gone(uid);
    });
    follow_kind("resourceclaims", resource_claim_of, [](Scheduler& to, const std::string& uid) {
      to.devices().claim_gone(uid);
    });
  }

  void pass_devices() {
    if (!std::exchange(passed_devices_, true)) synced();
  }

  void pass_storage() {
    if (!std::exchange(passed_storage_, true)) synced();
  }

  /// They are known, or are not to be waited for.
  void pass_name_spaces() {
    if (!std::exchange(passed_name_spaces_, true)) synced();
  }

  /// Of a ConfigMap that is not there there is none.
  void take_limits(const nlohmann::json& config_map) {
    limits_uid_ = text(part(config_map, "metadata"), "uid");
    Limits limits = limits_of(config_map, quota_, levels_);
    const std::string source = fmt::format("configmap {}/{}", options_.name_space, limits_name());
    for (const std::string& mistake : limits.mistakes) {
      log_.warn(fmt::format("{}: {}", source, mistake));
    }
    if (levels_ != limits.levels) {
      levels_ = limits.levels;
      log_.info(fmt::format("{}: levels of the topology: {}", source, to_text(levels_)));
    }
    scheduler_.divide(levels_, limits.are_levels_unread);
    if (limits.quota == quota_ && limits.mistakes.empty()) return;
    quota_ = limits.quota;
    log_.info(fmt::format("{}: limits in force: {}", source, to_text(quota_)));
    scheduler_.limit(std::move(limits.quota));
  }

  /// Pods that start together may say so by a PodGroup: followed where one does.
  void follow_groups() {
    for (const GangSource source : scheduler_.group_sources()) {
      if (!followed_groups_.insert(source).second) continue;
      Listener groups = listener(Watched::Groups,
                                 [](Scheduler& to, const std::string& uid) { to.group_gone(uid); });
      groups.put = [this, source](const nlohmann::json& object) {
        inbox_.post([this, group = pod_group_of(object, source)] { scheduler_.put(group); });
      };
      groups.synced = [] {};
      if (!has_begun_) await(source, groups);
      follow({fmt::format("/apis/{}/podgroups", api_of(source)), "", 500}, std::move(groups));
    }
  }

  /// Pods that wait have their places by age only if what they wait for is known when it begins:
  /// that, or that it cannot be read.
  void await(GangSource source, Listener& groups) {
    ++kinds_;
    const auto pass = [this, source] {
      inbox_.post([this, source] {
        if (passed_groups_.insert(source).second) synced();
      });
    };
    groups.synced = pass;
    groups.trouble = [trouble = std::move(groups.trouble), pass](const std::string& what) {
      trouble(what);
      pass();
    };
  }

  void follow(Followed what, Listener listener) {
    followers_.push_back(
        std::make_unique<Follower>(access_, credentials_, std::move(what), std::move(listener)));
  }

  Listener listener(Watched resource, void (*gone)(Scheduler&, const std::string&)) {
    Listener made;
    made.gone = [this, gone](const std::string& uid) {
      inbox_.post([this, gone, uid] { gone(scheduler_, uid); });
    };
    made.synced = [this] { inbox_.post([this] { synced(); }); };
    made.trouble = [this](const std::string& what) {
      log_.warn_again(what);
      inbox_.post([this, what] {
        if (!has_begun_) health_.not_ready("it waits for a first list: " + what);
      });
    };
    made.restarts = [this, resource](WatchEnd how) { metrics_.watch_ended(resource, how); };
    return made;
  }

  void synced() {
    if (++synced_ < kinds_) return;
    follow_groups();
    if (synced_ < kinds_) return;
    has_begun_ = true;
    const Now now = os::now();
    scheduler_.begin(now);
    metrics_.leads();
    health_.ready();
    log_.info(fmt::format("{} nodes and {} pods, known {} ms after the lease",
                          scheduler_.nodes(),
                          scheduler_.pods(),
                          (now.mono - won_).count()));
  }

  Result<void> loop() {
    while (!ends_) {
      wait();
      if (is_ended(0ms)) break;
      const auto tasks = inbox_.take();
      for (const Inbox::Task& task : tasks) task();
      if (lost_) return fail(Code::WrongState, "the lease is lost: " + *lost_);
      if (!has_begun_) continue;
      follow_groups();
      const Now now = os::now();
      const std::uint64_t revision = scheduler_.state().revision();
      Decisions decisions = decide(now);
      for (Bind& bind : decisions.binds) write(std::move(bind));
      for (Evict& evict : decisions.evictions) write(std::move(evict));
      for (const Unnamed& one : decisions.unnamed) writer_->warn(one);
      if (!decisions.dropped_moves.empty()) {
        log_.info(fmt::format("moves for pod {}: taken back; the room is anybody's",
                              decisions.dropped_moves));
      }
      if (decisions.moves) write(*std::move(decisions.moves));
      if (!tasks.empty() || revision != scheduler_.state().revision()) has_news_ = true;
      tell(now);
    }
    log_.info("ended by a signal");
    return {};
  }

  Decisions decide(Now now) {
    const auto begun = std::chrono::steady_clock::now();
    Decisions decisions = scheduler_.settle(now);
    metrics_.decided(std::chrono::steady_clock::now() - begun);
    for (const std::string& what : scheduler_.devices().take_doubles()) log_.warn(what);
    return decisions;
  }

  /// For something to do.
  void wait() {
    std::optional<MonoTime> until = scheduler_.wake();
    if (has_news_ || teller_.has_more()) {
      const MonoTime then = told_ + (has_news_ ? kTellAtMost : kTellAgain);
      until = std::min(until.value_or(then), then);
    }
    int patience = -1;
    if (until && has_begun_) {
      patience =
          static_cast<int>(std::clamp<std::int64_t>((*until - os::now().mono).count(), 0, INT_MAX));
    }
    std::array<pollfd, 2> come = {{{inbox_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    health_.wait([&come, patience] { (void)::poll(come.data(), come.size(), patience); });
  }

  void write(Bind bind) {
    const auto accepted = bind.claims.empty() ? &Scheduler::bound : &Scheduler::claims_written;
    writer_->bind(std::move(bind), [this, accepted](Bound bound) {
      inbox_.post([this, accepted, bound = std::move(bound)] {
        scheduler_.devices().handed_back(bound.uid, bound.may_have_devices);
        if (bound.refused.empty()) {
          (scheduler_.*accepted)(bound.uid);
        } else {
          scheduler_.not_bound(bound.uid, bound.refused);
        }
      });
    });
  }

  void write(Evict evict) {
    const std::string uid = evict.uid;
    writer_->evict(std::move(evict), [this, uid](EvictionRefused refusal) {
      inbox_.post(
          [this, uid, refusal = std::move(refusal)] { scheduler_.not_evicted(uid, refusal); });
    });
  }

  void write(MovesToTell moves) {
    const std::string id = moves.answer.id;
    writer_->tell(std::move(moves),
                  config_map_path(options_.name_space, moves_name_of(options_.name)),
                  [this, id](bool is_written) {
                    inbox_.post([this, id, is_written] { scheduler_.moves_told(id, is_written); });
                  });
  }

  void tell(Now now) {
    const bool is_time = now.mono - told_ >= (has_news_ ? kTellAtMost : kTellAgain);
    if (!is_time || (!has_news_ && !teller_.has_more())) return;
    has_news_ = false;
    told_ = now.mono;
    metrics_.set(scheduler_.counts());
    for (const Waiting& one : teller_.due(scheduler_.waiting(now), now.mono)) {
      writer_->tell(one);
    }
  }

  const Options& options_;
  Access access_;
  Log log_;
  Health health_;
  Metrics metrics_;
  std::unique_ptr<StatusServer> status_;  ///< after what it shows
  Credentials credentials_;
  Inbox inbox_;
  os::SignalWatch signals_;
  std::string identity_;
  Scheduler scheduler_;
  Teller teller_;
  Writer* writer_ = nullptr;
  std::vector<std::unique_ptr<Follower>> followers_;
  MonoTime won_{};
  MonoTime told_{};
  int kinds_ = kKinds;  ///< of objects that are waited for
  int synced_ = 0;
  bool has_begun_ = false;
  std::set<GangSource> passed_groups_;
  std::set<GangSource> followed_groups_;
  bool passed_name_spaces_ = false;
  int synced_storage_ = 0;  ///< kinds
  bool passed_storage_ = false;
  int synced_devices_ = 0;  ///< kinds
  bool passed_devices_ = false;
  bool passed_moves_ = false;
  std::string limits_uid_;  ///< of the ConfigMap that is there; "" if none is
  engine::GpuQuota quota_;  ///< what it says
  Levels levels_;
  bool has_news_ = false;
  bool ends_ = false;
  std::optional<std::string> lost_;
};

}  // namespace

Result<void> serve(const Options& options, std::ostream& log) {
  const Access access = GF_TRY(find_access(options.access));
  constexpr std::array<int, 2> kEnds = {SIGTERM, SIGINT};
  os::SignalWatch signals = GF_TRY(os::SignalWatch::open(kEnds));
  Inbox inbox = GF_TRY(Inbox::open());
  Service service(options, access, std::move(inbox), std::move(signals), log);
  return service.run();
}

}  // namespace gflow::kube

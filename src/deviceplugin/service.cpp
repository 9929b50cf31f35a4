// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/service.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>
#include <vector>

#include "base/text.h"
#include "deviceplugin/kubelet.h"
#include "deviceplugin/node_devices.h"
#include "deviceplugin/node_record.h"
#include "deviceplugin/repeated.h"
#include "deviceplugin/resource_server.h"
#include "kube/log.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/replace_file.h"
#include "os/signals.h"

namespace gflow::deviceplugin {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 1s;             // after the kubelet and its socket
constexpr auto kReadAgain = 10s;       // devices
constexpr auto kPublishAgain = 1min;   // where somebody made the node anew
constexpr auto kTryAgain = 5s;         // what did not work
constexpr auto kCollect = 1min;        // what is of containers that are gone
constexpr std::size_t kTickets = 256;  // more containers than a node has

/// A file, to be told from another of its name.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  timespec changed{};

  friend bool operator==(const FileId& a, const FileId& b) {
    return a.device == b.device && a.inode == b.inode && a.changed.tv_sec == b.changed.tv_sec &&
           a.changed.tv_nsec == b.changed.tv_nsec;
  }
};

std::optional<FileId> find_file(const std::string& path) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  return FileId{facts.st_dev, facts.st_ino, facts.st_ctim};
}

/// "gpu-0" to "gpu-7": names of no device.
Tickets tickets(std::string_view name, std::size_t count) {
  Tickets made;
  for (std::size_t i = 0; i < count; ++i) made.insert(fmt::format("{}-{}", name, i));
  return made;
}

class Plugin {
 public:
  Plugin(const NodeOptions& options,
         NodeDevices devices,
         kube::Access access,
         os::SignalWatch signals,
         std::ostream& log)
      : options_(options),
        places_(options.places),
        devices_(std::move(devices)),
        record_(std::move(access)),
        signals_(std::move(signals)),
        log_(log),
        files_(options.places, kAllocations) {
    known_.node = options.node;
  }

  Result<void> run() {
    std::string trouble;
    GF_CHECK(files_.open(trouble));
    if (!trouble.empty()) {
      log_.warn(trouble + "; containers are not held to their part of a GPU");
    }
    const auto kept = GF_TRY(os::read_if_exists(inventory_path()));
    known_.inventory = kube::read_inventory(kept.value_or(std::string()));
    if (kept && known_.inventory.empty() && *kept != kube::inventory_text({})) {
      log_.warn(fmt::format("'{}' is damaged: GPUs are numbered anew", inventory_path()));
    }
    is_kept_ = kept.has_value();
    take_reading();
    log_.info(fmt::format("node {} of {} ({}), {} GPUs ({})",
                          options_.node,
                          record_.access().url(),
                          record_.access().source,
                          known_.machine.devices.size(),
                          known_.machine.source));
    if (!known_.machine.note.empty()) log_.warn(known_.machine.note);
    while (!signals_.next()) turn();
    return {};
  }

 private:
  [[nodiscard]] std::string inventory_path() const { return places_.state + "/devices"; }

  void turn() {
    watch_plugins();
    meet_kubelet();
    pass_changes();
    if (publish_.is_due()) publish();
    if (!servers_.empty() && collect_.is_due()) collect();
    if (read_.is_due()) read_devices();
    if (!is_kept_) keep_inventory();
    std::array<pollfd, 3> watched{
        {{signals_.fd(), POLLIN, 0}, {devices_.fd(), POLLIN, 0}, {changes_.get(), POLLIN, 0}}};
    (void)::poll(watched.data(), watched.size(), std::chrono::milliseconds(kLook).count());
    if (devices_.poll()) take_reading();
  }

  void read_devices() {
    if (!devices_.read_again()) return;
    log_.info(fmt::format("{} GPUs have come", devices_.machine().devices.size()));
    take_reading();
  }

  void take_reading() {
    std::vector<kube::ListedDevice> listed = list_devices(devices_.machine(), known_.inventory);
    const bool is_new = listed != known_.inventory;
    {
      const std::lock_guard lock(known_mutex_);
      known_ = {options_.node, devices_.machine(), std::move(listed)};
    }
    if (!is_new) return;
    is_kept_ = false;
    publish_.now();
    offer();
  }

  /// What an index means until the machine starts anew.
  void keep_inventory() {
    const auto was = os::read_if_exists(inventory_path());
    const auto kept =
        was ? os::replace_file(inventory_path(), kube::inventory_text(known_.inventory), *was)
            : Result<void>(std::unexpected(was.error()));
    is_kept_ = kept.has_value();
    if (!kept) log_.warn_again(kept.error().message + "; trying again");
  }

  // --- the kubelet ---

  /// A kubelet that starts again refuses pods whose container is to start anew before it knows of
  /// the plugin, so that is told at once. Anew each time, as the directory may be another one now.
  void watch_plugins() {
    if (!changes_.valid()) return;  // then it is looked at each kLook
    (void)::inotify_add_watch(
        changes_.get(), places_.plugins().c_str(), IN_CREATE | IN_DELETE | IN_MOVED_TO);
  }

  /// Most are this one's own; another that came meanwhile is seen at the next look.
  void pass_changes() {
    alignas(inotify_event) std::array<char, 4096> events;
    while (changes_.valid() && ::read(changes_.get(), events.data(), events.size()) > 0) {
    }
  }

  /// One that starts takes all sockets away that were there, and knows of no plugin.
  void meet_kubelet() {
    const auto there = find_file(places_.plugins() + "/kubelet.sock");
    if (!there) {
      if (met_) log_.warn("the kubelet is gone; waiting for it");
      met_.reset();
      servers_.clear();
      log_.warn_again(fmt::format("no kubelet at {}; waiting for it", places_.plugins()));
      return;
    }
    if (met_ == there && are_sockets_there()) return;
    met_.reset();
    servers_.clear();
    for (const std::string& resource : resources()) {
      const auto begun = begin(resource);
      if (begun) continue;
      log_.warn_again(begun.error().message);
      return;
    }
    met_ = there;
    publish_.now();
  }

  [[nodiscard]] bool are_sockets_there() const {
    return std::ranges::all_of(servers_ | std::views::keys, [this](const std::string& resource) {
      return os::exists(places_.plugins() + "/" + socket_name(resource));
    });
  }

  [[nodiscard]] static std::string socket_name(std::string resource) {
    std::ranges::replace(resource, '/', '-');
    return "gflow-" + resource + ".sock";
  }

  /// None where there are no GPUs.
  [[nodiscard]] std::vector<std::string> resources() const {
    if (known_.inventory.empty()) return {};
    std::vector<std::string> all{std::string(kAllocationResource)};
    for (const kube::ListedDevice& one : known_.inventory) {
      if (std::ranges::find(all, one.resource) == all.end()) all.push_back(one.resource);
    }
    return all;
  }

  Result<void> begin(const std::string& resource) {
    const std::string name = socket_name(resource);
    auto server = GF_TRY(ResourceServer::listen(
        places_.plugins() + "/" + name,
        resource,
        {.allocated = [this](const std::string& of,
                             const Tickets& these) { forget(key_of(of, these)); },
         .starts = [this](const std::string& of,
                          const Tickets& these) { return start(of, these); }}));
    offer(resource, *server);
    GF_CHECK(register_resource(places_.plugins(), name, resource));
    log_.info(fmt::format("{} is offered to the kubelet", resource));
    servers_[resource] = std::move(server);
    return {};
  }

  void offer() {
    for (const auto& [resource, server] : servers_) offer(resource, *server);
    if (servers_.size() != resources().size()) met_.reset();
  }

  void offer(const std::string& resource, ResourceServer& server) const {
    if (resource == kAllocationResource) return server.offer(tickets("allocation", kTickets));
    // Of one that broke, too: who has it keeps a ticket, and who gets another device needs one.
    const auto count =
        std::ranges::count(known_.inventory, resource, &kube::ListedDevice::resource);
    server.offer(tickets("gpu", static_cast<std::size_t>(count)));
  }

  // --- the cluster ---

  void publish() {
    const auto published = record_.publish(options_.node, kube::inventory_text(known_.inventory));
    if (published) return;
    log_.warn_again(published.error().message + "; trying again");
    publish_.after(kTryAgain);
  }

  // --- containers ---

  /// Who had the tickets before had something else, which a runtime must not find any more.
  void forget(const std::string& key) {
    const std::lock_guard lock(files_mutex_);
    files_.forget(key);
  }

  /// By threads of the servers.
  Result<void> start(const std::string& resource, const Tickets& these) {
    const auto container = GF_TRY(container_of(resource, these));
    const std::string name =
        fmt::format("{}, container {}", container.full_name(), container.container);
    const auto given = give(resource, these, container);
    if (given) {
      log_.info(fmt::format("{}: {}", name, *given));
      return {};
    }
    log_.warn(fmt::format("{}: {}", name, given.error().message));
    return with_context(given.error(), "gflow");
  }

  Result<ContainerName> container_of(const std::string& resource, const Tickets& these) const {
    const Holders all = GF_TRY(holders(places_.pod_resources()));
    const auto exact = all.find({resource, these});
    if (exact != all.end()) return exact->second;
    // What a container has that runs before the others is taken over by one of these.
    for (const auto& [held, container] : all) {
      if (held.first == resource && std::ranges::includes(held.second, these)) return container;
    }
    return fail(Code::NotFound,
                fmt::format("gflow: the kubelet does not say which pod this container is of: one "
                            "that ends before the others start has {} only if one of them has",
                            resource));
  }

  /// What it has, for the log.
  Result<std::string> give(const std::string& resource,
                           const Tickets& these,
                           const ContainerName& container) {
    const std::string key = key_of(resource, these);
    const auto uid = uid_of_holder(places_.plugins(), resource, these);
    const auto text = record_.pod(container.name_space, container.pod);
    const std::lock_guard files_lock(files_mutex_);
    if (!text) {
      const bool is_down =
          text.error().code == Code::Unreachable || text.error().code == Code::Timeout;
      if (is_down && uid && GF_TRY(files_.renew(key, container.as_owner(*uid)))) {
        return "what it had, as the API server does not answer";
      }
      return std::unexpected(text.error());
    }
    const auto pod = nlohmann::json::parse(*text, nullptr, false);
    const Known known = this->known();
    const Grant grant = GF_TRY(grant_of(pod, container, resource, known));
    if (uid && grant.owner.uid != *uid) {
      return fail(Code::WrongState, "the pod of that name was made anew by now");
    }
    GF_CHECK(files_.write(key, grant, known.machine));
    return text_of(grant);
  }

  Known known() const {
    const std::lock_guard lock(known_mutex_);
    return known_;
  }

  /// With the lock from before it is asked who has what: nothing is written for a container that
  /// the answer does not have.
  void collect() {
    const std::lock_guard lock(files_mutex_);
    const auto all = holders(places_.pod_resources());
    if (!all) return log_.warn_again(all.error().message);
    std::set<std::string> keys;
    for (const auto& [held, container] : *all) keys.insert(key_of(held.first, held.second));
    const auto kept = files_.keep_only(keys);
    if (!kept) log_.warn_again(kept.error().message);
  }

  const NodeOptions& options_;
  const Places places_;
  NodeDevices devices_;
  NodeRecord record_;
  os::SignalWatch signals_;
  os::Fd changes_{::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};  ///< of the directory of plugins
  kube::Log log_;
  mutable std::mutex known_mutex_;  ///< for what other threads read; one alone writes it
  Known known_;
  std::mutex files_mutex_;
  ContainerFiles files_;
  bool is_kept_ = false;       ///< the inventory, on disk
  std::optional<FileId> met_;  ///< the kubelet that knows of the servers
  Repeated publish_{kPublishAgain};
  Repeated collect_{kCollect};
  Repeated read_{kReadAgain};
  std::map<std::string, std::unique_ptr<ResourceServer>> servers_;  ///< by resource; end first
};

}  // namespace

Result<void> serve(const NodeOptions& options, std::ostream& log) {
  constexpr std::array kEnds = {SIGINT, SIGTERM, SIGHUP};
  auto signals = GF_TRY(os::SignalWatch::open(kEnds));
  auto devices = GF_TRY(NodeDevices::open(options.devices));
  auto access = GF_TRY(kube::find_access(options.access));
  Plugin plugin(options, std::move(devices), std::move(access), std::move(signals), log);
  return plugin.run();
}

}  // namespace gflow::deviceplugin

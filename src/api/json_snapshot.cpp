// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "api/device_fields.h"
#include "api/documents.h"
#include "api/snapshot.h"
#include "api/spec_fields.h"
#include "base/text.h"

namespace gflow::api {

namespace {

constexpr Range kSpeedRange = {0, 100'000'000};

}  // namespace

template <>
inline constexpr std::string_view kSchemaName<SnapshotNode> = "SnapshotNode";
template <class Io, Like<SnapshotNode> T>
void fields(Io& io, T& node) {
  io.field("name", node.name);
  io.field("labels", node.labels);
  io.field("source", node.source);
  io.field("cpus", node.cpus, kCpuRange);
  io.field("memory_bytes", node.memory, kMemoryRange);
  io.field("devices", node.devices);
  io.field("topology", node.topology);
  io.field("link_mb_per_second", node.link_speed, kSpeedRange);
  io.field("path_mb_per_second", node.path_speeds, kSpeedRange);
  io.field("unreachable", node.unreachable);
}

template <>
inline constexpr std::string_view kSchemaName<SnapshotHealth> = "SnapshotHealth";
template <class Io, Like<SnapshotHealth> T>
void fields(Io& io, T& health) {
  io.required("node", health.node);
  io.field("reason", health.reason);
  io.field("failures", health.failures, kCountRange);
  io.field("retry_at_lived_seconds", health.retry_at);
  io.field("trial", health.trial);
  io.field("tried", health.tried);
}

template <>
inline constexpr std::string_view kSchemaName<SnapshotJob> = "SnapshotJob";
template <class Io, Like<SnapshotJob> T>
void fields(Io& io, T& job) {
  io.required("id", job.id);
  io.required("user", job.spec.user);
  io.required("spec", job.spec);
  io.required("status", job.status);
  io.required("submitted", job.submitted);
  io.field("attempts", job.attempts, kCountRange);
  io.field("preemptions", job.preemptions, kCountRange);
  io.field("served_seconds", job.served);
  io.field("served_gpu_seconds", job.served_gpu_time);
  io.field("started", job.started);
  io.field("run_time_seconds", job.run_time);
  io.field("ended", job.ended);
  io.field("allocations", job.allocations);
  io.field("lived_seconds", job.lived);
  io.field("ended_lived_seconds", job.ended_lived);
  io.field("retries", job.retries, kCountRange);
  io.field("requeues", job.requeues, kCountRange);
  io.field("not_before_lived_seconds", job.not_before);
  io.field("preemption_lived_seconds", job.preemption_at);
  io.field("victims", job.victims);
  io.field("requeue_why", job.requeue_why);
  io.field("held_why", job.held_why);
  io.field("stop", job.stop);
  io.field("suspended", job.suspended);
  io.field("suspended_by_hand", job.suspended_by_hand);
  io.field("suspended_seconds", job.suspended_for);
  io.field("lends", job.lends);
  io.field("reason", job.reason);
  io.field("peak_gpu_memory_bytes", job.peak_gpu_memory, kMemoryRange);
}

template <class Io, Like<Snapshot> T>
void fields(Io& io, T& snapshot) {
  io.required("version", snapshot.version);
  io.required("taken", snapshot.taken);
  io.field("hostname", snapshot.hostname);
  io.required("next_id", snapshot.next_id);
  io.field("lived_seconds", snapshot.lived);
  io.field("policy", snapshot.policy);
  io.required("nodes", snapshot.nodes);
  io.field("drains", snapshot.drains);
  io.field("unhealthy", snapshot.unhealthy);
  io.required("jobs", snapshot.jobs);
  io.field("left_out", snapshot.left_out);
}

namespace {

/// The daemon's own node had no name before nodes were equal.
void name_nodes(Snapshot& snapshot) {
  const auto name = [own = node_name_of(snapshot.hostname)](std::string& node) {
    if (node.empty()) node = own;
  };
  for (SnapshotNode& node : snapshot.nodes) name(node.name);
  for (Drain& drain : snapshot.drains) name(drain.node);
  for (SnapshotJob& job : snapshot.jobs) {
    for (Allocation& part : job.allocations) name(part.node);
  }
}

}  // namespace

void describe_snapshot(Schemas& schemas) { schemas.document<Snapshot>("Snapshot", Form::Answer); }

std::string write(const Snapshot& snapshot) { return Writer::document("Snapshot", snapshot); }

Result<Snapshot> read_snapshot(std::string_view json) {
  auto snapshot = GF_TRY(Reader::kept<Snapshot>(json, "Snapshot"));
  if (snapshot.version != Snapshot::kVersion) {
    return fail(Code::Usage,
                fmt::format("a snapshot of version {}; this program reads version {}",
                            snapshot.version,
                            Snapshot::kVersion));
  }
  for (SnapshotJob& job : snapshot.jobs) put_in_order(job.spec.dependencies.jobs);
  name_nodes(snapshot);
  return snapshot;
}

namespace {

/// Gives each name a number, in the order they come.
class Names {
 public:
  explicit Names(std::string_view kind) : kind_(kind) {}

  std::string operator()(const std::string& name) {
    if (name.empty()) return name;
    const auto at = numbers_.try_emplace(name, numbers_.size() + 1).first;
    return fmt::format("{}{}", kind_, at->second);
  }
  [[nodiscard]] std::size_t number(const std::string& name) const { return numbers_.at(name); }

 private:
  std::string_view kind_;
  std::map<std::string, std::size_t> numbers_;
};

/// The users of "alice=8, bob=0", which a setting that decides names.
std::string with_names(Names& users, std::string_view pairs) {
  std::vector<std::string> renamed;
  for (const std::string_view pair : split(pairs, ',')) {
    const std::string_view one = trim(pair);
    const std::size_t equals = std::min(one.find('='), one.size());
    renamed.push_back(users(std::string(one.substr(0, equals))) + std::string(one.substr(equals)));
  }
  return join(renamed, ", ");
}

void hide_identity(Device& device) {
  device.uuid.clear();
  device.pci_address.clear();
  if (device.mig) device.mig->parent.clear();
  for (DeviceProcess& process : device.processes) process = {.memory = process.memory};
}

/// By what nobody is known by: a device that is there has its index, one that is cut its slices,
/// and of what is away nothing is told.
std::vector<Drain> nameless_drains(const Snapshot& snapshot) {
  std::vector<Drain> drains;
  for (const SnapshotNode& node : snapshot.nodes) {
    if (drain_of_node(snapshot.drains, node.name) != nullptr) drains.push_back({.node = node.name});
    for (const Device& device : node.devices) {
      if (drain_of_device(snapshot.drains, node.name, device) == nullptr) continue;
      drains.push_back({.node = node.name, .gpu = device.index});
    }
  }
  return drains;
}

}  // namespace

Snapshot anonymous(Snapshot snapshot,
                   const std::function<bool(std::string_view setting)>& names_users) {
  Names users("user");
  std::map<std::string_view, Names> names;
  for (SnapshotJob& job : snapshot.jobs) {
    JobSpec& spec = job.spec;
    const std::string user = spec.user.name;
    spec.user.name = users(user);
    spec.user.uid = user.empty() ? 0 : static_cast<std::uint32_t>(1000 + users.number(user));
    each_alias(spec, [&names](std::string& text, std::string_view alias) {
      text = names.try_emplace(alias, alias).first->second(text);
    });
  }
  for (Label& setting : snapshot.policy) {
    if (names_users(setting.key)) setting.value = with_names(users, setting.value);
  }
  Names nodes("node");
  for (SnapshotNode& node : snapshot.nodes) {
    node.name = nodes(node.name);
    if (node.unreachable) node.unreachable->clear();
  }
  for (SnapshotHealth& health : snapshot.unhealthy) {
    health.node = nodes(health.node);
    health.reason.clear();
  }
  for (Drain& drain : snapshot.drains) drain.node = nodes(drain.node);
  for (SnapshotJob& job : snapshot.jobs) {
    for (Allocation& part : job.allocations) part.node = nodes(part.node);
  }
  snapshot.hostname.clear();
  snapshot.drains = nameless_drains(snapshot);
  for (SnapshotNode& node : snapshot.nodes) {
    for (Device& device : node.devices) hide_identity(device);
  }
  return snapshot;
}

}  // namespace gflow::api

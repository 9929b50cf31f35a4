// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "api/types.h"

/// Values in which every field says something, so that one forgotten on the way is missed.
namespace gflow::api {

inline WallTime sample_time(std::int64_t seconds) {
  return WallTime(std::chrono::milliseconds(1'772'366'400'000 + seconds * 1000));
}

inline JobSpec sample_spec() {
  JobSpec spec;
  spec.name = "brave-river-1234";
  spec.project = "vision";
  spec.request = {.gpus = 2,
                  .share = Share{3333},
                  .gpu_memory = Memory::gib(8),
                  .mode = GpuMode::Fraction,
                  .vendor = "nvidia",
                  .models = {"A100", "H100"},
                  .cpus = 8,
                  .memory = Memory::gib(16),
                  .nodes = 2,
                  .selector = {{"zone", "a"}}};
  spec.preemption = Preemption::Requeue;
  spec.preempt_signal = 10;
  spec.priority = 77;
  spec.time_limit = std::chrono::hours(4);
  spec.grace = std::chrono::seconds(45);
  spec.begin = sample_time(60);
  spec.dependencies = {{JobId(3), JobId(5)}, DependencyMode::Any, false};
  spec.hold = true;
  spec.requeue = true;
  spec.max_retries = 3;
  spec.group = "sweep";
  spec.max_concurrent = 4;
  spec.command = "python train.py --note 'a \"quoted\" \\ line\n\ttab \x01' --\xc3\xa9t\xc3\xa9";
  spec.work_dir =
      "/home/alice/\xff"
      "bytes";
  return spec;
}

inline std::vector<BlockerView> sample_blockers() {
  BlockerView gpus;
  gpus.code = "Resources";
  gpus.text = "Resources: Need 4 GPUs, only 1 available";
  gpus.need = 4;
  gpus.available = 1;
  gpus.holders = {{JobId(5), "bob", {0, 1}, sample_time(3600)}, {JobId(6), "eve", {2}, {}}};
  gpus.unusable = {
      {3, "fallen off the bus", false, "", {}},
      {4, "", true, "fan", {{4711, "carol", "python", Memory::mib(642)}, {4712, "", "", {}}}}};
  BlockerView ahead;
  ahead.code = "Priority";
  ahead.text = "Priority";
  ahead.jobs = {JobId(6)};
  ahead.at = sample_time(7200);
  return {gpus, ahead};
}

inline JobView sample_job() {
  JobView job;
  job.id = JobId(42);
  job.spec = sample_spec();
  job.spec.user = {1000, "alice"};
  job.status = Status::Failed;
  job.submitted = sample_time(0);
  job.started = sample_time(10);
  job.ended = sample_time(100);
  job.run_time = std::chrono::seconds(90);
  job.node = "n1";
  job.node_list = "n1:1,2";
  job.gpu_indices = {0, 3};
  job.cpu_indices = {0, 1, 8};
  job.peers = {{"n2", {4, 5}, {2, 3}}};
  job.placed_because = "ring of 48 GB/s, the best of this machine";
  job.gpu_memory = {{"n1", 3, Memory::gib(20), Memory::gib(8)}};
  job.gpu_limits = {GpuLimit::Interposer, GpuLimit::None};
  job.gpu_isolation = GpuIsolation::Filter;
  job.parked = ParkedMemory{Parking::Parked, Memory::gib(6), ""};
  job.attempt = 2;
  job.retries = 1;
  job.pid = 4242;
  job.outcome = Outcome{EndReason::Signalled,
                        0,
                        9,
                        "killed",
                        std::chrono::milliseconds(90'250),
                        std::chrono::milliseconds(1007),
                        Memory::gib(3),
                        Memory::gib(20)};
  job.reason = "killed by signal 9 (SIGKILL)";
  job.blockers = sample_blockers();
  job.log_path = "/home/alice/.local/share/gflow/logs/42.log";
  return job;
}

inline Device sample_device() {
  Device device;
  device.index = 1;
  device.vendor = "nvidia";
  device.model = "NVIDIA GeForce RTX 3090";
  device.uuid = "GPU-1";
  device.pci_address = "0000:3b:00.0";
  device.numa_node = 1;
  device.memory_total = Memory::gib(24);
  device.memory_used = Memory::mib(642);
  device.utilization_percent = 99;
  device.temperature_celsius = -3;
  device.power_milliwatts = 349'500;
  device.power_limit_milliwatts = 350'000;
  device.processes = {{4711, "carol", "python", Memory::mib(642)}};
  device.trouble = "ECC";
  device.usable = false;
  return device;
}

inline MachineView sample_machine() {
  MachineView machine;
  NodeView node;
  node.name = "lab1";
  node.unreachable = "no heartbeat for 30 s";
  node.removed = "sold";
  node.drained = true;
  node.drained_reason = "move";
  node.source = "nvml";
  node.note = "one GPU is gone";
  node.driver = "550.54";
  node.labels = {{"zone", "a"}};
  node.cpus = 64;
  node.cpus_free = 60;
  node.memory = Memory::gib(512);
  node.memory_free = Memory::gib(500);
  DeviceView shared{.device = sample_device(),
                    .jobs = {JobId(5), JobId(7)},
                    .foreign = {{4711, "carol", "python", Memory::mib(642)}},
                    .model_short = "RTX3090",
                    .mode = GpuMode::TimeSlice,
                    .time_slices = {{JobId(5), Share{2500}}, {JobId(7), Share{7500}}},
                    .share_free = Share::whole(),
                    .memory_free = Memory::gib(3)};
  DeviceView drained;
  drained.drained = true;
  drained.drained_reason = "fan";
  node.devices = {shared, drained};
  node.drained_absent = {{"lab1", 3, "fell off the bus", "alice", "GPU-8f0b"}};
  machine.nodes = {node, NodeView{.name = "lab2"}};
  machine.unhealthy = {
      {"lab1", "create directory '/s/attempts/7.1': No space left on device", 2, sample_time(7200)},
      {"n2", "fork: Cannot allocate memory", 1, {}}};
  machine.cpus = 64;
  machine.cpus_free = 60;
  machine.memory = Memory::gib(512);
  machine.memory_free = Memory::gib(500);
  machine.running = {sample_job()};
  machine.queued = 1'000'000;
  machine.held = 2;
  machine.revision = 9'007'199'254'740'993;
  return machine;
}

inline DaemonView sample_daemon() {
  return {"0.1.0",
          77,
          sample_time(0),
          "system",
          "/run/gflow/gflowd.sock",
          "http://127.0.0.1:8000",
          "https://0.0.0.0:8443",
          "SHA256:9f86d081",
          sample_time(86400),
          "/var/lib/gflow",
          "/var/lib/gflow/logs/gpu_resource_manager.log",
          "/etc/gflow/gflow.toml",
          {"api.client_ca"},
          "sim:8xH100",
          "cgroup",
          "cgroup limit",
          "none",
          "cgroup kill",
          "cgroup freeze",
          "cpuset",
          "none: no interposer",
          "none: planned",
          "cgroup v2 device filter",
          "gflow-park",
          {"disk nearly full"},
          std::chrono::seconds(3600)};
}

inline SubmitRequest sample_submission() {
  SubmitRequest request;
  request.items.resize(2);
  SubmitRequest::Item& item = request.items[1];
  item.spec = sample_spec();
  item.payload.argv = {"run.sh", "", "a b", "\x80\xfe"};
  item.payload.script = std::string("#!/bin/sh\necho \0 nul\n", 21);
  item.payload.environment = {"PATH=/bin", "EMPTY=", "LATIN=\xe9"};
  item.payload.config_name = "gpu_config.yaml";
  item.payload.config = "a: 1\n";
  item.payload.umask = 077;
  item.depends_on_siblings = {0};
  request.items[0].spec.command = "true";
  request.items[0].spec.work_dir = "/";
  request.items[0].payload.argv = {"true"};
  return request;
}

inline UpdateRequest sample_update() {
  UpdateRequest update;
  update.jobs = {JobId(1), JobId(2)};
  JobChanges& changes = update.changes;
  changes.set(&JobSpec::name, "better");
  changes.set(&JobSpec::priority, 0);
  changes.set(&Request::gpus, 1);
  changes.set(&Request::cpus, 2);
  changes.set(&Request::memory, Memory::gib(1));
  changes.set(&JobSpec::preemption, Preemption::Requeue);
  changes.set(&JobSpec::preempt_signal, 10);
  changes.set(&JobSpec::time_limit, std::chrono::seconds(60));
  changes.set(&JobSpec::dependencies, Dependencies{{JobId(9)}, DependencyMode::All, true});
  changes.set(&JobSpec::max_retries, 1);
  changes.set(&JobSpec::max_concurrent, 2);
  return update;
}

}  // namespace gflow::api

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/scheduler.h"

namespace gflow::kube {

using Names = std::set<std::string>;

/// A scheduler and what the API server has, for tests of pods that start together: nodes and pods
/// that tests put there, and bindings that succeed at once. Each settling and each question is
/// `step` later than the one before.
class GangCluster : public testing::Test {
 protected:
  explicit GangCluster(std::chrono::seconds step_, std::string gpus_of_pod_)
      : step(step_), gpus_of_pod(std::move(gpus_of_pod_)) {}

  void put_node(const std::string& name,
                int gpus,
                int most_pods,
                std::map<std::string, std::string> labels = {}) {
    Node made;
    made.uid = made.name = name;
    made.labels = {labels.begin(), labels.end()};
    made.allocatable = {{"cpu", 8000},
                        {"memory", std::int64_t{32} << 40},
                        {"pods", most_pods * 1000},
                        {"nvidia.com/gpu", gpus * 1000}};
    nodes[name] = made;
    scheduler.put(made);
  }
  /// One that starts anew reads what is there.
  void tell_all(Scheduler& next) {
    for (const auto& [name, one] : nodes) next.put(one);
    for (const auto& [uid, one] : pods) next.put(one);
    next.begin(now());
  }
  Pod pod(const std::string& name) { return pod(name, gpus_of_pod); }
  Pod pod(const std::string& name, const std::string& gpu) {
    Pod made;
    made.uid = made.name = name;
    made.name_space = "default";
    made.scheduler = "gflow";
    made.gpu = gpu;
    made.created = WallTime(std::chrono::seconds(pods.size()));
    return made;
  }
  /// One of a gang that says itself how many start.
  Pod of_gang(const std::string& name, std::size_t size) {
    return of_gang(name, size, gpus_of_pod);
  }
  Pod of_gang(const std::string& name, std::size_t size, const std::string& gpu) {
    Pod made = pod(name, gpu);
    made.gang = GangWish{{GangSource::Pods, "default", "train"}, size};
    return made;
  }
  Names put(const Pod& pod) {
    pods[pod.uid] = pod;
    scheduler.put(pod);
    return settle();
  }
  Names gone(const std::string& name) {
    pods.erase(name);
    scheduler.pod_gone(name);
    return settle();
  }
  /// Who is bound, until nobody is.
  Names settle() {
    Names bound;
    for (auto binds = scheduler.settle(now()).binds; !binds.empty();
         binds = scheduler.settle(now()).binds) {
      for (const Bind& bind : binds) {
        bound.insert(bind.name);
        if (refused.erase(bind.uid) > 0) {
          scheduler.not_bound(bind.uid, "a conflict");
          continue;
        }
        Pod& there = pods.at(bind.uid);
        there.node = bind.node;
        there.allocation = bind.allocation;
        scheduler.bound(bind.uid);
        scheduler.put(there);
      }
    }
    EXPECT_EQ(scheduler.check(), "");
    return bound;
  }
  std::string why(const std::string& name) {
    for (const Waiting& one : scheduler.waiting(now())) {
      if (one.pod->name == name) return one.why;
    }
    return {};
  }
  Now now() {
    mono += step;
    return {WallTime(std::chrono::hours(24 * 365 * 50)) + mono, MonoTime(mono)};
  }

  std::chrono::seconds step;
  std::string gpus_of_pod;  ///< what a pod asks for of which a test says nothing
  Scheduler scheduler{"gflow", engine::Policy{}};
  std::map<std::string, Node> nodes;
  std::map<std::string, Pod> pods;
  Names refused;  ///< whose next binding is
  std::chrono::milliseconds mono{1000};
};

}  // namespace gflow::kube

// SPDX-License-Identifier: Apache-2.0
#include "core/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/at.h"
#include "base/text.h"

namespace gflow {
namespace {

constexpr int kMaxSpeed = 10'000'000;  // MB/s

// What NCCL and RCCL count for one direction (their graph/topo.h): x16 of a PCIe generation down to
// the host bridge, and beyond it what the processors of that time carry between them.
struct PcieGeneration {
  int bridge;
  int node;
  int sys;
};
constexpr PcieGeneration kGen3 = {12'000, 9'000, 9'000};
constexpr PcieGeneration kGen4 = {24'000, 16'000, 10'000};
constexpr PcieGeneration kGen5 = {48'000, 22'000, 22'000};
constexpr PcieGeneration kGen6 = {96'000, 40'000, 40'000};

struct ModelSpeeds {
  std::string_view words;  ///< of the driver's name, any of which tells the model
  int link;                ///< MB/s of one link, also of models that have none at all
  PcieGeneration pcie;
};
constexpr std::array kModels = std::to_array<ModelSpeeds>({
    {"P100", 18'000, kGen3},
    {"V100 8000 T4 2080 2080TI 1080 RTX8000 RTX6000 RTX5000", 20'000, kGen3},
    {"A100 A800 A30 PG509", 20'000, kGen4},
    {"3090 A6000 A5500 A5000 A4500 A40", 12'000, kGen4},
    {"H100 H200 H800 H20 GH200", 20'600, kGen5},
    {"B200 B300 B100", 40'100, kGen5},
    {"GB200 GB300", 40'100, kGen6},
    {"5090 5080 5070", 20'000, kGen5},
    {"MI50 MI60 VII", 24'000, kGen3},
    {"MI100", 24'000, kGen4},
    {"MI200 MI210 MI250 MI250X", 36'000, kGen4},
    {"MI300X MI300A MI308X MI325X MI350X MI355X", 48'000, kGen5},
});

LinkSpeeds speeds_of(int link, const PcieGeneration& pcie) {
  return {link, {0, pcie.bridge, pcie.bridge, pcie.bridge, pcie.node, pcie.sys}};
}

std::vector<std::string> model_words(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    const bool separates = c == ' ' || c == '-' || c == '_' || c == '/';
    if (separates) words.emplace_back();
    if (!separates) words.back() += ascii_upper(c);
  }
  return words;
}

Result<void> check_pair(const Topology& topology, int a, int b) {
  const int links = topology.links_between(a, b);
  if (links < 0 || links > kMaxLinks) {
    return fail(
        Code::Usage,
        fmt::format("GPU {} and GPU {}: {} links; 0 to {} are possible", a, b, links, kMaxLinks));
  }
  if ((a == b) != (topology.path_between(a, b) == PathClass::Same) || (a == b && links != 0)) {
    return fail(Code::Usage,
                fmt::format("GPU {} and GPU {}: X is for a GPU and itself, and only that", a, b));
  }
  if (links != topology.links_between(b, a) ||
      topology.path_between(a, b) != topology.path_between(b, a)) {
    return fail(Code::Usage,
                fmt::format("GPU {} and GPU {}: both directions have to be the same", a, b));
  }
  return {};
}

bool is_known(const Topology& before, const TopologyPlace& place) {
  return place.origin >= 0 && place.origin < before.gpus;
}

/// Both ways. REQUIRES: both are known.
void place_pair(const Topology& before,
                const std::vector<TopologyPlace>& places,
                std::pair<int, int> pair,
                Topology& after) {
  const TopologyPlace& one = places[at(pair.first)];
  const TopologyPlace& other = places[at(pair.second)];
  const bool is_same = one.origin == other.origin;
  const bool has_links = !is_same && !one.is_slice && !other.is_slice;
  for (const std::size_t there :
       {after.at(pair.first, pair.second), after.at(pair.second, pair.first)}) {
    after.paths[there] = is_same ? PathClass::Pix : before.path_between(one.origin, other.origin);
    after.links[there] = has_links ? before.links_between(one.origin, other.origin) : 0;
  }
}

}  // namespace

std::optional<PathClass> parse_path_class(std::string_view name) {
  for (std::size_t i = 0; i < kPathClasses; ++i) {
    const auto path = static_cast<PathClass>(i);
    if (path_class_name(path) == name) return path;
  }
  return std::nullopt;
}

int Topology::pair_speed(int a, int b) const {
  if (has_switch()) {
    const int least = std::min(switch_links[static_cast<std::size_t>(a)],
                               switch_links[static_cast<std::size_t>(b)]);
    if (least > 0) return least * speeds.link;
  }
  if (links_between(a, b) > 0) return links_between(a, b) * speeds.link;
  return speeds.path.at(static_cast<std::size_t>(path_between(a, b)));
}

Topology plain_topology(int gpus, PathClass path) {
  Topology made;
  made.gpus = gpus;
  const auto count = static_cast<std::size_t>(gpus);
  made.links.assign(count * count, 0);
  made.paths.assign(count * count, path);
  for (std::size_t gpu = 0; gpu < count; ++gpu) made.paths[gpu * count + gpu] = PathClass::Same;
  made.numa.assign(count, std::nullopt);
  return made;
}

Topology placed_topology(const Topology& before, const std::vector<TopologyPlace>& places) {
  if (before.gpus == 0 || places.empty() || places.size() > at(kMaxTopologyGpus)) return {};
  Topology after = plain_topology(static_cast<int>(places.size()), PathClass::Sys);
  after.link_name = before.link_name;
  after.speeds = before.speeds;
  after.cpus = before.cpus;
  if (before.has_switch()) after.switch_links.assign(places.size(), 0);
  if (before.numa.empty()) after.numa.clear();
  for (int gpu = 0; gpu < after.gpus; ++gpu) {
    const TopologyPlace& place = places[at(gpu)];
    if (!is_known(before, place)) continue;
    if (!before.numa.empty()) after.numa[at(gpu)] = before.numa[at(place.origin)];
    if (before.has_switch() && !place.is_slice) {
      after.switch_links[at(gpu)] = before.switch_links[at(place.origin)];
    }
    for (int other = 0; other < gpu; ++other) {
      if (is_known(before, places[at(other)])) place_pair(before, places, {gpu, other}, after);
    }
  }
  return after;
}

Result<void> check(const Topology& topology) {
  if (topology.gpus < 0 || topology.gpus > kMaxTopologyGpus) {
    return fail(Code::Usage, fmt::format("a machine has 0 to {} GPUs", kMaxTopologyGpus));
  }
  const auto count = static_cast<std::size_t>(topology.gpus);
  const bool square = topology.links.size() == count * count &&
                      topology.paths.size() == count * count && topology.numa.size() == count &&
                      (topology.switch_links.empty() || topology.switch_links.size() == count);
  if (!square) {
    return fail(Code::Usage, fmt::format("the matrix has not {} rows and columns", count));
  }
  for (int a = 0; a < topology.gpus; ++a) {
    for (int b = 0; b < topology.gpus; ++b) GF_CHECK(check_pair(topology, a, b));
  }
  const auto wrong_links = [](int links) { return links < 0 || links > kMaxLinks; };
  const auto wrong_speed = [](int speed) { return speed < 0 || speed > kMaxSpeed; };
  if (std::ranges::any_of(topology.switch_links, wrong_links)) {
    return fail(Code::Usage, fmt::format("0 to {} links to a switch are possible", kMaxLinks));
  }
  if (wrong_speed(topology.speeds.link) || std::ranges::any_of(topology.speeds.path, wrong_speed)) {
    return fail(Code::Usage, fmt::format("0 to {} MB/s are possible", kMaxSpeed));
  }
  return {};
}

LinkSpeeds speeds_of_model(std::string_view model) {
  const std::vector<std::string> words = model_words(model);
  for (const ModelSpeeds& known : kModels) {
    for (const std::string_view word : split(known.words, ' ')) {
      if (std::ranges::find(words, word) != words.end()) return speeds_of(known.link, known.pcie);
    }
  }
  return speeds_of(20'000, kGen4);
}

}  // namespace gflow

// SPDX-License-Identifier: Apache-2.0
#include "cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>

#include "core/catalogue.h"
#include "placement/policies/policies.h"
#include "placement/policies/utilisation.h"

namespace gflow::native {
namespace {

using placement::Demand;
using placement::DeviceFacts;
using placement::DeviceState;
using placement::NodeIndex;
using placement::Utilisation;
using placement::UtilisationPolicy;

// Of a device of which nothing is known it is believed that it has what is asked for.
constexpr Memory kUnknown = Memory::gib(std::int64_t{1} << 20);
constexpr double kMost = 1e12;  // of anything: a sum of millis stays an exact integer

std::int64_t millis(double amount) {
  return std::llround(std::clamp(std::isnan(amount) ? 0.0 : amount, 0.0, kMost) * 1000);
}

int permille(const Amount& amount) {
  return static_cast<int>(std::clamp(amount.used / amount.all, 0.0, 1.0) * placement::kPermille);
}

std::unique_ptr<placement::Policy> policy_of(std::string_view name) {
  if (name == "spread") return placement::make_spread({});
  if (name == "pack") return placement::make_pack({});
  if (name == "balanced") return placement::make_balanced({});
  throw std::invalid_argument(
      fmt::format("'{}' is no policy: write spread, pack or balanced", name));
}

Demand demand_of(const Need& need) {
  Demand demand{.gpus = need.gpus,
                .share = need.share,
                .gpu_memory = need.memory,
                .mode = need.share < Share::whole() ? GpuMode::Fraction : GpuMode::Whole};
  if (need.gpus == 0) return {};
  demand.vendor = need.resource;
  for (const std::string& model : need.models) demand.models.push_back(model_of(model));
  std::ranges::sort(demand.models);
  return demand;
}

}  // namespace

std::string model_of(std::string_view text) {
  std::string read = catalogue::read_model(text);
  return read.empty() ? catalogue::short_model("", text) : read;
}

NodeIndex Cluster::checked(int node) const {
  if (node >= 0 && node < ledger_.size()) return node;
  throw std::invalid_argument(fmt::format("there is no node {}", node));
}

int Cluster::add(const ClusterNode& node) {
  if (ledger_.find(node.name)) {
    throw std::invalid_argument(fmt::format("there are two nodes called {}", node.name));
  }
  placement::Node facts{.name = node.name, .milli_cpus = millis(node.cpus.all)};
  for (const Gpus& gpus : node.gpus) {
    const std::string model = catalogue::device_model("", gpus.model, gpus.memory);
    // A resource stands where the daemon has the vendor: it is what pods ask for.
    const DeviceFacts device{
        .vendor = gpus.resource, .model = model, .memory = gpus.memory.value_or(kUnknown)};
    facts.devices.insert(facts.devices.end(), static_cast<std::size_t>(gpus.count), device);
  }
  const NodeIndex index = ledger_.put(std::move(facts));
  host_memory_.push_back(node.memory_gb);
  const Demand cpus{.milli_cpus = std::min(millis(node.cpus.used), millis(node.cpus.all))};
  if (cpus.milli_cpus > 0) ledger_.take(ledger_.intern(cpus), {.node = index, .devices = {}});
  return index;
}

void Cluster::hold(NodeIndex node, int device, Share part) {
  const Demand demand{
      .gpus = 1, .share = part, .mode = part < Share::whole() ? GpuMode::Fraction : GpuMode::Whole};
  ledger_.take(ledger_.intern(demand), {.node = node, .devices = {device}});
}

void Cluster::use(int node, const std::string& resource, double gpus) {
  const NodeIndex index = checked(node);
  const auto& devices = ledger_.node(index).devices;
  // No more than it has, and a device more: what is beyond is not looked at.
  const double most = static_cast<double>(devices.size()) + 1;
  Share left{static_cast<std::int32_t>(
      std::llround(std::clamp(std::isnan(gpus) ? 0.0 : gpus, 0.0, most) * Share::kWholeParts))};
  for (std::size_t i = 0; i < devices.size() && left >= Share::whole(); ++i) {
    const DeviceState& state = ledger_.state(index).devices[i];
    if (state.users > 0 || (!resource.empty() && devices[i].vendor != resource)) continue;
    hold(index, static_cast<int>(i), Share::whole());
    left -= Share::whole();
  }
  if (left > Share{} && left < Share::whole()) use_part(index, resource, left);
}

/// Pods do not say on which device they are: on the one it fits best, so that the others stay
/// whole.
void Cluster::use_part(NodeIndex node, const std::string& resource, Share part) {
  const auto& devices = ledger_.node(node).devices;
  while (part > Share{}) {
    const auto& states = ledger_.state(node).devices;
    int best = -1;
    for (std::size_t i = 0; i < states.size(); ++i) {
      const bool other = !resource.empty() && devices[i].vendor != resource;
      if (other || states[i].free <= Share{}) continue;
      const Share free = states[i].free;
      const Share chosen = best < 0 ? Share{} : states[static_cast<std::size_t>(best)].free;
      const bool fits_better = free >= part && (chosen < part || free < chosen);
      if (best < 0 || fits_better || (chosen < part && free > chosen)) best = static_cast<int>(i);
    }
    if (best < 0) return;
    const Share taken = std::min(part, states[static_cast<std::size_t>(best)].free);
    hold(node, best, taken);
    part -= taken;
  }
}

bool Cluster::reserve(int node, int gpus, Memory each) {
  const NodeIndex index = checked(node);
  placement::Node facts = ledger_.node(index);
  const auto& states = ledger_.state(index).devices;
  std::vector<std::size_t> having;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].memory_free >= each) having.push_back(i);
  }
  if (static_cast<int>(having.size()) < gpus) return false;
  // Idle devices before others, then those with most left.
  std::ranges::stable_sort(having, [&states](std::size_t a, std::size_t b) {
    return std::pair(states[b].free, states[b].memory_free) <
           std::pair(states[a].free, states[a].memory_free);
  });
  for (int i = 0; i < gpus; ++i) {
    facts.devices[having[static_cast<std::size_t>(i)]].memory_lost += each;
  }
  ledger_.put(std::move(facts));
  return true;
}

int Cluster::idle(int node, std::string_view model, Memory memory) const {
  const NodeIndex index = checked(node);
  const std::string wanted = model.empty() ? "" : model_of(model);
  const auto& devices = ledger_.node(index).devices;
  const auto& states = ledger_.state(index).devices;
  int count = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool suits = wanted.empty() || catalogue::answers(wanted, devices[i].model);
    if (suits && states[i].users == 0 && states[i].memory_free >= memory) ++count;
  }
  return count;
}

std::vector<Ranked> Cluster::rank(const Need& need, std::string_view policy_name) {
  const auto made = policy_of(policy_name);
  const auto& policy = dynamic_cast<const UtilisationPolicy&>(*made);
  const placement::DemandIndex demand = ledger_.intern(demand_of(need));
  std::vector<Ranked> ranked;
  for (NodeIndex node = 0; node < ledger_.size(); ++node) {
    if (!ledger_.fits(demand, node)) continue;
    std::vector<std::uint8_t> fits;
    for (const DeviceState& device : ledger_.state(node).devices) {
      fits.push_back(ledger_.device_fits(demand, device) ? 1 : 0);
    }
    const placement::NodeView view = placement::view_of(ledger_, node);
    const placement::Question question{.ledger = ledger_,
                                       .index = demand,
                                       .demand = ledger_.demand(demand),
                                       .node = view,
                                       .fits = fits};
    Utilisation with_job = placement::utilisation_with(question, policy.devices(question));
    // Of the host where the node tells, as the document has it; else of the devices.
    const Amount& host = host_memory_[static_cast<std::size_t>(node)];
    if (host.all > 0) with_job.memory = permille(host);
    ranked.push_back({.node = node, .score = policy.score_of(with_job) / 1000.0});
  }
  std::ranges::stable_sort(ranked, std::greater{}, &Ranked::score);
  return ranked;
}

}  // namespace gflow::native

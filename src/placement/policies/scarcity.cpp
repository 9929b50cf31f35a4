// SPDX-License-Identifier: Apache-2.0
#include "placement/policies/scarcity.h"

#include <algorithm>
#include <cstddef>
#include <map>

namespace gflow::placement {
namespace {

/// Devices that jobs of one kind ask for together.
double asked_by(const DemandClass& kind) {
  const Demand& demand = kind.demand;
  const std::int32_t parts =
      demand.mode == GpuMode::Fraction ? demand.share.parts : Share::kWholeParts;
  return static_cast<double>(kind.count) * demand.gpus * parts / Share::kWholeParts;
}

double asked_by_all(const Profile& profile) {
  double sum = 0;
  for (const DemandClass& kind : profile.classes) sum += asked_by(kind);
  return sum;
}

/// Usable devices by model.
std::vector<double> devices_of(const Ledger& ledger) {
  std::vector<double> devices(static_cast<std::size_t>(ledger.models()), 0.0);
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    for (const DeviceState& device : ledger.state(node).devices) {
      if (device.usable) devices[static_cast<std::size_t>(device.model)] += 1;
    }
  }
  return devices;
}

double sum_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum;
}

/// Jobs bound to the same models, and where they are thought to go.
struct Bound {
  double asked = 0;
  std::vector<double> goes;  // devices, by model
};

/// How full models become if `asked` more is poured on those accepted, the emptiest first.
double level_of(const std::vector<double>& devices,
                const std::vector<double>& load,
                const std::vector<bool>& accepts,
                double asked) {
  double low = 0;
  double high = 0;
  for (std::size_t m = 0; m < devices.size(); ++m) {
    if (accepts[m] && devices[m] > 0) high = std::max(high, (load[m] + asked) / devices[m]);
  }
  for (int i = 0; i < 50; ++i) {
    const double level = (low + high) / 2;
    double poured = 0;
    for (std::size_t m = 0; m < devices.size(); ++m) {
      if (accepts[m]) poured += std::max(0.0, level * devices[m] - load[m]);
    }
    (poured < asked ? low : high) = level;
  }
  return high;
}

}  // namespace

std::vector<double> model_scarcity(const Ledger& ledger, const Profile& profile) {
  const std::vector<double> devices = devices_of(ledger);
  const double all = sum_of(devices);
  const double asked = asked_by_all(profile);
  std::vector<double> load(devices.size(), 0.0);
  if (asked == 0 || all == 0) return load;
  std::map<std::vector<bool>, Bound> kinds;
  for (const DemandClass& kind : profile.classes) {
    if (kind.demand.gpus == 0) continue;
    std::vector<bool> accepts;
    double reachable = 0;
    for (std::size_t m = 0; m < devices.size(); ++m) {
      accepts.push_back(ledger.accepts(kind.demand, static_cast<ModelIndex>(m)));
      if (accepts[m]) reachable += devices[m];
    }
    if (reachable == 0 || reachable == all) continue;
    kinds[accepts].asked += asked_by(kind) * all / asked;
  }
  for (auto& [accepts, bound] : kinds) bound.goes.assign(devices.size(), 0.0);
  constexpr int kRounds = 50;  // of taking one kind up and pouring it again
  for (int round = 0; round < kRounds; ++round) {
    for (auto& [accepts, bound] : kinds) {
      for (std::size_t m = 0; m < devices.size(); ++m) load[m] -= bound.goes[m];
      const double level = level_of(devices, load, accepts, bound.asked);
      for (std::size_t m = 0; m < devices.size(); ++m) {
        bound.goes[m] = accepts[m] ? std::max(0.0, level * devices[m] - load[m]) : 0.0;
        load[m] += bound.goes[m];
      }
    }
  }
  for (std::size_t m = 0; m < devices.size(); ++m) {
    load[m] = devices[m] > 0 ? load[m] / devices[m] : 0.0;
  }
  return load;
}

double cpu_scarcity(const Ledger& ledger, const Profile& profile) {
  double milli_cpus = 0;
  for (NodeIndex node = 0; node < ledger.size(); ++node) {
    milli_cpus += static_cast<double>(ledger.node(node).milli_cpus);
  }
  const double asked = asked_by_all(profile);
  if (asked == 0 || milli_cpus == 0) return 0;
  double wanted = 0;
  for (const DemandClass& kind : profile.classes) {
    wanted += static_cast<double>(kind.count) * static_cast<double>(kind.demand.milli_cpus);
  }
  return wanted / asked * sum_of(devices_of(ledger)) / milli_cpus;
}

}  // namespace gflow::placement

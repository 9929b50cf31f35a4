// SPDX-License-Identifier: Apache-2.0
#include "dra/service.h"

#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "deviceplugin/node_devices.h"
#include "deviceplugin/repeated.h"
#include "dra/claims.h"
#include "dra/periodic.h"
#include "dra/publisher.h"
#include "dra/slices.h"
#include "kube/log.h"
#include "os/signals.h"

namespace gflow::dra {
namespace {

using namespace std::chrono_literals;
using deviceplugin::NodeDevices;
using deviceplugin::NodeOptions;
using deviceplugin::Repeated;

constexpr auto kLook = 1s;           // after the sockets, and programs of containers that end
constexpr auto kReadAgain = 10s;     // devices
constexpr auto kPublishAgain = 10s;  // where a kubelet took the slices away, or it did not work
constexpr auto kCleanUp = 1min;
constexpr auto kDropGone = 1min;  // the kubelet tells of nearly all

class Driver {
 public:
  Driver(const NodeOptions& options,
         NodeDevices devices,
         kube::Access access,
         os::SignalWatch signals,
         std::ostream& log)
      : options_(options),
        devices_(std::move(devices)),
        record_(std::move(access)),
        signals_(std::move(signals)),
        log_(log),
        claims_(record_, options.places, log_),
        publisher_(record_, options.node) {}

  Result<void> run() {
    std::string trouble;
    GF_CHECK(claims_.open(trouble));
    if (!trouble.empty()) log_.warn(trouble + "; GPUs are given out whole");
    take_reading();
    const Machine& machine = devices_.machine();
    log_.info(fmt::format("node {} of {} ({}), {} GPUs ({})",
                          options_.node,
                          record_.access().url(),
                          record_.access().source,
                          machine.devices.size(),
                          machine.source));
    if (!machine.note.empty()) log_.warn(machine.note);
    publishing_ = std::make_unique<Periodic>(kPublishAgain, [this] { publish(); });
    dropping_ = std::make_unique<Periodic>(kDropGone, [this] { claims_.drop_gone(); });
    while (!signals_.next()) turn();
    return {};
  }

 private:
  void turn() {
    meet_kubelet();
    if (clean_up_.is_due()) claims_.clean_up();
    if (read_.is_due()) read_devices();
    claims_.tell_ended();
    std::array<pollfd, 2> watched{{{signals_.fd(), POLLIN, 0}, {devices_.fd(), POLLIN, 0}}};
    (void)::poll(watched.data(), watched.size(), std::chrono::milliseconds(kLook).count());
    if (devices_.poll()) take_reading();
  }

  void read_devices() {
    if (!devices_.read_again()) return;
    log_.info(fmt::format("{} GPUs have come", devices_.machine().devices.size()));
    take_reading();
  }

  void take_reading() {
    claims_.set_here({options_.node, devices_.machine()});
    auto told = slice_devices(devices_.machine(), claims_.can_hold());
    {
      const std::lock_guard lock(told_mutex_);
      if (told == told_) return;
      told_ = std::move(told);
    }
    if (publishing_) publishing_->now();
  }

  /// It comes to us: it watches the folder where the socket is.
  void meet_kubelet() {
    if (server_ && server_->is_found()) return;
    server_.reset();
    auto server = KubeletServer::listen(
        options_.places.kubelet,
        std::string(kDriver),
        {.prepare =
             [this](const ClaimName& name, const std::function<bool()>& is_given_up) {
               return claims_.prepare(name, is_given_up);
             },
         .unprepare = [this](const ClaimName& name) { return claims_.unprepare(name); },
         .health = [this] { return claims_.health(); },
         .registered = [this](const std::string& why) { note_registration(why); }});
    if (server) {
      server_ = *std::move(server);
    } else {
      log_.warn_again(server.error().message + "; trying again");
    }
  }

  void note_registration(const std::string& why) {
    if (why.empty()) {
      log_.info("the kubelet knows the driver");
      publishing_->now();  // one that has started took the slices away
      return;
    }
    log_.warn_again("the kubelet does not take the driver: " + why);
  }

  /// On its thread.
  void publish() {
    nlohmann::json devices;
    {
      const std::lock_guard lock(told_mutex_);
      devices = told_;
    }
    const auto published = publisher_.publish(devices);
    if (!published) log_.warn_again(published.error().message + "; trying again");
  }

  const NodeOptions& options_;
  NodeDevices devices_;
  ClusterRecord record_;
  os::SignalWatch signals_;
  kube::Log log_;
  Claims claims_;
  Publisher publisher_;
  std::mutex told_mutex_;
  nlohmann::json told_ = nlohmann::json::array();  ///< devices of the slices
  Repeated clean_up_{kCleanUp};
  Repeated read_{kReadAgain};
  std::unique_ptr<Periodic> publishing_;
  std::unique_ptr<Periodic> dropping_;
  std::unique_ptr<KubeletServer> server_;  ///< ends first
};

}  // namespace

Result<void> serve(const NodeOptions& options, std::ostream& log) {
  constexpr std::array kEnds = {SIGINT, SIGTERM, SIGHUP};
  auto signals = GF_TRY(os::SignalWatch::open(kEnds));
  auto devices = GF_TRY(NodeDevices::open(options.devices));
  auto access = GF_TRY(kube::find_access(options.access));
  Driver driver(options, std::move(devices), std::move(access), std::move(signals), log);
  return driver.run();
}

}  // namespace gflow::dra

// SPDX-License-Identifier: Apache-2.0
#include "dra/kubelet_server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/text.h"
#include "dra.grpc.pb.h"
#include "dra_health.grpc.pb.h"
#include "os/file.h"
#include "plugin_registration.grpc.pb.h"

namespace gflow::dra {
namespace {

namespace api = k8s::io::kubelet::pkg::apis::dra::v1;

/// The service of dra.proto, by the name under which kubelets of 1.34 and later know it.
constexpr const char* kService = "v1.DRAPlugin";

template <typename Claim>
ClaimName name_of(const Claim& claim) {
  return {claim.namespace_(), claim.name(), claim.uid()};
}

/// What a person reads in an event of his pod.
std::string text_of(const Error& error) { return printable("gflow: " + error.message); }

}  // namespace

class KubeletServer::ClaimService final : public api::DRAPlugin::Service {
 public:
  explicit ClaimService(const KubeletServer::Handlers& handlers) : handlers_(handlers) {}

  grpc::Status NodePrepareResources(grpc::ServerContext* context,
                                    const api::NodePrepareResourcesRequest* request,
                                    api::NodePrepareResourcesResponse* answer) override {
    for (const api::Claim& claim : request->claims()) {
      auto& its = (*answer->mutable_claims())[claim.uid()];
      const auto ready =
          handlers_.prepare(name_of(claim), [context] { return context->IsCancelled(); });
      if (!ready) {
        its.set_error(text_of(ready.error()));
        continue;
      }
      for (const ReadyDevice& one : *ready) put(one, *its.add_devices());
    }
    return grpc::Status::OK;
  }

  grpc::Status NodeUnprepareResources(grpc::ServerContext* /*context*/,
                                      const api::NodeUnprepareResourcesRequest* request,
                                      api::NodeUnprepareResourcesResponse* answer) override {
    for (const api::Claim& claim : request->claims()) {
      auto& its = (*answer->mutable_claims())[claim.uid()];
      const auto done = handlers_.unprepare(name_of(claim));
      if (!done) its.set_error(text_of(done.error()));
    }
    return grpc::Status::OK;
  }

 private:
  static void put(const ReadyDevice& one, api::Device& device) {
    device.add_request_names(one.request);
    device.set_pool_name(one.pool);
    device.set_device_name(one.device);
    if (!one.cdi.empty()) device.add_cdi_device_ids(one.cdi);
    if (!one.share_id.empty()) device.set_share_id(one.share_id);
  }

  const KubeletServer::Handlers& handlers_;
};

class KubeletServer::HealthService final : public v1alpha1::DRAResourceHealth::Service {
 public:
  explicit HealthService(const KubeletServer::Handlers& handlers) : handlers_(handlers) {}

  void end() {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    changed_.notify_all();
  }

  /// Where it changes, and again, as what was told is good for half a minute.
  grpc::Status NodeWatchResources(
      grpc::ServerContext* context,
      const v1alpha1::NodeWatchResourcesRequest* /*request*/,
      grpc::ServerWriter<v1alpha1::NodeWatchResourcesResponse>* writer) override {
    constexpr int kMostLooksBetween = 10;
    std::vector<DeviceHealth> told;
    for (int looks = 0; !context->IsCancelled(); ++looks) {
      std::vector<DeviceHealth> now = handlers_.health();
      if (looks % kMostLooksBetween == 0 || now != told) {
        if (!writer->Write(message_of(now))) break;  // may wait for who reads
        told = std::move(now);
      }
      std::unique_lock lock(mutex_);
      if (is_ended_) break;
      // One who went away is not told of by anything else.
      changed_.wait_for(lock, std::chrono::seconds(1));
    }
    return grpc::Status::OK;
  }

 private:
  static v1alpha1::NodeWatchResourcesResponse message_of(const std::vector<DeviceHealth>& devices) {
    v1alpha1::NodeWatchResourcesResponse all;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    for (const DeviceHealth& one : devices) {
      v1alpha1::DeviceHealth* const told = all.add_devices();
      told->mutable_device()->set_pool_name(one.pool);
      told->mutable_device()->set_device_name(one.device);
      told->set_health(one.is_healthy ? v1alpha1::HEALTHY : v1alpha1::UNHEALTHY);
      told->set_last_updated_time(std::chrono::duration_cast<std::chrono::seconds>(now).count());
      told->set_message(printable(one.message));
    }
    return all;
  }

  const KubeletServer::Handlers& handlers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_ended_ = false;
};

class KubeletServer::RegistrationService final : public pluginregistration::Registration::Service {
 public:
  RegistrationService(const KubeletServer::Handlers& handlers,
                      std::string driver,
                      std::string endpoint)
      : handlers_(handlers), driver_(std::move(driver)), endpoint_(std::move(endpoint)) {}

  grpc::Status GetInfo(grpc::ServerContext* /*context*/,
                       const pluginregistration::InfoRequest* /*request*/,
                       pluginregistration::PluginInfo* answer) override {
    answer->set_type("DRAPlugin");
    answer->set_name(driver_);
    answer->set_endpoint(endpoint_);
    answer->add_supported_versions(kService);
    return grpc::Status::OK;
  }

  grpc::Status NotifyRegistrationStatus(
      grpc::ServerContext* /*context*/,
      const pluginregistration::RegistrationStatus* request,
      pluginregistration::RegistrationStatusResponse* /*answer*/) override {
    const std::string why = request->error().empty() ? "no reason given" : request->error();
    handlers_.registered(request->plugin_registered() ? "" : printable(why));
    return grpc::Status::OK;
  }

 private:
  const KubeletServer::Handlers& handlers_;
  const std::string driver_;
  const std::string endpoint_;
};

namespace {

Result<std::unique_ptr<grpc::Server>> serve(const std::string& socket,
                                            const std::vector<grpc::Service*>& services) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix://" + socket, grpc::InsecureServerCredentials());
  for (grpc::Service* const one : services) builder.RegisterService(one);
  if (auto server = builder.BuildAndStart()) return server;
  return fail(Code::Failure, fmt::format("cannot listen at '{}'", printable(socket)));
}

}  // namespace

class KubeletServer::Running {
 public:
  Running(const std::string& kubelet, const std::string& driver, Handlers given)
      : handlers(std::move(given)),
        directory(fmt::format("{}/plugins/{}", kubelet, driver)),
        plugins(kubelet + "/plugins_registry"),
        claims_socket(directory + "/dra.sock"),
        registration_socket(fmt::format("{}/{}-reg.sock", plugins, driver)),
        claims(handlers),
        health(handlers),
        registration(handlers, driver, claims_socket) {}
  ~Running() {
    health.end();
    const auto end = std::chrono::system_clock::now() + std::chrono::seconds(1);
    if (registration_server) registration_server->Shutdown(end);
    if (claims_server) claims_server->Shutdown(end);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// The second socket comes last: a kubelet that finds it asks at the first.
  Result<void> begin() {
    GF_CHECK(os::make_directories(directory, 0750));
    GF_CHECK(os::make_directories(plugins, 0750));
    claims_server = GF_TRY(serve(claims_socket, {&claims, &health}));
    registration_server = GF_TRY(serve(registration_socket, {&registration}));
    return {};
  }

  const Handlers handlers;
  const std::string directory;
  const std::string plugins;
  const std::string claims_socket;
  const std::string registration_socket;
  ClaimService claims;
  HealthService health;
  RegistrationService registration;
  std::unique_ptr<grpc::Server> claims_server;
  std::unique_ptr<grpc::Server> registration_server;
};

KubeletServer::KubeletServer() = default;
KubeletServer::~KubeletServer() = default;

Result<std::unique_ptr<KubeletServer>> KubeletServer::listen(const std::string& kubelet,
                                                             const std::string& driver,
                                                             Handlers handlers) {
  auto made = std::make_unique<KubeletServer>();
  made->running_ = std::make_unique<Running>(kubelet, driver, std::move(handlers));
  GF_CHECK(made->running_->begin());
  return made;
}

bool KubeletServer::is_found() const {
  return os::exists(running_->claims_socket) && os::exists(running_->registration_socket);
}

}  // namespace gflow::dra

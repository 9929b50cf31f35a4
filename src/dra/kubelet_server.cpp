// SPDX-License-Identifier: Apache-2.0
#include "dra/kubelet_server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "base/text.h"
#include "dra.grpc.pb.h"
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

Result<std::unique_ptr<grpc::Server>> serve(const std::string& socket, grpc::Service& service) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix://" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
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
        registration(handlers, driver, claims_socket) {}
  ~Running() {
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
    claims_server = GF_TRY(serve(claims_socket, claims));
    registration_server = GF_TRY(serve(registration_socket, registration));
    return {};
  }

  const Handlers handlers;
  const std::string directory;
  const std::string plugins;
  const std::string claims_socket;
  const std::string registration_socket;
  ClaimService claims;
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

// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/resource_server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/text.h"
#include "device_plugin.grpc.pb.h"
#include "deviceplugin/cdi.h"

namespace gflow::deviceplugin {
namespace {

template <typename Ids>
Tickets tickets_of(const Ids& ids) {
  return {ids.begin(), ids.end()};
}

grpc::StatusCode status_code(Code code) {
  switch (code) {
    case Code::Unreachable:
    case Code::Timeout:
      return grpc::StatusCode::UNAVAILABLE;
    case Code::NotFound:
      return grpc::StatusCode::NOT_FOUND;
    default:
      return grpc::StatusCode::FAILED_PRECONDITION;
  }
}

}  // namespace

class ResourceServer::Service final : public v1beta1::DevicePlugin::Service {
 public:
  Service(std::string resource, Handlers handlers)
      : resource_(std::move(resource)), handlers_(std::move(handlers)) {}

  void offer(const Tickets& tickets) {
    const std::lock_guard lock(mutex_);
    if (version_ > 0 && tickets == tickets_) return;
    tickets_ = tickets;
    ++version_;
    changed_.notify_all();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    changed_.notify_all();
  }

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* /*context*/,
                                      const v1beta1::Empty* /*request*/,
                                      v1beta1::DevicePluginOptions* answer) override {
    answer->set_pre_start_required(true);
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(grpc::ServerContext* context,
                            const v1beta1::Empty* /*request*/,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    std::uint64_t told = 0;
    while (true) {
      v1beta1::ListAndWatchResponse list;
      {
        std::unique_lock lock(mutex_);
        // One who went away is not told of by anything else.
        while (!is_ended_ && told == version_ && !context->IsCancelled()) {
          changed_.wait_for(lock, std::chrono::seconds(1));
        }
        if (is_ended_ || context->IsCancelled()) return grpc::Status::OK;
        told = version_;
        for (const std::string& one : tickets_) {
          v1beta1::Device* const device = list.add_devices();
          device->set_id(one);
          device->set_health("Healthy");  // it is none that could break
        }
      }
      if (!writer->Write(list)) return grpc::Status::OK;
    }
  }

  grpc::Status Allocate(grpc::ServerContext* /*context*/,
                        const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* answer) override {
    for (const auto& container : request->container_requests()) {
      const Tickets tickets = tickets_of(container.devices_ids());
      handlers_.allocated(resource_, tickets);
      const std::string key = key_of(resource_, tickets);
      answer->add_container_responses()->add_cdi_devices()->set_name(kAllocations.device(key));
    }
    return grpc::Status::OK;
  }

  grpc::Status PreStartContainer(grpc::ServerContext* /*context*/,
                                 const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse* /*answer*/) override {
    const auto started = handlers_.starts(resource_, tickets_of(request->devices_ids()));
    if (started) return grpc::Status::OK;
    return {status_code(started.error().code), printable(started.error().message)};
  }

 private:
  const std::string resource_;
  const Handlers handlers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Tickets tickets_;
  std::uint64_t version_ = 0;
  bool is_ended_ = false;
};

class ResourceServer::Running {
 public:
  Running(const std::string& resource, Handlers handlers)
      : service(resource, std::move(handlers)) {}
  ~Running() {
    if (!server) return;
    service.end();
    server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  Service service;
  std::unique_ptr<grpc::Server> server;
};

ResourceServer::ResourceServer() = default;
ResourceServer::~ResourceServer() = default;

Result<std::unique_ptr<ResourceServer>> ResourceServer::listen(const std::string& socket,
                                                               const std::string& resource,
                                                               Handlers handlers) {
  auto made = std::make_unique<ResourceServer>();
  made->running_ = std::make_unique<Running>(resource, std::move(handlers));
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix://" + socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&made->running_->service);
  made->running_->server = builder.BuildAndStart();
  if (!made->running_->server) {
    return fail(Code::Failure, fmt::format("cannot listen at '{}'", printable(socket)));
  }
  return made;
}

void ResourceServer::offer(const Tickets& tickets) { running_->service.offer(tickets); }

}  // namespace gflow::deviceplugin

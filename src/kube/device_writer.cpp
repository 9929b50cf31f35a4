// SPDX-License-Identifier: Apache-2.0
#include "kube/device_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "kube/fields.h"
#include "os/random.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;
using How = DevicesWritten::How;

constexpr std::string_view kFinalizer = "resource.kubernetes.io/delete-protection";
constexpr int kMostConflicts = 5;

std::string claim_path(const Bind& bind, const DeviceStep& step) {
  return fmt::format(
      "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}", bind.name_space, step.name);
}

std::string text_of_json(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// "8-4-4-4-12", at random.
std::string made_uuid() {
  std::string hex = os::random_hex(16);
  for (const std::size_t at : {20U, 16U, 12U, 8U}) hex.insert(at, "-");
  return hex;
}

Json allocation_json(const DeviceStep& step) {
  Json allocation = Json::parse(step.allocation.text, nullptr, false);
  for (Json& result : allocation["devices"]["results"]) {
    if (result.contains("shareID")) result["shareID"] = made_uuid();
  }
  return allocation;
}

/// Whether the same devices are given to it.
bool is_same_allocation(const Json& allocation, const DeviceStep& step) {
  const auto there = devices_in(allocation);
  return std::ranges::equal(there, step.allocation.devices, [](const auto& a, const auto& b) {
    return a.id == b.id && a.request == b.request;
  });
}

bool is_reserved_for(const Json& claim, const std::string& pod) {
  const Json& consumers = part(part(claim, "status"), "reservedFor");
  return std::ranges::any_of(consumers,
                             [&pod](const Json& one) { return text(one, "uid") == pod; });
}

/// One claim, as it was read last.
class ClaimWriter {
 public:
  ClaimWriter(const Asks& ask, const Bind& bind, const DeviceStep& step, const WriteLease& lease)
      : ask_(ask), bind_(bind), step_(step), lease_(lease) {}

  DevicesWritten write() {
    for (int conflicts = 0; conflicts < kMostConflicts; ++conflicts) {
      if (const auto end = once()) return *end;
    }
    return refused(fmt::format("resourceclaim {} is changed all the time", step_.name));
  }

 private:
  /// Nothing: somebody else changed it meanwhile.
  std::optional<DevicesWritten> once() {
    if (auto end = read()) return end;
    const Json& status = part(claim_, "status");
    const Json& allocation = part(status, "allocation");
    if (allocation.is_object() && !is_same_allocation(allocation, step_)) {
      return refused(fmt::format("resourceclaim {} was given other devices", step_.name));
    }
    if (!allocation.is_object() && step_.allocation.text.empty()) {
      return refused(fmt::format("resourceclaim {} was given back", step_.name));
    }
    if (allocation.is_object() && is_reserved_for(claim_, bind_.uid)) return done();
    if (part(status, "reservedFor").size() >= kMostConsumers) {
      return refused(fmt::format("resourceclaim {} is used by as many pods as may", step_.name));
    }
    if (!allocation.is_object()) {
      auto end = protect();
      if (end || is_conflict_) return end;
      claim_["status"]["allocation"] = allocation_json(step_);
    }
    Json& reserved = claim_["status"]["reservedFor"];
    if (!reserved.is_array()) reserved = Json::array();
    reserved.push_back({{"resource", "pods"}, {"name", bind_.name}, {"uid", bind_.uid}});
    may_be_written_ = true;
    auto end = put("/status");
    return end || is_conflict_ ? end : done();
  }

  std::optional<DevicesWritten> read() {
    is_conflict_ = false;
    const auto answer = ask_({.path = claim_path(bind_, step_), .limit = lease_.limit});
    if (!answer) return unknown(answer.error().message);
    if (answer->is_passing()) return unknown(error_text(*answer, "read"));
    if (!answer->is_ok()) return refused(error_text(*answer, "read"));
    claim_ = Json::parse(answer->body, nullptr, false);
    const Json& metadata = part(claim_, "metadata");
    if (text(metadata, "uid") != step_.uid) {
      return refused(fmt::format("resourceclaim {} is another by now", step_.name));
    }
    if (metadata.contains("deletionTimestamp")) {
      return refused(fmt::format("resourceclaim {} is being deleted", step_.name));
    }
    return std::nullopt;
  }

  /// From its deletion, as long as it has devices.
  std::optional<DevicesWritten> protect() {
    Json& finalizers = claim_["metadata"]["finalizers"];
    if (!finalizers.is_array()) finalizers = Json::array();
    const Json ours = std::string(kFinalizer);
    if (std::ranges::find(finalizers, ours) != finalizers.end()) return std::nullopt;
    finalizers.push_back(ours);
    return put("");
  }

  /// What was written is what it is from then on.
  std::optional<DevicesWritten> put(const char* what) {
    if (!lease_.may_write()) return DevicesWritten{How::Ended, "", may_be_written_};
    const auto answer = ask_({.method = "PUT",
                              .path = claim_path(bind_, step_) + what,
                              .body = text_of_json(claim_),
                              .limit = lease_.limit});
    if (!answer) return unknown(answer.error().message);
    if (answer->is_passing()) return unknown(error_text(*answer, "allocate"));
    if (answer->status == 409) {
      is_conflict_ = true;
      return std::nullopt;
    }
    if (!answer->is_ok()) return refused(error_text(*answer, "allocate"));
    claim_ = Json::parse(answer->body, nullptr, false);
    return std::nullopt;
  }

  [[nodiscard]] std::string error_text(const Answer& answer, const char* doing) const {
    return error_of(answer,
                    fmt::format("{} resourceclaim {}/{}", doing, bind_.name_space, step_.name))
        .message;
  }
  [[nodiscard]] DevicesWritten done() const { return {How::All, "", true}; }
  [[nodiscard]] DevicesWritten refused(std::string why) const {
    return {How::Refused, std::move(why), may_be_written_};
  }
  [[nodiscard]] DevicesWritten unknown(std::string why) const {
    return {How::Unknown, std::move(why), may_be_written_};
  }

  const Asks& ask_;
  const Bind& bind_;
  const DeviceStep& step_;
  const WriteLease& lease_;
  Json claim_;
  bool is_conflict_ = false;
  bool may_be_written_ = false;
};

/// A request of giving back; whether it was done, and what the claim is by then.
DevicesWritten asked_to_give_back(const Asks& ask,
                                  const Request& request,
                                  const WriteLease& lease,
                                  Json& claim) {
  claim = nullptr;
  if (!lease.may_write()) return {How::Ended};
  const auto answer = ask(request);
  if (!answer) return {How::Unknown, answer.error().message};
  if (answer->status == 404 || answer->status == 409) return {How::All};  // somebody else's by now
  if (!answer->is_ok()) {
    return {answer->is_passing() ? How::Unknown : How::Refused,
            error_of(*answer, "give back devices: " + request.path).message};
  }
  claim = Json::parse(answer->body, nullptr, false);
  return {How::All};
}

DevicesWritten give_back_one(const Asks& ask,
                             const Bind& bind,
                             const DeviceStep& step,
                             const WriteLease& lease) {
  const Json gone = {{"$patch", "delete"}, {"uid", bind.uid}};
  const Json patch = {{"metadata", {{"uid", step.uid}}},
                      {"status", {{"reservedFor", Json::array({gone})}}}};
  Json claim;
  DevicesWritten done =
      asked_to_give_back(ask,
                         {.method = "PATCH",
                          .path = claim_path(bind, step) + "/status",
                          .body = text_of_json(patch),
                          .content_type = "application/strategic-merge-patch+json",
                          .limit = lease.limit},
                         lease,
                         claim);
  const Json& status = part(claim, "status");
  const bool is_had =
      !part(status, "reservedFor").empty() || !part(status, "allocation").is_object();
  if (done.how != How::All || is_had) return done;
  // Nobody has it any more: what it was given is free. One that somebody has by now is a conflict.
  claim["status"].erase("allocation");
  return asked_to_give_back(ask,
                            {.method = "PUT",
                             .path = claim_path(bind, step) + "/status",
                             .body = text_of_json(claim),
                             .limit = lease.limit},
                            lease,
                            claim);
}

}  // namespace

DevicesWritten write_devices(const Asks& ask, const Bind& bind, const WriteLease& lease) {
  bool may_be_written = false;
  for (const DeviceStep& step : bind.devices) {
    DevicesWritten one = ClaimWriter(ask, bind, step, lease).write();
    may_be_written = may_be_written || one.may_be_written;
    if (one.how == How::All) continue;
    one.may_be_written = may_be_written;
    return one;
  }
  return {How::All, "", may_be_written};
}

DevicesWritten give_back_devices(const Asks& ask, const Bind& bind, const WriteLease& lease) {
  for (const DeviceStep& step : bind.devices) {
    DevicesWritten one = give_back_one(ask, bind, step, lease);
    if (one.how != How::All) return one;
  }
  return {How::All};
}

}  // namespace gflow::kube

// SPDX-License-Identifier: Apache-2.0
#include "api/device_fields.h"
#include "api/documents.h"
#include "api/snapshot.h"
#include "core/job_description.h"

namespace gflow::api {

namespace {

struct Drains {
  std::vector<DrainView> drains;
};

}  // namespace

template <class Io, Like<DrainRequest> T>
void fields(Io& io, T& request) {
  io.field("node", request.node);
  io.field("gpu", request.gpu, kDeviceRange);
  io.field("uuid", request.uuid);
  io.field("reason", request.reason);
  io.field("resume", request.resume);
}

template <>
inline constexpr std::string_view kSchemaName<DrainView> = "DrainView";
template <class Io, Like<DrainView> T>
void fields(Io& io, T& view) {
  fields(io, view.drain);
  io.field("present", view.present);
}

template <class Io, Like<Drains> T>
void fields(Io& io, T& drains) {
  io.required("drains", drains.drains);
}

void describe_drains(Schemas& schemas) {
  schemas.document<DrainRequest>("Drain", Form::Request);
  schemas.document<Drains>("Drains", Form::Answer);
}

std::string write(const DrainRequest& request) { return Writer::document("Drain", request); }

Asked<DrainRequest> read_drain_request(std::string_view json) {
  return Reader::request<DrainRequest>(json, "Drain");
}

std::string write_drains(const std::vector<DrainView>& drains) {
  return Writer::document("Drains", Drains{drains});
}

Result<std::vector<DrainView>> read_drains(std::string_view json) {
  return GF_TRY(Reader::answer<Drains>(json, "Drains")).drains;
}

}  // namespace gflow::api

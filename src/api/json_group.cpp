// SPDX-License-Identifier: Apache-2.0
#include "api/documents.h"
#include "api/group.h"
#include "api/spec_fields.h"

namespace gflow::api {

template <>
inline constexpr std::string_view kSchemaName<GroupView> = "GroupView";
template <class Io, Like<GroupView> T>
void fields(Io& io, T& group) {
  io.required("name", group.name);
  io.field("user", group.user);
  io.known_amount("max_concurrent", group.max_concurrent);
  io.field("jobs", group.jobs);
  io.field("first_job", group.first_job);
  io.field("last_job", group.last_job);
  io.field("states", group.states);
}

template <class Io, Like<GroupPage> T>
void fields(Io& io, T& page) {
  io.required("groups", page.groups);
  io.known_text("next", page.next);
}

void describe_groups(Schemas& schemas) {
  schemas.document<GroupView>("Group", Form::Answer);
  schemas.document<GroupPage>("GroupPage", Form::Answer);
}

std::string write(const GroupView& group) { return Writer::document("Group", group); }

Result<GroupView> read_group(std::string_view json) {
  return Reader::answer<GroupView>(json, "Group");
}

std::string write(const GroupPage& page) { return Writer::document("GroupPage", page); }

Result<GroupPage> read_group_page(std::string_view json) {
  return Reader::answer<GroupPage>(json, "GroupPage");
}

}  // namespace gflow::api

// SPDX-License-Identifier: Apache-2.0
#include "api/account.h"

#include <array>

#include "api/documents.h"
#include "api/json_reader.h"
#include "api/json_writer.h"
#include "api/schema_writer.h"

namespace gflow::api {
namespace {

constexpr std::array<std::string_view, 3> kRoles = {"user", "operator", "administrator"};
constexpr std::array<std::string_view, 2> kApplies = {"reload", "restart"};

struct SettingList {
  std::vector<SettingView> settings;
};

}  // namespace

template <>
inline constexpr std::string_view kSchemaName<PrincipalView::Project> = "PrincipalViewProject";
template <class Io, Like<PrincipalView::Project> T>
void fields(Io& io, T& project) {
  io.required("name", project.name);
  io.field("max_priority", project.max_priority);
}

template <class Io, Like<PrincipalView> T>
void fields(Io& io, T& principal) {
  io.required("name", principal.name);
  io.choice("role", principal.role, kRoles);
  io.field("known_by", principal.known_by);
  io.field("scope", principal.scope);
  io.known_text("credential", principal.credential);
  io.field("max_priority", principal.max_priority);
  io.field("projects", principal.projects);
  io.field("gpus_held", principal.gpus_held);
  io.field("max_gpus", principal.max_gpus);
}

template <>
inline constexpr std::string_view kSchemaName<SettingView> = "SettingView";
template <class Io, Like<SettingView> T>
void fields(Io& io, T& setting) {
  io.required("name", setting.name);
  io.field("value", setting.value);
  io.field("default", setting.default_value);
  io.field("origin", setting.origin);
  io.field("type", setting.type);
  io.field("range", setting.range);
  io.choice("applies", setting.applies, kApplies);
  io.field("environment", setting.environment);
  io.field("help", setting.help);
}

template <class Io, Like<SettingList> T>
void fields(Io& io, T& list) {
  io.required("settings", list.settings);
}

void describe_account(Schemas& schemas) {
  schemas.document<PrincipalView>("Principal", Form::Answer);
  schemas.document<SettingList>("Settings", Form::Answer);
}

std::string write(const PrincipalView& principal) {
  return Writer::document("Principal", principal);
}

Result<PrincipalView> read_principal(std::string_view json) {
  return Reader::answer<PrincipalView>(json, "Principal");
}

std::string write_settings(const std::vector<SettingView>& settings) {
  return Writer::document("Settings", SettingList{settings});
}

Result<std::vector<SettingView>> read_settings(std::string_view json) {
  return GF_TRY(Reader::answer<SettingList>(json, "Settings")).settings;
}

}  // namespace gflow::api

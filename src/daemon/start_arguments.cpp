// SPDX-License-Identifier: Apache-2.0
#include "daemon/start_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "api/account.h"
#include "base/text.h"
#include "base/translate.h"
#include "os/file.h"
#include "os/lock_holder.h"
#include "os/user.h"
#include "settings/settings.h"

namespace gflow::daemon {

using cli::Invocation;

Result<Options> options_of(const Invocation& typed) {
  Options options;
  options.system = typed.has("system");
  if (options.system && os::own_account().uid != 0) {
    return fail(Code::Permission,
                tr("--system requires root: it starts one daemon for all users, which runs jobs as "
                   "their owners"));
  }
  options.paths = options.system ? os::system_paths() : os::user_paths();
  if (const auto socket = os::environment("GFLOW_SOCKET"); socket && !socket->empty()) {
    options.paths.socket = *socket;
    options.paths.run_dir = socket->substr(0, socket->find_last_of('/'));
  }
  std::string config = typed.get("gflow-config");
  if (config.empty()) config = os::environment("GFLOW_CONFIG").value_or("");
  if (!config.empty()) {
    options.paths.config_file = config;
    options.config_required = true;
  }
  for (const settings::Setting& setting : settings::table()) {
    const std::string flag(setting.flag);
    if (!flag.empty() && typed.has(flag)) options.flags[setting.full_name()] = typed.get(flag);
  }
  options.replace = typed.has("replace");
  if (const auto ready = parse_number(typed.get("ready-fd"))) {
    options.ready_fd = static_cast<int>(*ready);
  }
  return options;
}

namespace {

std::string absolute_file(const std::string& name) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(name, error);
  return error ? name : absolute.string();
}

}  // namespace

Invocation with_absolute_files(Invocation typed) {
  constexpr std::string_view kSimulated = "sim:";
  std::string config = typed.get("gflow-config");
  if (config.empty()) config = os::environment("GFLOW_CONFIG").value_or("");
  if (!config.empty()) typed.options["gflow-config"] = {absolute_file(config)};
  const std::string devices = typed.get("devices");
  if (devices.starts_with(kSimulated)) {
    const std::string rest = devices.substr(kSimulated.size());
    const bool is_file = rest.ends_with(".yaml") || rest.ends_with(".yml") || rest.contains('/');
    if (is_file) typed.options["devices"] = {std::string(kSimulated) + absolute_file(rest)};
  }
  return typed;
}

std::vector<std::string> arguments_of(const Invocation& typed) {
  std::vector<std::string> arguments;
  if (typed.has("system")) arguments.emplace_back("--system");
  const auto add = [&](const std::string& name) {
    if (typed.has(name)) arguments.push_back(fmt::format("--{}={}", name, typed.get(name)));
  };
  add("gflow-config");
  for (const settings::Setting& setting : settings::table()) {
    if (!setting.flag.empty()) add(std::string(setting.flag));
  }
  return arguments;
}

std::vector<std::string> add_last_arguments(Invocation& typed, const os::Paths& paths) {
  std::vector<std::string> added;
  const auto last = os::read_lock(paths.lock());
  if (!last) return added;
  for (const std::string& argument : last->arguments) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = argument.substr(2, equals - 2);
    const bool is_known =
        name == "gflow-config" ||
        std::ranges::any_of(settings::table(), [&](const auto& one) { return one.flag == name; });
    if (!is_known || typed.has(name)) continue;
    typed.options[name] = {argument.substr(equals + 1)};
    added.push_back(argument);
  }
  return added;
}

namespace {

/// For what is started from here; what is set here goes before.
void set_if_unset(const std::string& variable, const std::string& value) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): a command has one thread
  (void)::setenv(variable.c_str(), value.c_str(), 0);
}

}  // namespace

Result<Invocation> like(const api::DaemonView& running, cli::Context& context) {
  Invocation same;
  const std::string body = GF_TRY(context.daemon().call("GET", "/api/v1/settings"));
  const auto settings = GF_TRY(api::read_settings(body));
  for (const settings::Setting& setting : settings::table()) {
    const auto now = std::ranges::find(settings, setting.full_name(), &api::SettingView::name);
    if (now == settings.end()) continue;
    const std::string flag(setting.flag);
    if (!flag.empty() && now->origin == "--" + flag) same.options[flag] = {now->value};
    if (now->origin == setting.environment()) set_if_unset(now->origin, now->value);
  }
  const bool is_system = running.mode == "system";
  if (is_system) same.options["system"] = {""};
  const os::Paths usual = is_system ? os::system_paths() : os::user_paths();
  if (running.config_path != usual.config_file) {
    same.options["gflow-config"] = {running.config_path};
  }
  return same;
}

}  // namespace gflow::daemon

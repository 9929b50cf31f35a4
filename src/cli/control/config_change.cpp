// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <ostream>

#include "api/account.h"
#include "api/config_view.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/control/config_commands.h"
#include "cli/control/tls_check.h"
#include "command/context.h"
#include "config/gflow_toml.h"
#include "config/toml_edit.h"
#include "os/file.h"
#include "os/replace_file.h"
#include "settings/settings.h"

namespace gflow::cli {
namespace {

/// The setting as the daemon has it.
Result<api::SettingView> in_force(const std::string& name, Context& context) {
  const std::string body = GF_TRY(context.daemon().call("GET", "/api/v1/settings"));
  const auto all = GF_TRY(api::read_settings(body));
  const auto found = std::ranges::find(all, name, &api::SettingView::name);
  if (found == all.end()) {
    return fail(Code::NotFound,
                tr_format("the running gflowd does not know {}: it is another version", name));
  }
  return *found;
}

/// Has the daemon that reads the file take it up, if one runs.
Result<void> take_up(const ConfigFile& file,
                     const settings::Setting& setting,
                     api::ConfigChangeView& change,
                     Context& context) {
  const auto daemon = context.daemon().daemon();
  if (!daemon && daemon.error().code == Code::Unreachable) {
    change.state = "not_running";
    return {};
  }
  if (!daemon) return std::unexpected(daemon.error());
  if (!file.is_daemons) {
    change.state = "other_file";
    return {};
  }
  GF_CHECK(context.daemon().reload_daemon());
  const api::SettingView now = GF_TRY(in_force(change.name, context));
  change.origin = now.origin;
  const bool elsewhere = now.origin != "default" && !now.origin.starts_with(file.path + ":");
  if (elsewhere && now.value != change.value) {
    change.state = "overridden";
  } else if (setting.applies == settings::Applies::Restart && now.value != change.value) {
    change.state = "restart";
  } else {
    change.state = "in_force";
  }
  return {};
}

std::string consequence(const api::ConfigChangeView& change) {
  if (change.state == "not_running")
    return tr("gflowd is not running: it takes effect when gflowd starts");
  if (change.state == "other_file") {
    return tr("the running gflowd reads another file: 'gflowd status' names it");
  }
  if (change.state == "restart") {
    return tr("it takes effect after 'gflowd restart'; jobs keep running");
  }
  if (change.state == "overridden") {
    return tr_format("{} overrides the file and stays in force", printable(change.origin));
  }
  return tr("in force");
}

void print(const api::ConfigChangeView& change, Context& context) {
  if (context.json) {
    context.out << api::write(change) << '\n';
    return;
  }
  const auto shown = [](const std::string& value) {
    return value.empty() ? std::string("\"\"") : printable(value);
  };
  context.out << tr_format("{}: {} -> {} ({})\n",
                           change.name,
                           shown(change.before),
                           shown(change.value),
                           printable(change.file))
              << consequence(change) << '\n';
}

/// What gflowd would not start with is not written.
Result<void> check_files(const config::Config& after, const std::string& path, Context& context) {
  const config::Checked checked = GF_TRY(check_tls(after, path));
  for (const std::string& note : checked.notes) context.note(note);
  if (checked.problems.empty()) return {};
  return fail(Code::Usage, config::problem_text(checked.problems.front()));
}

/// One change of the file, and what follows from it. `value` is empty to take the setting out.
Result<int> change_setting(const std::string& name,
                           const std::optional<std::string>& value,
                           Context& context) {
  const settings::Setting* setting = GF_TRY(settings::find_loosely(name));
  GF_CHECK(context.needs_own_machine(tr_format(
      "its gflow.toml is there; log in there and run 'gctl config {}'",
      value ? fmt::format("set {} {}", setting->full_name(), shell_quote(std::array{*value}))
            : fmt::format("unset {}", setting->full_name()))));
  const ConfigFile file = config_file_in_use(context);
  constexpr Memory kMost = Memory::mib(1);
  const auto was = GF_TRY(os::read_if_exists(file.path, kMost));
  const std::string text = was.value_or("");
  const auto before = config::read_gflow_toml(text, file.path);
  const std::string changed = GF_TRY(value ? config::set_in_toml(text, file.path, *setting, *value)
                                           : config::unset_in_toml(text, file.path, *setting));
  const auto after = GF_TRY(config::read_gflow_toml(changed, file.path));
  GF_CHECK(check_files(after, file.path, context));
  if (!was) GF_CHECK(os::make_directories(file.path.substr(0, file.path.rfind('/'))));
  GF_CHECK(os::replace_file(file.path, changed, was));
  api::ConfigChangeView change{.file = file.path,
                               .name = setting->full_name(),
                               .before = before ? setting->write(*before) : "?",
                               .value = setting->write(after),
                               .state = {},
                               .origin = {}};
  if (auto taken = take_up(file, *setting, change, context); !taken) {
    return with_context(
        taken.error(),
        tr_format("{} was changed, but gflowd did not apply it", printable(file.path)));
  }
  print(change, context);
  return 0;
}

Result<int> run_set(const Invocation& invocation, Context& context) {
  return change_setting(invocation.words.at(0), invocation.words.at(1), context);
}

Result<int> run_unset(const Invocation& invocation, Context& context) {
  return change_setting(invocation.words.at(0), std::nullopt, context);
}

Result<int> run_reload(const Invocation& /*invocation*/, Context& context) {
  GF_CHECK(context.daemon().reload_daemon());
  if (context.json) {
    context.out << GF_TRY(context.daemon().call("GET", "/api/v1/settings")) << '\n';
  } else {
    context.out << tr("configuration reloaded\n");
  }
  const auto left = GF_TRY(context.daemon().daemon()).settings_for_restart;
  if (!left.empty()) context.note(api::for_restart_text(left));
  return 0;
}

/// For completion: a name of a setting, and then what cannot be guessed.
std::vector<FirstWord> setting_names() {
  std::vector<FirstWord> names;
  for (const settings::Setting& setting : settings::table()) {
    names.push_back({setting.full_name(), Complete::Nothing});
  }
  return names;
}

}  // namespace

ConfigFile config_file_in_use(Context& context) {
  const auto daemon = context.daemon().daemon();
  if (!context.named_config().empty()) {
    const std::string& named = context.named_config();
    return {named, daemon && daemon->config_path == named};
  }
  if (daemon) return {daemon->config_path, true};
  return {context.config_file(), false};
}

Command config_set_command() {
  return {
      .name = "set",
      .summary = tr("change a setting in gflow.toml and apply it"),
      .usage = {"SETTING VALUE"},
      .description =
          tr("Writes the value into the gflow.toml in use, keeping its comments and order, and "
             "reloads the configuration of the running gflowd. A value that gflowd would reject is "
             "refused, and nothing is written. Prints the old and the new value, and whether it is "
             "in force now or requires 'gflowd restart'."),
      .words = {.name = "SETTING VALUE",
                .help = tr("A setting ('scheduler.max_queued', or 'max_queued' where one section "
                           "has it) and its new value, as 'gctl config show' writes it."),
                .least = 2,
                .most = 2,
                .first = setting_names()},
      .examples = {{"gctl config set scheduler.preempt false", tr("no preemption from now on")},
                   {"gctl config set access.operators 'bob, @ops'", tr("a list")}},
      .run = run_set};
}

Command config_unset_command() {
  return {.name = "unset",
          .summary = tr("remove a setting from gflow.toml and restore its default"),
          .usage = {"SETTING"},
          .description = tr("Removes the line of the setting from the gflow.toml in use and "
                            "reloads the configuration of the running gflowd."),
          .words = {.name = "SETTING",
                    .help = tr("The setting."),
                    .least = 1,
                    .most = 1,
                    .first = setting_names()},
          .examples = {{"gctl config unset scheduler.preempt", tr("restore the default")}},
          .run = run_unset};
}

Command config_reload_command() {
  return {
      .name = "reload",
      .summary = tr("reload the configuration"),
      .usage = {"[options]"},
      .description = tr("The same as 'gflowd reload'. With --json, the settings in force then."),
      .run = run_reload};
}

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "api/account.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/control/config_commands.h"
#include "cli/control/subcommands.h"
#include "command/context.h"
#include "command/run_command.h"
#include "command/table.h"

namespace gflow::cli {
namespace {

/// Whether a word names the setting: "scheduler.order", or "scheduler" for the section.
bool is_named(const api::SettingView& setting, const std::string& word) {
  return setting.name == word || setting.name.starts_with(word + ".");
}

Result<std::vector<api::SettingView>> chosen_settings(std::vector<api::SettingView> all,
                                                      const std::vector<std::string>& words) {
  if (words.empty()) return all;
  std::vector<std::string> names;
  for (const api::SettingView& setting : all) {
    names.push_back(setting.name);
    names.push_back(setting.name.substr(0, setting.name.find('.')));
  }
  std::vector<api::SettingView> chosen;
  for (const std::string& word : words) {
    const std::size_t before = chosen.size();
    for (const api::SettingView& setting : all) {
      if (is_named(setting, word)) chosen.push_back(setting);
    }
    if (chosen.size() > before) continue;
    const auto near = nearest(word, names);
    return fail(Code::NotFound,
                tr_format("there is no setting '{}'{}",
                          printable(word),
                          near ? tr_format("; did you mean '{}'?", *near) : ""));
  }
  return chosen;
}

Result<int> run_config_show(const Invocation& invocation, Context& context) {
  const std::string body = GF_TRY(context.daemon().call("GET", "/api/v1/settings"));
  auto all = GF_TRY(api::read_settings(body));
  const auto settings = GF_TRY(chosen_settings(std::move(all), invocation.words));
  if (context.json) {
    context.out << api::write_settings(settings) << '\n';
    return 0;
  }
  const bool origin = invocation.has("origin");
  std::vector<Column> columns = {{.header = tr("SETTING"), .cut = Cut::Middle, .narrowest = 20},
                                 {.header = tr("VALUE"), .cut = Cut::Wrap, .narrowest = 8}};
  if (origin) columns.push_back({.header = tr("ORIGIN"), .cut = Cut::Middle, .narrowest = 8});
  std::vector<Row> rows;
  for (const api::SettingView& setting : settings) {
    rows.push_back(
        {{printable(setting.name)}, {setting.value.empty() ? "-" : printable(setting.value)}});
    if (origin) rows.back().push_back({printable(setting.origin)});
  }
  context.out << screen_table(columns, rows, context.columns, Header::Shown, context.paint);
  return 0;
}

Result<int> run_whoami(const Invocation& /*invocation*/, Context& context) {
  const std::string body = GF_TRY(context.daemon().call("GET", "/api/v1/principal"));
  if (context.json) {
    context.out << body << '\n';
    return 0;
  }
  const api::PrincipalView me = GF_TRY(api::read_principal(body));
  context.out << tr_format("User: {}\nRole: {}\nKnown by: {}\nHighest priority: {}\n",
                           printable(me.name),
                           printable(me.role),
                           printable(me.known_by),
                           me.max_priority);
  for (const auto& project : me.projects) {
    context.out << tr_format(
        "Highest priority in {}: {}\n", printable(project.name), project.max_priority);
  }
  if (me.max_gpus) {
    context.out << tr_format("GPUs: {} held, at most {}\n", me.gpus_held, *me.max_gpus);
  }
  return 0;
}

}  // namespace

Command gctl_config_command() {
  Command show{.name = "show",
               .summary = tr("show the settings in force and where each comes from"),
               .usage = {"[--origin] [SETTING...]"},
               .description = tr("Prints every setting of the running daemon, or only those named: "
                                 "'scheduler.order', or 'scheduler' for a whole section. --json "
                                 "also gives the type, range, default and description of each."),
               .options = {{.name = "origin",
                            .help = tr("Also show where each value comes from: the default, a line "
                                       "of a file, an environment variable or an option.")}},
               .words = {.name = "SETTING...",
                         .help = tr("Settings or sections to show (default: all)."),
                         .most = kAnyNumber},
               .examples = {{"gctl config show --origin", tr("all settings")},
                            {"gctl config show priority", tr("one section")}},
               .run = run_config_show};
  return {.name = "config",
          .summary = tr("show, check and change the configuration"),
          .usage = {"check|show|set|unset|reload [options]"},
          .subcommands = {config_check_command(),
                          std::move(show),
                          config_set_command(),
                          config_unset_command(),
                          config_reload_command()},
          .run = run_help};
}

Command gctl_whoami_command() {
  return {.name = "whoami",
          .summary = tr("show your identity, role and highest priority"),
          .usage = {"[options]"},
          .run = run_whoami};
}

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#include "command/command.h"

#include <algorithm>

#include "base/translate.h"

namespace gflow::cli {

std::vector<Option> common_options(Common common) {
  std::vector<Option> options;
  if (common == Common::Text) {
    options.push_back(
        {.name = "json", .refused = tr("is not available: this command prints text")});
  }
  if (common == Common::Client) {
    options.push_back({.name = "json",
                       .help = tr("Print the answer of the daemon as versioned JSON."),
                       .group = tr("Common options")});
  }
  if (common != Common::Basic) {
    options.push_back({.name = "color",
                       .value = "WHEN",
                       .help = tr("Use colours: auto (on a terminal, unless NO_COLOR is set), "
                                  "always or never (default: auto)."),
                       .group = tr("Common options"),
                       .complete = Complete::Choice,
                       .choices = {"auto", "always", "never"}});
    options.push_back(
        {.name = "server",
         .value = "SERVER",
         .help = tr("Use the gflowd of another machine: a name given to 'gctl remote "
                    "add', or its URL; or a Kubernetes cluster scheduled by "
                    "gflow-kube: kube, or kube:CONTEXT; or Slurm: slurm (also GFLOW_SERVER)."),
         .group = tr("Common options")});
    options.push_back({.name = "gflow-config",
                       .value = "FILE",
                       .help = tr("Configuration file of gflow (also GFLOW_CONFIG)."),
                       .group = tr("Common options"),
                       .complete = Complete::File});
  }
  options.push_back({.name = "help",
                     .letters = "h",
                     .help = tr("Print this help."),
                     .group = tr("Common options")});
  options.push_back({.name = "version",
                     .letters = "V",
                     .help = tr("Print the version."),
                     .group = tr("Common options")});
  return options;
}

Option no_pager_option() {
  return {.name = "no-pager", .help = tr("Do not use PAGER for output longer than the screen.")};
}

std::vector<Option> Command::all_options() const {
  std::vector<Option> all = options;
  for (Option& option : common_options(common)) all.push_back(std::move(option));
  return all;
}

const Command* Command::subcommand(std::string_view called) const {
  const auto found = std::ranges::find_if(subcommands, [&](const Command& sub) {
    return sub.name == called || std::ranges::find(sub.aliases, called) != sub.aliases.end();
  });
  return found == subcommands.end() ? nullptr : &*found;
}

std::string Invocation::get(std::string_view option) const {
  const auto found = options.find(option);
  return found == options.end() || found->second.empty() ? "" : found->second.back();
}

std::vector<std::string> Invocation::all(std::string_view option) const {
  const auto found = options.find(option);
  return found == options.end() ? std::vector<std::string>{} : found->second;
}

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/selection_options.h"

#include "base/translate.h"
#include "cli/caller.h"
#include "cli/selection.h"

namespace gflow::cli {

std::vector<Option> owner_options(const std::string& heading) {
  return {
      {.name = "user",
       .letters = "u",
       .aliases = {"users"},
       .value = "LIST",
       .help = tr("Only jobs of these users; 'all' means everyone."),
       .group = heading,
       .complete = Complete::User},
      {.name = "me", .help = tr("Only your own jobs."), .group = heading, .excludes = {"user"}},
  };
}

Option names_option(const std::string& heading) {
  return {.name = "names",
          .letters = "N",
          .aliases = {"name"},
          .value = "LIST",
          .help = tr("Only jobs with these names; * and ? are wildcards."),
          .group = heading};
}

Option project_option(const std::string& heading) {
  return {.name = "project",
          .letters = "P",
          .value = "NAME",
          .help = tr("Only jobs of this project."),
          .group = heading};
}

Option group_option(const std::string& heading) {
  return {.name = "group",
          .value = "NAME",
          .help = tr("Only jobs of this group, that is, of one array or sweep."),
          .group = heading};
}

Result<std::vector<std::string>> chosen_owners(const Invocation& invocation, Context& context) {
  std::vector<std::string> owners = parse_users(GF_TRY(selected_by(invocation, "user")));
  if (invocation.has("me")) owners = {GF_TRY(caller_name(context))};
  return owners;
}

}  // namespace gflow::cli

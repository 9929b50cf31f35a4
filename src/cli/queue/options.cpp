// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/options.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/text.h"
#include "base/translate.h"
#include "cli/queue/fields.h"
#include "cli/selection_options.h"
#include "core/job_query.h"

namespace gflow::cli {

namespace {

std::vector<Option> state_and_id_options(const std::string& heading) {
  return {
      {.name = "states",
       .letters = "s",
       .value = "LIST",
       .help = tr("Only jobs in these states, by name or code: Running,Queued or R,PD."),
       .group = heading,
       .complete = Complete::State},
      {.name = "all",
       .letters = "a",
       .help = tr("List jobs in all states, including ended ones."),
       .group = heading,
       .excludes = {"completed", "states"}},
      {.name = "completed",
       .letters = "c",
       .help = tr("Only ended jobs."),
       .group = heading,
       .excludes = {"states"}},
      {.name = "start",
       .help = tr("Only jobs that wait, in the order in which they should start, with when that is "
                  "and why they wait; those of which that is not known come last."),
       .group = heading,
       .excludes = {"states", "all", "completed", "sort", "by-state", "tree", "watch"}},
      {.name = "jobs",
       .letters = "j",
       .aliases = {"job"},
       .value = "IDS",
       .help = tr("Only these jobs, in any state: 42, 1-5, 1,3,7-9, @."),
       .group = heading,
       .complete = Complete::Job},
  };
}

std::vector<Option> amount_options(const std::string& heading) {
  return {
      {.name = "since",
       .value = "TIME",
       .help = tr("Only jobs submitted since this time: 2h, 3d, today, yesterday, 2026-03-01."),
       .group = heading},
      {.name = "limit",
       .letters = "n",
       .value = "N",
       .help = tr("List only the first N jobs, or the last N if negative (default: 0, all jobs)."),
       .group = heading},
  };
}

std::vector<Option> selection_options() {
  const std::string heading = tr("Job selection");
  std::vector<Option> all = state_and_id_options(heading);
  std::ranges::move(owner_options(heading), std::back_inserter(all));
  all.push_back(names_option(heading));
  all.push_back(project_option(heading));
  all.push_back(group_option(heading));
  std::ranges::move(amount_options(heading), std::back_inserter(all));
  return all;
}

/// For completion: what -f takes, without signs that a shell would read.
std::vector<Example> field_names() {
  std::vector<Example> names;
  for (const Field& field : queue_fields()) {
    const bool is_plain = field.name.find('(') == std::string::npos || field.aliases.empty();
    names.push_back({is_plain ? field.name : field.aliases.front(), field.help});
  }
  return names;
}

/// For completion: what --sort takes, and the same backwards.
std::vector<Example> sort_keys() {
  std::vector<Example> keys;
  const std::string names = job_keys();
  for (const char* sign : {"", "-"}) {
    for (const std::string_view key : split(names, ',')) {
      keys.push_back({sign + std::string(trim(key)), ""});
    }
  }
  return keys;
}

std::vector<Option> listing_options() {
  return {
      {.name = "format",
       .letters = "f",
       .value = "FIELDS",
       .help = tr("Columns to show, separated by commas, or a template such as '{jobid} {name}'. "
                  "The columns are listed below."),
       .suggestions = field_names()},
      {.name = "output",
       .letters = "o",
       .value = "FORM",
       .help = tr("Output format: table (default), json, jsonl (one document per line), csv, tsv "
                  "or yaml."),
       .complete = Complete::Choice,
       .choices = {"table", "json", "jsonl", "csv", "tsv", "yaml"}},
      {.name = "noheader", .aliases = {"no-header"}, .help = tr("Do not print the header.")},
      {.name = "sort",
       .letters = "r",
       .value = "KEY",
       .help = tr_format("Sort by {}; -KEY reverses the order.", job_keys()),
       .suggestions = sort_keys()},
      {.name = "by-state",
       .letters = "g",
       .help = tr("Group the jobs by state."),
       .excludes = {"tree"}},
      {.name = "tree", .letters = "t", .help = tr("Show each job below the jobs it depends on.")},
      {.name = "watch",
       .letters = "w",
       .help =
           tr("Keep running and show every change, in place on a terminal, until q or Ctrl-C.")},
      {.name = "interval",
       .value = "SECONDS",
       .help = tr("With --watch: seconds between updates of elapsed times (default: 2)."),
       .needs = "watch"},
      no_pager_option(),
  };
}

}  // namespace

std::vector<Option> gqueue_options() {
  std::vector<Option> all = selection_options();
  for (Option& option : listing_options()) {
    option.group = tr("Output format");
    all.push_back(std::move(option));
  }
  return all;
}

}  // namespace gflow::cli

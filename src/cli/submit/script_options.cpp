// SPDX-License-Identifier: Apache-2.0
#include "cli/submit/script_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "base/translate.h"
#include "cli/submit/request.h"
#include "core/requests.h"

namespace gflow::cli {

namespace {

/// Options of sbatch(1) that mean the same here, with gflow's name for them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 32> kSlurm = {{
    {"--gpus", "gpus"},
    {"-G", "gpus"},
    {"--gres", "gpus"},
    {"--gpus-per-node", "gpus"},
    {"--nodes", "nodes"},
    {"-N", "nodes"},
    {"--constraint", "constraint"},
    {"-C", "constraint"},
    {"--cpus-per-task", "cpus"},
    {"-c", "cpus"},
    {"--mem", "memory"},
    {"--time", "time"},
    {"-t", "time"},
    {"--job-name", "name"},
    {"-J", "name"},
    {"--dependency", "depends-on"},
    {"-d", "depends-on"},
    {"--begin", "begin"},
    {"-b", "begin"},
    {"--hold", "hold"},
    {"-H", "hold"},
    {"--requeue", "requeue"},
    {"--array", "array"},
    {"-a", "array"},
    {"--chdir", "chdir"},
    {"-D", "chdir"},
    {"--export", "export"},
    {"--nice", "nice"},
    {"--partition", "partition"},
    {"-p", "partition"},
    {"--account", "project"},
    {"-A", "project"},
}};

std::string_view gflow_name(std::string_view slurm) {
  const auto at = std::ranges::find(kSlurm, slurm, &decltype(kSlurm)::value_type::first);
  return at == kSlurm.end() ? "" : at->second;
}

/// One option of a "#SBATCH" line in gflow's spelling; empty, and added to `ignored`, if unknown.
std::vector<std::string> translated(std::string_view word,
                                    std::string_view next,
                                    std::vector<std::string>& ignored) {
  const bool is_long = word.starts_with("--");
  const std::size_t equals = word.find('=');
  const std::string_view typed = is_long ? word.substr(0, equals) : word.substr(0, 2);
  const std::string_view name = gflow_name(typed);
  if (name.empty()) {
    ignored.push_back(printable(typed));
    return {};
  }
  if (name == "hold" || name == "requeue") return {fmt::format("--{}", name)};
  std::optional<std::string_view> value;
  if (is_long && equals != std::string_view::npos) {
    value = word.substr(equals + 1);
  } else if (!is_long && word.size() > 2) {
    value = word.substr(2);
  } else if (name != "nice") {
    value = next;
  }
  // A feature of Slurm's nodes; labels here have values.
  if (name == "constraint" && value && value->find('=') == std::string_view::npos) {
    ignored.push_back(printable(typed));
    return {};
  }
  if (!value) return {fmt::format("--{}", name)};
  return {fmt::format("--{}={}", name, *value)};
}

std::vector<std::string> translated(const Directive& line, std::vector<std::string>& ignored) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < line.words.size(); ++i) {
    if (!line.words[i].starts_with('-')) continue;  // the value of the option before it
    const std::string next = i + 1 < line.words.size() ? line.words[i + 1] : "";
    for (std::string& word : translated(line.words[i], next, ignored)) {
      words.push_back(std::move(word));
    }
  }
  return words;
}

/// Options that make no sense from within a script.
constexpr std::array<std::string_view, 12> kNotInScripts = {"help",
                                                            "server",
                                                            "version",
                                                            "json",
                                                            "color",
                                                            "gflow-config",
                                                            "dry-run",
                                                            "verbose",
                                                            "wait",
                                                            "parsable",
                                                            "wrap",
                                                            "param-file"};

/// One line of a script as if it were all: with what its options need of others.
Invocation alone(Invocation line) {
  const auto need = [&line](const char* option, const char* value) {
    if (!line.has(option)) line.options[option] = {value};
  };
  for (const char* option : {"gpu-memory", "gpu-model", "shared"}) {
    if (line.has(option)) need("gpus", "1");
  }
  const bool has_memory = line.get("gpus").find(',') != std::string::npos;
  if (line.has("shared") && !has_memory) need("gpu-memory", "1G");
  if (line.has("preempt-signal")) need("preemptible", "requeue");
  return line;
}

}  // namespace

Result<ScriptOptions> script_options(const Command& gbatch,
                                     const std::string& path,
                                     std::string_view script,
                                     const GpuResources& resources) {
  auto directives = read_directives(script);
  if (!directives) return with_context(directives.error(), printable(path));
  ScriptOptions found;
  found.invocation.command = &gbatch;
  // Stands in for the place of a submission where only the form of a value matters.
  const Here nowhere{"/",
                     WallTime(),
                     std::chrono::seconds(0),
                     [](std::uint64_t) { return Result<JobId>(JobId(1)); },
                     resources};
  const auto add = [&](const Directive& line,
                       const std::vector<std::string>& words) -> Result<void> {
    const std::string where = fmt::format("{}:{}", printable(path), line.line);
    auto parsed = parse_options(gbatch, words);
    if (!parsed) return with_context(parsed.error(), where);
    // Read here as well, while it is known on which line a value stands.
    if (const auto spec = read_spec(alone(*parsed), nowhere); !spec) {
      return with_context(spec.error(), where);
    }
    if (!parsed->words.empty()) {
      return fail(Code::Usage,
                  tr_format("{}: '{}' is not an option", where, printable(parsed->words.front())));
    }
    for (auto& [name, values] : parsed->options) {
      if (std::ranges::find(kNotInScripts, name) != kNotInScripts.end()) {
        return fail(Code::Usage, tr_format("{}: --{} is not allowed in a script", where, name));
      }
      auto& all = found.invocation.options[name];
      const auto option = std::ranges::find(gbatch.options, name, &Option::name);
      if (option == gbatch.options.end() || !option->repeatable) all.clear();
      all.insert(all.end(), values.begin(), values.end());
    }
    return {};
  };
  for (const Directive& line : directives->slurm) {
    GF_CHECK(add(line, translated(line, found.ignored)));
  }
  for (const Directive& line : directives->gflow) GF_CHECK(add(line, line.words));
  return found;
}

void take_over(Invocation& invocation, const Invocation& script) {
  const auto is_excluded = [&](const Option& option) {
    return std::ranges::any_of(invocation.command->options, [&](const Option& other) {
      if (!invocation.has(other.name)) return false;
      return std::ranges::find(other.excludes, option.name) != other.excludes.end() ||
             std::ranges::find(option.excludes, other.name) != option.excludes.end();
    });
  };
  std::vector<std::string> taken;
  for (const Option& option : invocation.command->options) {
    if (script.has(option.name) && !invocation.has(option.name) && !is_excluded(option)) {
      taken.push_back(option.name);
    }
  }
  for (const std::string& name : taken) invocation.options[name] = script.all(name);
}

}  // namespace gflow::cli

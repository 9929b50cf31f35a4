// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include "api/config_view.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/control/config_commands.h"
#include "cli/control/tls_check.h"
#include "command/context.h"
#include "config/gflow_toml.h"
#include "config/gpu_config.h"
#include "os/file.h"

namespace gflow::cli {
namespace {

constexpr Memory kLargestFile = Memory::mib(1);  // as the daemon reads it

bool is_yaml(std::string_view path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

/// Those in use, or the ones that were named. gpu_config.yaml need not be there.
Result<std::vector<std::string>> files_to_check(const std::vector<std::string>& named,
                                                Context& context) {
  if (!named.empty()) return named;
  GF_CHECK(context.needs_own_machine(
      tr("the files in use are there; log in there, or name a FILE of this machine")));
  std::vector<std::string> files = {config_file_in_use(context).path};
  const std::string gpus = config::gpu_config_path(files.front());
  if (!gpus.empty()) files.push_back(gpus);
  return files;
}

/// The files that a gflow.toml names are looked at once it is right itself.
Result<config::Checked> check_text(const std::string& text, const std::string& path) {
  if (is_yaml(path)) return config::check_gpu_config(text, path);
  config::Checked checked = config::check_gflow_toml(text, path);
  if (!checked.problems.empty()) return checked;
  const config::Config config = GF_TRY(config::read_gflow_toml(text, path));
  config::Checked tls = GF_TRY(check_tls(config, path));
  checked.problems = std::move(tls.problems);
  checked.notes.insert(checked.notes.end(), tls.notes.begin(), tls.notes.end());
  return checked;
}

Result<api::ConfigCheckView::File> check_file(const std::string& path, bool required) {
  api::ConfigCheckView::File file{.path = path, .exists = true, .problems = {}, .notes = {}};
  const auto text = os::read_regular_file(path, kLargestFile);
  if (!text && text.error().code == Code::NotFound && !required) {
    file.exists = false;
    return file;
  }
  if (!text) return std::unexpected(text.error());
  const config::Checked checked = GF_TRY(check_text(*text, path));
  for (const config::Problem& problem : checked.problems) {
    file.problems.push_back({problem.line, problem.message});
  }
  file.notes = checked.notes;
  return file;
}

void print(const api::ConfigCheckView::File& file, Context& context) {
  const std::string path = printable(file.path);
  for (const auto& problem : file.problems) {
    context.out << config::problem_text({path, problem.line, problem.message}) << '\n';
  }
  if (!file.exists) {
    context.out << tr_format("{}: not there; the defaults are in force\n", path);
  } else if (file.problems.empty()) {
    context.out << tr_format("{}: no errors\n", path);
  }
  for (const std::string& note : file.notes) context.note(note);
}

Result<int> run_check(const Invocation& invocation, Context& context) {
  api::ConfigCheckView check;
  for (const std::string& path : GF_TRY(files_to_check(invocation.words, context))) {
    check.files.push_back(GF_TRY(check_file(path, !invocation.words.empty())));
  }
  bool wrong = false;
  for (const auto& file : check.files) wrong |= !file.problems.empty();
  if (context.json) {
    context.out << api::write(check) << '\n';
  } else {
    for (const auto& file : check.files) print(file, context);
  }
  return wrong ? 1 : 0;
}

}  // namespace

Command config_check_command() {
  return {.name = "check",
          .summary = tr("check configuration files; no daemon is needed"),
          .usage = {"[FILE...]"},
          .description = tr("Reads configuration files as gflowd would and prints every line that "
                            "is wrong, with what to do about it. Without FILE: the gflow.toml in "
                            "use and the gpu_config.yaml that goes with it. The exit code is 1 if "
                            "anything is wrong."),
          .words = {.name = "FILE...",
                    .help = tr("A gflow.toml, or a gpu_config.yaml if the name ends in .yaml."),
                    .most = kAnyNumber,
                    .complete = Complete::File},
          .examples = {{"gctl config check", tr("the files in use")},
                       {"gctl config check new.toml && cp new.toml ~/.config/gflow/gflow.toml",
                        tr("before installing a file")}},
          .run = run_check};
}

}  // namespace gflow::cli

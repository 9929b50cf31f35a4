// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <memory>

#include "base/text.h"
#include "base/translate.h"
#include "cli/submit/environment.h"

namespace gflow::cli {

namespace {

/// Activating in a shell and looking at what came of it is the only way that runs the packages' own
/// activation scripts; `conda run` swallows output and signals
/// (https://docs.conda.io/projects/conda/en/stable/commands/run.html).
constexpr std::string_view kActivate = R"(
hook=$("${CONDA_EXE:-conda}" shell.bash hook 2>&1) || { echo "$hook" >&2; exit 1; }
eval "$hook"
conda activate "$1" >&2 || exit 1
printf 'gflow-environment\0'
exec env -0
)";
constexpr std::string_view kMark{"gflow-environment\0", 18};

struct Closer {
  void operator()(std::FILE* file) const { (void)::pclose(file); }
};

}  // namespace

Result<Environment> conda_environment(const std::string& name) {
  const std::array<std::string, 5> argv = {"bash", "-c", std::string(kActivate), "gflow", name};
  const std::string line = shell_quote(argv);
  std::unique_ptr<std::FILE, Closer> pipe(::popen(line.c_str(), "re"));
  if (!pipe) return fail(Code::Failure, tr("cannot run conda: no process can be started"));
  std::string output;
  std::array<char, 65536> block;
  for (std::size_t got = 0; (got = std::fread(block.data(), 1, block.size(), pipe.get())) > 0;) {
    output.append(block.data(), got);
  }
  const int status = ::pclose(pipe.release());
  const std::size_t at = output.find(kMark);
  if (status != 0 || at == std::string::npos) {
    return fail(Code::NotFound,
                tr_format("--conda-env: the environment '{}' cannot be activated (see above)",
                          printable(name)));
  }
  Environment activated;
  for (const std::string_view variable :
       split(std::string_view(output).substr(at + kMark.size()), '\0')) {
    const std::string_view key = variable.substr(0, variable.find('='));
    if (!variable.empty() && key != "_" && key != "SHLVL") activated.emplace_back(variable);
  }
  return activated;
}

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/submit/source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <ostream>

#include "base/text.h"
#include "base/translate.h"
#include "cli/submit/classify.h"
#include "core/job.h"
#include "core/requests.h"
#include "os/file.h"
#include "os/terminal.h"

namespace gflow::cli {

namespace {

FileFacts look(const std::string& path) {
  FileFacts facts;
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return facts;
  facts.kind = S_ISREG(info.st_mode)   ? FileFacts::Kind::Regular
               : S_ISDIR(info.st_mode) ? FileFacts::Kind::Directory
                                       : FileFacts::Kind::Other;
  facts.executable = (info.st_mode & 0111U) != 0 && ::access(path.c_str(), X_OK) == 0;
  std::error_code ignored;
  facts.absolute = std::filesystem::absolute(path, ignored).lexically_normal().string();
  if (facts.kind != FileFacts::Kind::Regular) return facts;
  if (const auto file = os::open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    facts.head.resize(4096);
    const ssize_t got = ::read(file->get(), facts.head.data(), facts.head.size());
    facts.head.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  }
  return facts;
}

bool is_on_path(const std::string& name, const std::string& path) {
  for (const std::string_view directory : split(path, ':')) {
    const std::string file = fmt::format("{}/{}", directory.empty() ? "." : directory, name);
    struct stat info{};
    if (::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(file.c_str(), X_OK) == 0) {
      return true;
    }
  }
  return false;
}

Result<std::string> read_standard_input() {
  constexpr std::size_t kMax = 16U << 20;
  std::string text;
  std::string block(65536, '\0');
  while (true) {
    const ssize_t got = ::read(0, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os::errno_error(tr("read standard input"));
    if (got == 0) return text;
    text.append(block, 0, static_cast<std::size_t>(got));
    if (text.size() > kMax)
      return fail(Code::Exhausted, tr("the script is larger than the maximum of 16 MiB"));
  }
}

Result<Source> script_from_input(std::vector<std::string> arguments) {
  std::string script = GF_TRY(read_standard_input());
  if (trim(script).empty()) {
    return fail(Code::Usage, tr("no command given, and the script on standard input is empty"));
  }
  arguments.insert(arguments.begin(), "script.sh");
  return Source{arguments, std::move(script), tr("standard input"), shown_line(arguments)};
}

Source shell_line(const std::string& line) {
  return {{"bash", "-c", line}, std::nullopt, "", shown_line(line)};
}

}  // namespace

Result<Source> read_source(const Invocation& invocation,
                           const Environment& environment,
                           Programs programs) {
  const std::vector<std::string>& words = invocation.words;
  if (invocation.has("wrap")) {
    if (!words.empty()) return fail(Code::Usage, tr("--wrap cannot be combined with a command"));
    return shell_line(invocation.get("wrap"));
  }
  if (words.empty() && os::is_terminal(0)) {
    return fail(Code::Usage, tr("no command given; write, for example, 'gbatch python train.py'"));
  }
  if (words.empty()) return script_from_input({});
  if (words[0] == "-") return script_from_input({words.begin() + 1, words.end()});
  const std::string path = variable(environment, "PATH");
  const auto is_program = [&](const std::string& name) { return is_on_path(name, path); };
  const Work work = GF_TRY(classify(words, {look, is_program, programs == Programs::Elsewhere}));
  const std::string line = shown_line(words);
  if (const auto* script = std::get_if<ScriptJob>(&work)) {
    std::string content = GF_TRY(os::read_file(script->path));
    if (trim(content).empty()) {
      return fail(Code::Usage, tr_format("the script '{}' is empty", printable(script->path)));
    }
    return Source{words, std::move(content), script->path, line};
  }
  std::vector<std::string> argv = std::get<CommandJob>(work).argv;
  if (words.size() == 1 && argv.size() > 1) return shell_line(words[0]);
  return Source{std::move(argv), std::nullopt, "", line};
}

Result<int> write_new_script(const Invocation& invocation, Context& context) {
  std::string path = invocation.words.front();
  if (!path.ends_with(".sh")) path += ".sh";
  constexpr std::string_view kScript = R"(#!/bin/bash
# Options of gbatch, one per line; take one # away to use it. Options of the command line win.
## GFLOW --gpus 1
## GFLOW --time 4:00:00
## GFLOW --memory 16G
## GFLOW --priority 10
## GFLOW --depends-on 42
## GFLOW --conda-env NAME

set -euo pipefail

echo "Job ${GFLOW_JOB_ID:-} has GPU: ${CUDA_VISIBLE_DEVICES:-}"
)";
  const auto file = os::open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
  if (!file) {
    if (os::exists(path)) {
      return fail(Code::WrongState, tr_format("'{}' already exists", printable(path)));
    }
    return std::unexpected(file.error());
  }
  GF_CHECK(os::write_all(file->get(), kScript));
  context.out << path << '\n';
  context.hint(tr_format("edit it, then: gbatch {}", shell_quote(std::vector{path})));
  return 0;
}

}  // namespace gflow::cli

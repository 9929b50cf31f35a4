// SPDX-License-Identifier: Apache-2.0
#include "park/watchers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/text.h"
#include "os/file.h"
#include "share/account.h"

namespace gflow::park {
namespace {

/// What processes have slots. The file is its owner's, who may cut it short: it is not mapped.
Result<std::vector<share::ProcessId>> watchers_in(const std::string& path) {
  const std::string bytes = GF_TRY(os::read_regular_file(path));
  const auto account = std::make_unique<share::Account>();
  if (bytes.size() == sizeof(share::Account)) {
    std::memcpy(static_cast<void*>(account.get()), bytes.data(), bytes.size());
  }
  if (!share::AccountBook::is_account(*account, bytes.size()) ||
      !share::AccountBook::is_of_whole_gpus(*account)) {
    return fail(Code::Infeasible,
                fmt::format("{} is not the account of a job with whole GPUs", printable(path)));
  }
  std::vector<share::ProcessId> found;
  for (const share::ProcessSlot& slot : account->processes) {
    found.push_back({slot.pid, slot.pid_namespace, slot.start_time});
  }
  return found;
}

std::string text_of(int pid, std::string_view name) {
  return os::read_file(fmt::format("/proc/{}/{}", pid, name)).value_or("");
}

/// "1234 (python)"
std::string described(int pid) {
  std::string name = text_of(pid, "comm");
  if (name.ends_with('\n')) name.pop_back();
  return fmt::format("{} ({})", pid, printable(name));
}

}  // namespace

Result<void> check_watchers(const std::string& account,
                            const std::vector<ProcessFacts>& processes) {
  const auto watchers = GF_TRY(watchers_in(account));
  const std::uint32_t space = share::this_process().pid_namespace;
  for (const ProcessFacts& process : processes) {
    const share::ProcessId its{static_cast<std::uint32_t>(process.pid), space, process.start_time};
    // A slot outlives the program that took it where that executes another one.
    const bool has_slot = std::ranges::find(watchers, its) != watchers.end();
    const bool tells = has_slot && text_of(process.pid, "maps").contains("/libgflow-share.so");
    if (tells || share::has_ended(its, space)) continue;
    if (is_in_inner_namespace(text_of(process.pid, "status"))) {
      return fail(Code::WrongState,
                  fmt::format("process {} is in a pid namespace of its own, so it is not known "
                              "whether it could tell that it wants its GPU back",
                              described(process.pid)));
    }
    return fail(Code::WrongState,
                fmt::format("process {} does not load libgflow-share.so, and could not tell that "
                            "it wants its GPU back",
                            described(process.pid)));
  }
  return {};
}

}  // namespace gflow::park

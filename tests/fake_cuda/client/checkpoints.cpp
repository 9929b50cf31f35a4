// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>

#include "client/commands.h"

namespace client {
namespace {

/// Bytes that a seed makes: numbers, eight bytes each, each made of the one before.
std::string content(std::size_t bytes, std::uint64_t seed) {
  std::string made(bytes, '\0');
  for (std::size_t at = 0; at + sizeof seed <= bytes; at += sizeof seed) {
    seed = seed * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    std::memcpy(made.data() + at, &seed, sizeof seed);
  }
  return made;
}

/// FNV-1a.
std::uint64_t checksum(const std::string& bytes) {
  std::uint64_t sum = 14'695'981'039'346'656'037U;
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 1'099'511'628'211U;
  return sum;
}

/// "ADDRESS BYTES SEED", and what "sum ADDRESS BYTES" is then.
void add_content(Commands& commands, const Functions& cu) {
  commands["fill"] = [&](const Request& asked) {
    const std::string bytes = content(asked.number(1), asked.number(2));
    const abi::Result result = cu.cuMemcpyHtoD(asked.number(0), bytes.data(), bytes.size());
    return said(result, checksum(bytes));
  };
  commands["sum"] = [&](const Request& asked) {
    std::string bytes(asked.number(1), '\0');
    const abi::Result result = cu.cuMemcpyDtoH(bytes.data(), asked.number(0), bytes.size());
    return said(result, checksum(bytes));
  };
  commands["export"] = [&](const Request& asked) {
    abi::IpcMemHandle handle{};
    return said(cu.cuIpcGetMemHandle(&handle, asked.number(0)));
  };
}

}  // namespace

/// Of another process, by its pid.
void add_checkpoints(Commands& commands, const Functions& cu) {
  add_content(commands, cu);
  commands["state_of"] = [&](const Request& asked) {
    return made<abi::ProcessState>([&](auto* out) {
      return cu.cuCheckpointProcessGetState(static_cast<int>(asked.number(0)), out);
    });
  };
  commands["restore_thread_of"] = [&](const Request& asked) {
    return made<int>([&](auto* out) {
      return cu.cuCheckpointProcessGetRestoreThreadId(static_cast<int>(asked.number(0)), out);
    });
  };
  commands["asked_of"] = [](const Request& asked) {
    const auto pid = static_cast<int>(asked.number(0));
    return said(abi::kSuccess, of_fake<int(int)>("fakeCudaAsked")(pid));
  };
  commands["lock"] = [&](const Request& asked) {
    abi::CheckpointLockArgs args{
        .timeout_ms = static_cast<unsigned int>(asked.number(1)), .reserved0 = 0, .reserved1 = {}};
    return said(cu.cuCheckpointProcessLock(static_cast<int>(asked.number(0)), &args));
  };
  commands["checkpoint"] = [&](const Request& asked) {
    return said(cu.cuCheckpointProcessCheckpoint(static_cast<int>(asked.number(0)), nullptr));
  };
  commands["restore"] = [&](const Request& asked) {
    return said(cu.cuCheckpointProcessRestore(static_cast<int>(asked.number(0)), nullptr));
  };
  commands["unlock"] = [&](const Request& asked) {
    return said(cu.cuCheckpointProcessUnlock(static_cast<int>(asked.number(0)), nullptr));
  };
}

}  // namespace client

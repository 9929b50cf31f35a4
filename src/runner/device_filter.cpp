// SPDX-License-Identifier: Apache-2.0
#include "runner/device_filter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "os/file.h"

namespace gflow::runner {
namespace {

// What the kernel gives the program (bpf_cgroup_dev_ctx), and what it is answered.
constexpr std::int16_t kAccessType = 0;
constexpr std::int16_t kMajor = 4;
constexpr std::int16_t kMinor = 8;
constexpr std::int32_t kDenied = 0;
constexpr std::int32_t kAllowed = 1;

constexpr std::uint8_t kRegister = 0xF;  // as wide as the kernel has its number
constexpr std::uint8_t kContext = BPF_REG_1;
constexpr std::uint8_t kResult = BPF_REG_0;
constexpr std::uint8_t kItsType = BPF_REG_2;
constexpr std::uint8_t kItsMajor = BPF_REG_3;
constexpr std::uint8_t kItsMinor = BPF_REG_4;

bpf_insn instruction(std::uint8_t code, std::uint8_t reg) {
  bpf_insn made{};
  made.code = code;
  made.dst_reg = reg & kRegister;
  return made;
}

bpf_insn load(std::uint8_t into, std::int16_t offset) {
  bpf_insn made = instruction(BPF_LDX | BPF_MEM | BPF_W, into);
  made.src_reg = kContext;
  made.off = offset;
  return made;
}

/// Of the register and a number.
bpf_insn change(std::uint8_t code, std::uint8_t reg, std::int32_t number) {
  bpf_insn made = instruction(code, reg);
  made.imm = number;
  return made;
}

/// Passes so many instructions by if the register compares so with the number, unsigned.
bpf_insn pass_if(std::uint8_t how, std::uint8_t reg, std::uint32_t number, std::int16_t count) {
  bpf_insn made = change(BPF_JMP | how | BPF_K, reg, static_cast<std::int32_t>(number));
  made.off = count;
  return made;
}

void answer(std::vector<bpf_insn>& program, std::int32_t result) {
  program.push_back(change(BPF_ALU64 | BPF_MOV | BPF_K, kResult, result));
  program.push_back(instruction(BPF_JMP | BPF_EXIT, 0));
}

/// Of the ranges of one major number, which ascend, so that who is below one is in none: there is
/// one way on, which is all that the kernel has to go through to know the program.
void answer_for(std::vector<bpf_insn>& program, std::span<const DeviceNodes> ranges) {
  std::vector<bpf_insn> its;
  for (const DeviceNodes& one : ranges) {
    its.push_back(pass_if(BPF_JGE, kItsMinor, one.first, 2));
    answer(its, kAllowed);
    its.push_back(pass_if(BPF_JGT, kItsMinor, one.last, 2));
    answer(its, kDenied);
  }
  const auto count = static_cast<std::int16_t>(its.size());
  program.push_back(pass_if(BPF_JNE, kItsMajor, ranges.front().major, count));
  program.insert(program.end(), its.begin(), its.end());
}

int call(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

Result<os::Fd> load_program(const std::vector<bpf_insn>& program) {
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.insns = address_of(program.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(program.size());
  attributes.license = address_of("Apache-2.0");
  os::Fd loaded(call(BPF_PROG_LOAD, attributes));
  if (!loaded.valid()) return os::errno_error("load a device filter (bpf)");
  return loaded;
}

/// A line of devices.deny for each: cgroup v1 knows no ranges.
Result<void> write_denied(const os::Fd& file, const std::string& path, const DeviceFilter& filter) {
  for (const DeviceNodes& nodes : filter.denied) {
    for (std::uint32_t minor = nodes.first; minor <= nodes.last; ++minor) {
      const std::string line = fmt::format("c {}:{} rwm", nodes.major, minor);
      if (::write(file.get(), line.data(), line.size()) < 0) return os::errno_error("set", path);
    }
  }
  return {};
}

}  // namespace

std::vector<bpf_insn> filter_program(const DeviceFilter& filter) {
  std::vector<bpf_insn> program = {
      load(kItsType, kAccessType), load(kItsMajor, kMajor), load(kItsMinor, kMinor)};
  // The type is the lower half; above it is what is to be done with the device, which is all one.
  constexpr std::int32_t kTypeMask = 0xFFFF;
  program.push_back(change(BPF_ALU | BPF_AND | BPF_K, kItsType, kTypeMask));
  program.push_back(pass_if(BPF_JEQ, kItsType, BPF_DEVCG_DEV_CHAR, 2));
  answer(program, kAllowed);
  for (auto first = filter.denied.begin(); first != filter.denied.end();) {
    const auto end = std::find_if(
        first, filter.denied.end(), [&](const auto& one) { return one.major != first->major; });
    answer_for(program, {first, end});
    first = end;
  }
  answer(program, kAllowed);
  return program;
}

Result<void> attach_filter(const std::string& group, const DeviceFilter& filter) {
  const os::Fd directory = GF_TRY(os::open_file(group, O_RDONLY | O_DIRECTORY));
  const os::Fd program = GF_TRY(load_program(filter_program(filter)));
  bpf_attr attributes{};
  attributes.target_fd = static_cast<std::uint32_t>(directory.get());
  attributes.attach_bpf_fd = static_cast<std::uint32_t>(program.get());
  attributes.attach_type = BPF_CGROUP_DEVICE;
  // Beside those of others: systemd has its own, and so may what the job starts.
  attributes.attach_flags = BPF_F_ALLOW_MULTI;
  if (call(BPF_PROG_ATTACH, attributes) == 0) return {};
  return os::errno_error("attach a device filter (bpf) to", group);
}

Result<void> deny_devices(const std::string& group, const DeviceFilter& filter) {
  const std::string path = group + "/devices.deny";
  const os::Fd file = GF_TRY(os::open_file(path, O_WRONLY));
  return write_denied(file, path, filter);
}

}  // namespace gflow::runner

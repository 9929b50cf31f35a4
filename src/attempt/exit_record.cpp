// SPDX-License-Identifier: Apache-2.0
#include "attempt/exit_record.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "base/text_fields.h"

namespace gflow::attempt {
namespace {

constexpr std::uint64_t kMagic = 0x5449584557464731;  // "1GFWEXIT" read as little-endian
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kIdSize = 40;

/// The layout on disk, little-endian. Never changed: another layout gets another version.
struct Slot {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t sequence;
  std::uint64_t job;
  std::uint32_t attempt;
  std::uint32_t reason;
  std::int32_t exit_code;
  std::int32_t signal;
  std::uint32_t step;
  std::int32_t error;
  std::uint32_t oom_kills;
  std::uint32_t message_size;
  std::int64_t run_time_ms;
  std::int64_t cpu_time_ms;
  std::int64_t peak_memory_bytes;
  std::int64_t started_wall_ms;
  std::int64_t ended_wall_ms;
  char launch_id[kIdSize];
  char boot_id[kIdSize];
  char message[kMessageMost];
  char reserved[844];
  std::uint32_t crc;
};
static_assert(std::is_trivially_copyable_v<Slot> && std::is_standard_layout_v<Slot>);
static_assert(sizeof(Slot) == kSlotSize);
static_assert(offsetof(Slot, job) == 16 && offsetof(Slot, exit_code) == 32);
static_assert(offsetof(Slot, run_time_ms) == 56 && offsetof(Slot, launch_id) == 96);
static_assert(offsetof(Slot, message) == 176 && offsetof(Slot, crc) == kSlotSize - 4);
static_assert(std::endian::native == std::endian::little);

/// CRC-32 (IEEE 802.3, reflected).
std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

template <std::size_t N>
void put_text(char (&field)[N], std::string_view text) {
  std::copy_n(text.data(), std::min(text.size(), N - 1), field);
}

template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  return std::string(field, std::find(field, field + N - 1, '\0'));
}

std::optional<Slot> read_slot(std::string_view bytes) {
  if (bytes.size() != kSlotSize) return std::nullopt;
  Slot slot;
  std::memcpy(&slot, bytes.data(), sizeof slot);
  const bool valid = slot.magic == kMagic && slot.version == kVersion &&
                     slot.message_size <= kMessageMost && ending_of(slot.reason) &&
                     step_of(slot.step) && slot.crc == crc32(bytes.substr(0, offsetof(Slot, crc)));
  if (!valid) return std::nullopt;
  return slot;
}

ExitRecord record_of(const Slot& slot) {
  ExitRecord record;
  record.job = slot.job;
  record.attempt = slot.attempt;
  record.reason = static_cast<Ending>(slot.reason);
  record.exit_code = slot.exit_code;
  record.signal = slot.signal;
  record.step = static_cast<Step>(slot.step);
  record.error = slot.error;
  record.oom_kills = slot.oom_kills;
  record.run_time = std::chrono::milliseconds(slot.run_time_ms);
  record.cpu_time = std::chrono::milliseconds(slot.cpu_time_ms);
  record.peak_memory_bytes = slot.peak_memory_bytes;
  record.started_wall_ms = slot.started_wall_ms;
  record.ended_wall_ms = slot.ended_wall_ms;
  record.launch_id = text_of(slot.launch_id);
  record.boot_id = text_of(slot.boot_id);
  record.message.assign(slot.message, slot.message_size);
  return record;
}

}  // namespace

std::optional<Ending> ending_of(std::uint32_t number) {
  const bool in_row = number >= static_cast<std::uint32_t>(Ending::Exited) &&
                      number <= static_cast<std::uint32_t>(Ending::DependencyFailed);
  if (!in_row && number != static_cast<std::uint32_t>(Ending::Preempted)) return std::nullopt;
  return static_cast<Ending>(number);
}

std::optional<Step> step_of(std::uint32_t number) {
  if (number > static_cast<std::uint32_t>(Step::KeepFromGpus)) return std::nullopt;
  return static_cast<Step>(number);
}

std::string_view step_text(Step step) {
  switch (step) {
    case Step::None:
      return "start";
    case Step::Fork:
      return "create the process";
    case Step::JoinCgroup:
      return "join the control group";
    case Step::OpenLog:
      return "open the log";
    case Step::OpenStdin:
      return "open /dev/null";
    case Step::BecomeUser:
      return "become the user of the job";
    case Step::ChangeDirectory:
      return "change to the working directory";
    case Step::ReadScript:
      return "read the script";
    case Step::RunInterpreter:
      return "run the interpreter of the script";
    case Step::RunProgram:
      return "run";
    case Step::StartInTime:
      return "start in time";
    case Step::JoinKeyring:
      return "make a session keyring";
    case Step::TakeMark:
      return "take the mark of its processes";
    case Step::ReachProgram:
      return "live until its program runs";
    case Step::KeepFromGpus:
      return "keep it from GPUs of others (landlock)";
  }
  return "start";
}

SlotBytes encode_slot(const ExitRecord& record, std::uint32_t sequence) {
  Slot slot{};
  slot.magic = kMagic;
  slot.version = kVersion;
  slot.sequence = sequence;
  slot.job = record.job;
  slot.attempt = record.attempt;
  slot.reason = static_cast<std::uint32_t>(record.reason);
  slot.exit_code = record.exit_code;
  slot.signal = record.signal;
  slot.step = static_cast<std::uint32_t>(record.step);
  slot.error = record.error;
  slot.oom_kills = record.oom_kills;
  slot.run_time_ms = record.run_time.count();
  slot.cpu_time_ms = record.cpu_time.count();
  slot.peak_memory_bytes = record.peak_memory_bytes;
  slot.started_wall_ms = record.started_wall_ms;
  slot.ended_wall_ms = record.ended_wall_ms;
  put_text(slot.launch_id, record.launch_id);
  put_text(slot.boot_id, record.boot_id);
  slot.message_size = static_cast<std::uint32_t>(std::min(record.message.size(), kMessageMost));
  std::copy_n(record.message.data(), slot.message_size, slot.message);
  SlotBytes bytes;
  std::memcpy(bytes.data(), &slot, sizeof slot);
  slot.crc = crc32(std::string_view(bytes.data(), offsetof(Slot, crc)));
  std::memcpy(bytes.data() + offsetof(Slot, crc), &slot.crc, sizeof slot.crc);
  return bytes;
}

std::optional<ExitRecord> decode_exit_file(std::string_view content) {
  if (content.size() < kExitFileSize) return std::nullopt;
  const auto first = read_slot(content.substr(0, kSlotSize));
  const auto second = read_slot(content.substr(kSlotSize, kSlotSize));
  if (!first && !second) return std::nullopt;
  if (!first) return record_of(*second);
  if (!second) return record_of(*first);
  return record_of(first->sequence > second->sequence ? *first : *second);
}

std::int32_t started_pid_in(std::string_view content) {
  if (content.size() <= kExitFileSize) return 0;
  content.remove_prefix(kExitFileSize);
  const auto pid = number_of<std::int32_t>(take_field(content, '\n'));
  return pid && *pid > 0 ? *pid : 0;
}

}  // namespace gflow::attempt

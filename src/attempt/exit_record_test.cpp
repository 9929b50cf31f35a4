// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "attempt/exit_record.h"

#include <gtest/gtest.h>

namespace gflow::attempt {
namespace {

ExitRecord full_record() {
  ExitRecord record;
  record.job = 5;
  record.attempt = 2;
  record.reason = Ending::LaunchFailed;
  record.exit_code = 127;
  record.signal = 9;
  record.step = Step::ChangeDirectory;
  record.error = 2;
  record.oom_kills = 1;
  record.run_time = std::chrono::milliseconds(1234);
  record.cpu_time = std::chrono::milliseconds(999);
  record.peak_memory_bytes = 1LL << 40;
  record.started_wall_ms = 1'700'000'000'000;
  record.ended_wall_ms = 1'700'000'001'234;
  record.launch_id = "0123456789abcdef0123456789abcdef";
  record.boot_id = "8d9b6a0e-0000-4000-8000-0123456789ab";
  record.message = "no directory '/x'";
  return record;
}

std::string file_with(const ExitRecord& record, std::uint32_t sequence, std::string file = {}) {
  file.resize(kExitFileSize, '\0');
  const SlotBytes slot = encode_slot(record, sequence);
  file.replace(slot_offset(sequence), slot.size(), slot.data(), slot.size());
  return file;
}

TEST(ExitRecord, ComesBackAsItWasWritten) {
  EXPECT_EQ(decode_exit_file(file_with(full_record(), 1)), full_record());
  EXPECT_EQ(decode_exit_file(file_with(ExitRecord{}, 2)), ExitRecord{});
}

TEST(ExitRecord, ThePidIsReadBehindTheSlots) {
  const std::string slots(kExitFileSize, '\0');
  EXPECT_EQ(started_pid_in(slots), 0);
  EXPECT_EQ(started_pid_in(slots + std::string(kStartedSize, '\0')), 0);
  EXPECT_EQ(started_pid_in(slots + "4711\n" + std::string(11, '\0')), 4711);
  EXPECT_EQ(started_pid_in(slots + "-4\n"), 0);
  EXPECT_EQ(started_pid_in("4711\n"), 0);
}

TEST(ExitRecord, AFileNotYetWrittenHoldsNone) {
  EXPECT_EQ(decode_exit_file(""), std::nullopt);
  EXPECT_EQ(decode_exit_file(std::string(kExitFileSize, '\0')), std::nullopt);
  EXPECT_EQ(decode_exit_file(std::string(kExitFileSize, '\xff')), std::nullopt);
  EXPECT_EQ(decode_exit_file(file_with(full_record(), 1).substr(0, kExitFileSize - 1)),
            std::nullopt);
}

TEST(ExitRecord, TheNewerSlotCountsAndATornOneDoesNot) {
  ExitRecord newer = full_record();
  newer.exit_code = 1;
  const std::string both = file_with(newer, 2, file_with(full_record(), 1));
  EXPECT_EQ(decode_exit_file(both), newer);
  std::string torn = both;
  torn[slot_offset(2) + 40] ^= 1;
  EXPECT_EQ(decode_exit_file(torn), full_record());
}

TEST(ExitRecord, AnyChangedByteIsNoticed) {
  const std::string file = file_with(full_record(), 1);
  for (std::size_t at = slot_offset(1); at < slot_offset(1) + kSlotSize; ++at) {
    std::string changed = file;
    changed[at] ^= 0x10;
    EXPECT_EQ(decode_exit_file(changed), std::nullopt) << at;
  }
}

TEST(ExitRecord, LongTextsAreCut) {
  ExitRecord record;
  record.message = std::string(5000, 'm');
  record.launch_id = std::string(100, 'l');
  const auto back = decode_exit_file(file_with(record, 1));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->message, std::string(kMessageMost, 'm'));
  EXPECT_EQ(back->launch_id, std::string(39, 'l'));
}

TEST(ExitRecord, EveryStepHasItsWords) {
  for (std::uint32_t number = 0; number <= 14; ++number) {
    ASSERT_TRUE(step_of(number)) << number;
    EXPECT_FALSE(step_text(*step_of(number)).empty()) << number;
  }
  EXPECT_FALSE(step_of(15));
  EXPECT_FALSE(ending_of(0));
  EXPECT_FALSE(ending_of(10));
}

}  // namespace
}  // namespace gflow::attempt

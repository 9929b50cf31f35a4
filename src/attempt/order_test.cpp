// SPDX-License-Identifier: Apache-2.0
#include "attempt/order.h"

#include <gtest/gtest.h>

namespace gflow::attempt {
namespace {

Order full_order() {
  Order order;
  order.job = 18'446'744'073'709'551'615U;
  order.attempt = 3;
  order.launch_id = "0123456789abcdef";
  order.mark = 0x0123'4567'89ab'cdef;
  order.boot_id = "boot";
  order.uid = 1000;
  order.work_dir = "/home/a dir/with=sign\nand line";
  order.log_path = "/logs/5.log";
  order.script = "/attempts/5.3/script/train.sh";
  order.argv = {"train.sh", "", "--flag=a=b", "\xff\xfe not UTF-8", "'quotes' \"too\""};
  order.environment = {"A=1", "EMPTY=", "MULTI=line one\nline two"};
  order.umask = 0027;
  order.open_files = 1024;
  order.time_limit = std::chrono::seconds(90);
  order.grace = std::chrono::seconds(0);
  order.cgroups = {"/sys/fs/cgroup/unified/x", "/sys/fs/cgroup/memory/x"};
  order.kill_cgroup = "/sys/fs/cgroup/unified/x";
  order.memory_cgroup = "/sys/fs/cgroup/memory/x";
  order.freeze_cgroup = "/sys/fs/cgroup/unified/x";
  order.cpus = {0, 1, 8, 4095};
  order.node = "lab1";
  order.devices = {{0, 3000, 5000, 12'884'901'888, "nvidia", "GPU-3f6c1f0a 5d0e"},
                   {7, 10'000, 0, 0, "", ""}};
  order.gpu_mode = "fraction";
  order.cpu_limit = 8;
  order.memory_limit = 68'719'476'736;
  return order;
}

TEST(Order, ComesBackAsItWasWritten) {
  const Order full = full_order();
  EXPECT_EQ(decode_order(encode_order(full).value()), full);
  Order small;
  small.argv = {"true"};
  EXPECT_EQ(decode_order(encode_order(small).value()), small);
}

TEST(Order, CutShortAnywhereIsRefused) {
  const std::string text = encode_order(full_order()).value();
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    if (text.substr(0, length).ends_with("end=")) continue;
    EXPECT_FALSE(decode_order(std::string_view(text).substr(0, length))) << length;
  }
}

TEST(Order, NulInsideAValueIsRefused) {
  Order order = full_order();
  order.argv.push_back(std::string("a\0b", 3));
  EXPECT_FALSE(encode_order(order));
}

TEST(Order, GarbageIsRefusedInWords) {
  using namespace std::string_literals;
  const struct {
    const char* name;
    std::string text;
    const char* says;
  } kTable[] = {
      {"nothing", "", "protocol"},
      {"another protocol", "protocol=2\0argv=x\0end=\0"s, "protocol"},
      {"unknown field", "protocol=1\0colour=red\0argv=x\0end=\0"s, "colour"},
      {"a number that is none", "protocol=1\0job=x\0argv=x\0end=\0"s, "job"},
      {"a number too large", "protocol=1\0attempt=4294967296\0argv=x\0end=\0"s, "attempt"},
      {"a negative time", "protocol=1\0grace=-1\0argv=x\0end=\0"s, "grace"},
      {"an umask out of range", "protocol=1\0umask=512\0argv=x\0end=\0"s, "umask"},
      {"a CPU that is none", "protocol=1\0cpu=-1\0argv=x\0end=\0"s, "cpu"},
      {"no program", "protocol=1\0job=1\0end=\0"s, "no program"},
      {"no end", "protocol=1\0job=1\0argv=x\0"s, "cut short"},
  };
  for (const auto& row : kTable) {
    const auto order = decode_order(row.text);
    ASSERT_FALSE(order) << row.name;
    EXPECT_NE(order.error().find(row.says), std::string::npos) << row.name << ": " << order.error();
  }
}

}  // namespace
}  // namespace gflow::attempt

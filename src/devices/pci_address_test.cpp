// SPDX-License-Identifier: Apache-2.0
#include "devices/pci_address.h"

#include <gtest/gtest.h>

namespace gflow::devices {
namespace {

TEST(PciAddress, OneFormForAll) {
  struct Case {
    const char* text;
    const char* wanted;  // "" for none
  };
  const Case cases[] = {
      {"00000000:3B:00.0", "0000:3b:00.0"},
      {"0000:3b:00.0", "0000:3b:00.0"},
      {"3b:00.0", "0000:3b:00.0"},
      {"00010000:E1:1F.7", "10000:e1:1f.7"},
      {"", ""},
      {"0000:3b:00", ""},
      {"0000:3b:00.8", ""},
      {"0000:3b:20.0", ""},
      {"0000:100:00.0", ""},
      {"000000000:3b:00.0.0", ""},
      {"0000:-1:00.0", ""},
      {"100000000:3b:00.0", ""},
  };
  for (const Case& c : cases)
    EXPECT_EQ(normal_pci_address(c.text).value_or(""), c.wanted) << c.text;
}

TEST(PciAddress, OrderIsByNumber) {
  EXPECT_TRUE(pci_before("0000:3b:00.0", "0001:01:00.0"));
  EXPECT_TRUE(pci_before("ffff:01:00.0", "10000:01:00.0"));  // as text it would be the other way
  EXPECT_TRUE(pci_before("0000:1b:00.0", "0000:1B:01.0"));
  EXPECT_FALSE(pci_before("0000:1b:00.0", "0000:1B:00.0"));
  EXPECT_TRUE(pci_before("0000:ff:1f.7", ""));
}

}  // namespace
}  // namespace gflow::devices

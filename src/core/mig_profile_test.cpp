// SPDX-License-Identifier: Apache-2.0
#include "core/mig_profile.h"

#include <gtest/gtest.h>

namespace gflow {
namespace {

TEST(MigProfile, IsReadWhereItStands) {
  struct Row {
    std::string_view text;
    std::string_view profile;  ///< "": there is none
  };
  for (const Row& row : {Row{"NVIDIA A100-SXM4-40GB MIG 1g.5gb", "1g.5gb"},
                         Row{"NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb", "1c.3g.40gb"},
                         Row{"3c.3g.40gb", "3g.40gb"},
                         Row{"1G.10GB+ME", "1g.10gb+me"},
                         Row{"1g.24gb+me.all", "1g.24gb+me.all"},
                         Row{"2g.48gb-me", "2g.48gb-me"},
                         Row{"mig-1g.10gb.me", "1g.10gb+me"},
                         Row{"MIG-1g.10gb-SHARED", "1g.10gb"},
                         Row{"a100_3g.20gb", "3g.20gb"},
                         Row{"NVIDIA H100 80GB HBM3", ""},
                         Row{"3g.20g", ""},
                         Row{"3g.20gbx", ""},
                         Row{"4c.3g.20gb", ""},
                         Row{"0g.5gb", ""},
                         Row{"x3g.20gb", ""},
                         Row{"1g.", ""},
                         Row{"", ""}}) {
    const auto found = find_mig_profile(row.text);
    EXPECT_EQ(found ? mig_profile_text(found->profile) : "", row.profile) << row.text;
  }
}

TEST(MigProfile, IsTheWholeText) {
  EXPECT_EQ(parse_mig_profile("1c.3g.20gb"), (MigProfile{1, 3, 20}));
  EXPECT_EQ(parse_mig_profile("3g.20gb"), (MigProfile{3, 3, 20}));
  EXPECT_EQ(parse_mig_profile("A100-3g.20gb"), std::nullopt);
  EXPECT_EQ(parse_mig_profile("3g.20gb-SHARED"), std::nullopt);
}

}  // namespace
}  // namespace gflow

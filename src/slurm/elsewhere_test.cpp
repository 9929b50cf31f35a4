// SPDX-License-Identifier: Apache-2.0
#include "slurm/elsewhere.h"

#include <gtest/gtest.h>

#include "server/facade_for_tests.h"

namespace gflow::slurm {
namespace {

TEST(Elsewhere, HasEachRouteThatIsNotDoneHere) {
  EXPECT_EQ(server::faults_of(elsewhere_of_slurm()), std::vector<std::string>{});
}

}  // namespace
}  // namespace gflow::slurm

// SPDX-License-Identifier: Apache-2.0
#include "kube/elsewhere.h"

#include <gtest/gtest.h>

#include "server/facade_for_tests.h"

namespace gflow::kube {
namespace {

TEST(Elsewhere, HasEachRouteThatIsNotDoneHere) {
  EXPECT_EQ(server::faults_of(elsewhere_of_cluster(), {"POST /api/v1/defrag"}),
            std::vector<std::string>{});
}

}  // namespace
}  // namespace gflow::kube

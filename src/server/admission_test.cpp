// SPDX-License-Identifier: Apache-2.0
#include "server/admission.h"

#include <gtest/gtest.h>

#include <vector>

namespace gflow::server {
namespace {

constexpr Admission::Limits kPlenty{.connections = 1000, .bodies = Memory::mib(1)};

Guest by(Via via) { return {.peer = {1000, 1, {1000}}, .via = via, .address = "127.0.0.1:1"}; }

/// How many connections one user gets this way, with those of before open still.
std::size_t most_of(Admission& admission, Via via, std::vector<Admission::Lease>& open) {
  const std::size_t before = open.size();
  while (auto lease = admission.take_connection(by(via))) open.push_back(std::move(*lease));
  return open.size() - before;
}

struct Row {
  std::size_t most;
  std::size_t over_tcp;
  std::size_t then_by_socket;
};

TEST(Admission, CommandsGetInHoweverManyConnectionsTheirUserHasOverTcp) {
  for (const Row& row : {Row{256, 192, 64}, Row{16, 12, 4}, Row{3, 2, 1}, Row{2, 1, 1}}) {
    Admission admission(kPlenty, kPlenty, row.most);
    std::vector<Admission::Lease> open;
    EXPECT_EQ(most_of(admission, Via::Tcp, open), row.over_tcp) << row.most;
    EXPECT_EQ(most_of(admission, Via::Unix, open), row.then_by_socket) << row.most;
    open.clear();
    EXPECT_EQ(most_of(admission, Via::Unix, open), row.most);
  }
}

}  // namespace
}  // namespace gflow::server

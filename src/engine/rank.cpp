// SPDX-License-Identifier: Apache-2.0
#include "engine/feasible.h"
#include "engine/index.h"
#include "engine/state.h"

namespace gflow::engine {

Result<std::vector<placement::Ranked>> State::rank(const Request& request, std::size_t most) const {
  // What the index keeps of demands and scores may grow; nothing that decides changes.
  Index& index = *index_;
  GF_CHECK(check_request(index, request));
  const placement::DemandIndex demand = index.ledger.intern(placement::demand_of(request));
  return index.placer->rank(index.ledger, demand, most);
}

}  // namespace gflow::engine

// SPDX-License-Identifier: Apache-2.0
#include "engine/feasible.h"
#include "engine/index.h"
#include "engine/state.h"

namespace gflow::engine {

Result<std::vector<placement::Ranked>> State::rank(const Request& request, std::size_t most) const {
  // Scores are kept with the index; nothing that decides changes.
  Index& index = *index_;
  GF_CHECK(check_request(index, request));
  const PassingDemand passing(index, request);
  return index.placer->rank(index.ledger, passing.index(), most);
}

}  // namespace gflow::engine

// SPDX-License-Identifier: Apache-2.0
#include "daemon/slices_of_boot.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace gflow::daemon {

/// Whatever is committed next says that this boot was seen.
Result<void> forget_slices_of_another_boot(store::Loaded& loaded,
                                           store::Store& store,
                                           const std::string& boot_id) {
  if (loaded.slices.empty() || loaded.lived.boot_id == boot_id) return {};
  spdlog::info("{} slices that were made before the machine was started again are gflow's no more",
               loaded.slices.size());
  loaded.slices.clear();
  store::Batch none;
  none.slices = loaded.slices;
  return store.commit(none);
}

}  // namespace gflow::daemon

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>

#include <vector>

#include "core/made_slice.h"

/// The table made_slices. Both throw SQLite::Exception.
namespace gflow::store {

/// All of them, by node, GPU and place.
[[nodiscard]] std::vector<MadeSlice> read_slice_rows(SQLite::Database& database);
/// These instead of those there are; to be called in a transaction.
void write_slice_rows(SQLite::Database& database, const std::vector<MadeSlice>& slices);

}  // namespace gflow::store

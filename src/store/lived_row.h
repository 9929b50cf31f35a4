// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>

#include "store/store.h"

namespace gflow::store {

/// What the table meta says. Throws SQLite::Exception.
[[nodiscard]] Lived read_lived(SQLite::Database& database);

}  // namespace gflow::store

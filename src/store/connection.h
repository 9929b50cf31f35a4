// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>

#include <cstdint>
#include <future>
#include <optional>
#include <string>

#include "base/result.h"
#include "store/sidecar.h"

namespace gflow::store {

constexpr std::string_view kMemoryPath = ":memory:";

/// The connection to a database of the newest schema, locked.
struct Connection {
  SQLite::Database database;
  std::optional<Sidecar> sidecar;  ///< none for ":memory:"
  /// Whether what is in it is in order, as a thread over a connection of its own finds; before that
  /// nothing may be written. Not valid where there is nothing to find out.
  std::shared_future<Result<void>> content_check;
};

enum class Checkpoint : std::uint8_t { No, Yes };
/// A database that is refused is left as it is, with its WAL: No, until all of it was found to be
/// in order.
void checkpoint_on_close(SQLite::Database& database, Checkpoint checkpoint);

/// Opens or creates. Throws SQLite::Exception as well: see open_error().
[[nodiscard]] Result<Connection> connect(const std::string& path);

/// The error of a database that has lost something, with the way out. Code::Damaged.
[[nodiscard]] std::unexpected<Error> damaged(const std::string& path, std::string_view detail);

/// What SQLite said when a store was opened or read, with a way out. Code::Damaged if the file is
/// to blame, and not the disk, its owner or who else has it open.
[[nodiscard]] std::unexpected<Error> open_error(const SQLite::Exception& exception,
                                                const std::string& path);

}  // namespace gflow::store

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "store/query.h"

/// What is run, as a row of the table payloads.
namespace gflow::store {

constexpr std::string_view kSavePayloadSql =
    "INSERT INTO payloads (job, argv, script, environment, config_name, config, umask) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)";
constexpr std::string_view kSaveSharedSql =
    "INSERT INTO shared_payloads (argv, script, environment, config_name, config, umask) "
    "VALUES (?, ?, ?, ?, ?, ?)";
constexpr std::string_view kLoadPayloadSql =
    "SELECT own.argv, own.script, own.environment, own.config_name, own.config, own.umask, "
    "sharer.shared, shared.id, shared.argv, shared.script, shared.environment, "
    "shared.config_name, shared.config, shared.umask FROM payloads AS own "
    "LEFT JOIN payload_sharers AS sharer ON sharer.job = own.job "
    "LEFT JOIN shared_payloads AS shared ON shared.id = sharer.shared WHERE own.job = ?";

constexpr std::string_view kFindSharedSql =
    "SELECT argv, script, environment, config_name, config, umask FROM shared_payloads "
    "WHERE id = ?";

/// Binds kSavePayloadSql and runs it.
void save_payload(Query& query, JobId job, const Payload& payload);
/// Binds kSaveSharedSql and runs it.
void save_shared(Query& query, const Payload& payload);
/// The row of kLoadPayloadSql the query is at, complete. Throws SQLite::Exception for what cannot
/// be.
[[nodiscard]] Payload read_payload(Query& query);

/// The same of kFindSharedSql.
[[nodiscard]] Payload read_shared(Query& query);

/// Each string as its length in 4 bytes, little-endian, then itself: any bytes, NUL too.
[[nodiscard]] std::string pack(const std::vector<std::string>& strings);
/// Empty if it is not what pack() writes.
[[nodiscard]] std::optional<std::vector<std::string>> unpack(std::string_view packed);

}  // namespace gflow::store

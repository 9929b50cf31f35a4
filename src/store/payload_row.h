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
constexpr std::string_view kLoadPayloadSql =
    "SELECT argv, script, environment, config_name, config, umask FROM payloads WHERE job = ?";

/// Binds kSavePayloadSql and runs it.
void save_payload(Query& query, JobId job, const Payload& payload);
/// The row the query is at. Throws SQLite::Exception for what cannot be.
[[nodiscard]] Payload read_payload(Query& query);

/// Each string as its length in 4 bytes, little-endian, then itself: any bytes, NUL too.
[[nodiscard]] std::string pack(const std::vector<std::string>& strings);
/// Empty if it is not what pack() writes.
[[nodiscard]] std::optional<std::vector<std::string>> unpack(std::string_view packed);

}  // namespace gflow::store

// SPDX-License-Identifier: Apache-2.0
#include "store/payload_row.h"

#include <SQLiteCpp/Exception.h>

#include <cstddef>
#include <utility>

#include "core/task_payload.h"

namespace gflow::store {
namespace {

constexpr std::size_t kLengthBytes = 4;

std::vector<std::string> unpacked(std::string_view column, const std::string& packed) {
  auto strings = unpack(packed);
  if (!strings) throw SQLite::Exception("payload: damaged " + std::string(column));
  return std::move(*strings);
}

}  // namespace

std::string pack(const std::vector<std::string>& strings) {
  std::size_t size = 0;
  for (const std::string& text : strings) size += kLengthBytes + text.size();
  std::string packed;
  packed.reserve(size);
  for (const std::string& text : strings) {
    for (std::size_t byte = 0; byte < kLengthBytes; ++byte) {
      packed += static_cast<char>(text.size() >> (8 * byte) & 0xff);
    }
    packed += text;
  }
  return packed;
}

std::optional<std::vector<std::string>> unpack(std::string_view packed) {
  std::vector<std::string> strings;
  while (!packed.empty()) {
    if (packed.size() < kLengthBytes) return std::nullopt;
    std::size_t length = 0;
    for (std::size_t byte = 0; byte < kLengthBytes; ++byte) {
      length |= static_cast<std::size_t>(static_cast<unsigned char>(packed[byte])) << (8 * byte);
    }
    packed.remove_prefix(kLengthBytes);
    if (length > packed.size()) return std::nullopt;
    strings.emplace_back(packed.substr(0, length));
    packed.remove_prefix(length);
  }
  return strings;
}

namespace {

/// The columns both tables have.
void run_with(Query& query, const Payload& payload) {
  const std::string argv = pack(payload.argv);
  const std::string environment = pack(payload.environment);
  query.blob(argv);
  payload.script ? query.blob(*payload.script) : query.null();
  query.blob(environment);
  payload.config_name ? query.text(*payload.config_name) : query.null();
  query.blob(payload.config).integer(payload.umask).run();
}

Payload read_part(Query& query) {
  Payload payload;
  payload.argv = unpacked("argv", query.text());
  payload.script = query.optional_text();
  payload.environment = unpacked("environment", query.text());
  payload.config_name = query.optional_text();
  payload.config = query.text();
  payload.umask = query.as<std::uint32_t>();
  return payload;
}

}  // namespace

void save_payload(Query& query, JobId job, const Payload& payload) {
  query.integer(static_cast<std::int64_t>(job.value));
  run_with(query, payload);
}

void save_shared(Query& query, const Payload& payload) { run_with(query, payload); }

Payload read_shared(Query& query) { return read_part(query); }

Payload read_payload(Query& query) {
  Payload own = read_part(query);
  const auto wanted = query.optional<std::int64_t>();
  const auto found = query.optional<std::int64_t>();
  if (!wanted) return own;
  if (!found) throw SQLite::Exception("payload: what it shares with others is gone");
  const Payload shared = read_part(query);
  return complete(&shared, std::move(own));
}

}  // namespace gflow::store

// SPDX-License-Identifier: Apache-2.0
#include "store/slice_rows.h"

#include "store/query.h"

namespace gflow::store {

std::vector<MadeSlice> read_slice_rows(SQLite::Database& database) {
  std::vector<MadeSlice> slices;
  Statement all(database,
                "SELECT node, gpu, profile, start, size, stage, uuid, gpu_instance, job FROM "
                "made_slices ORDER BY node, gpu, start");
  Query query(all);
  while (query.step()) {
    MadeSlice& slice = slices.emplace_back();
    slice.node = query.text();
    slice.gpu = query.text();
    slice.profile = query.text();
    slice.start = query.as<int>();
    slice.size = query.as<int>();
    slice.stage = static_cast<SliceStage>(query.as<int>());
    slice.uuid = query.text();
    slice.gpu_instance = query.as<int>();
    if (const auto job = query.optional<std::uint64_t>()) slice.job = JobId(*job);
  }
  return slices;
}

void write_slice_rows(SQLite::Database& database, const std::vector<MadeSlice>& slices) {
  database.exec("DELETE FROM made_slices");
  Statement add(database,
                "INSERT INTO made_slices (node, gpu, profile, start, size, stage, uuid, "
                "gpu_instance, job) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const MadeSlice& slice : slices) {
    Query query(add);
    query.text(slice.node).text(slice.gpu).text(slice.profile);
    query.integer(slice.start).integer(slice.size).integer(static_cast<int>(slice.stage));
    query.text(slice.uuid).integer(slice.gpu_instance);
    if (slice.job) {
      query.integer(static_cast<std::int64_t>(slice.job->value));
    } else {
      query.null();
    }
    query.run();
  }
}

}  // namespace gflow::store

// SPDX-License-Identifier: Apache-2.0
#include "store/job_row.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "store/columns.h"
#include "store/samples.h"

namespace gflow::store {
namespace {

/// Name and whether it is NOT NULL, of each column the schema has.
std::map<std::string, bool> columns_of_schema() {
  const samples::Directory directory;
  const std::string path = directory.file("new.db");
  samples::open(path).reset();
  SQLite::Database database(path, SQLite::OPEN_READONLY);
  SQLite::Statement rows(database, "SELECT name, \"notnull\" FROM pragma_table_info('jobs')");
  std::map<std::string, bool> columns;
  while (rows.executeStep()) {
    columns['"' + rows.getColumn(0).getString() + '"'] = rows.getColumn(1).getInt() != 0;
  }
  return columns;
}

TEST(JobRow, DescriptionAndSchemaHaveTheSameColumns) {
  std::set<std::string> schema;
  for (const auto& [name, not_null] : columns_of_schema()) schema.insert(name);
  const std::vector<std::string> listed = job_columns();
  const std::set<std::string> described(listed.begin(), listed.end());
  EXPECT_EQ(described, schema);
  EXPECT_EQ(described.size(), listed.size()) << "a column stands there twice";
}

// A field that is NULL for its default must be allowed to be, and one that is always written must
// not be NULL in a row somebody else wrote.
TEST(JobRow, ColumnsAreNotNullWhereFieldsAreAlwaysStored) {
  const std::map<std::string, bool> schema = columns_of_schema();
  const Job job;
  each_leaf(
      [&schema](const auto& row, const auto& value) {
        if (row.stored == Stored::Elsewhere) return;
        if constexpr (kIsColumn<decltype(value)>) {
          const std::string column = '"' + std::string(row.column_name()) + '"';
          ASSERT_TRUE(schema.contains(column)) << column;
          EXPECT_EQ(schema.at(column), row.stored == Stored::Always) << column;
        }
      },
      job);
}

}  // namespace
}  // namespace gflow::store

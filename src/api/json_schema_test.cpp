// SPDX-License-Identifier: Apache-2.0
#include "api/json_schema.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace gflow::api {
namespace {

// GFLOW_BLESS=1 writes the document anew.
TEST(JobSchema, IsTheDocument) {
  const std::string path = GFLOW_SOURCE_DIR "/docs/format/job.schema.json";
  if (std::getenv("GFLOW_BLESS") != nullptr) std::ofstream(path) << job_schema();
  std::ifstream file(path);
  const std::string document(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(job_schema(), document) << "run this test with GFLOW_BLESS=1";
}

}  // namespace
}  // namespace gflow::api

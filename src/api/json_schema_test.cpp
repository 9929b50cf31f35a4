// SPDX-License-Identifier: Apache-2.0
#include "api/json_schema.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "api/documents.h"
#include "api/schema_writer.h"

namespace gflow::api {
namespace {

struct Box {
  int size = 0;
};
struct Crate {
  int weight = 0;
};
struct Cellar {
  Box box;
};
struct Attic {
  Box box;
  Crate crate;
};

}  // namespace

template <>
inline constexpr std::string_view kSchemaName<Box> = "Box";
template <class Io, Like<Box> T>
void fields(Io& io, T& box) {
  io.field("size", box.size);
}

template <>
inline constexpr std::string_view kSchemaName<Crate> = "Box";
template <class Io, Like<Crate> T>
void fields(Io& io, T& crate) {
  io.field("weight", crate.weight);
}

template <class Io, Like<Cellar> T>
void fields(Io& io, T& cellar) {
  io.field("box", cellar.box);
}

template <class Io, Like<Attic> T>
void fields(Io& io, T& attic) {
  io.field("box", attic.box);
  io.field("crate", attic.crate);
}

namespace {

TEST(Schemas, NoTwoOfTheInterfaceHaveOneName) {
  Schemas schemas;
  describe_documents(schemas);
  EXPECT_EQ(schemas.shared_names(), std::set<std::string>());
}

TEST(Schemas, TwoTypesOfOneNameAreFound) {
  Schemas schemas;
  schemas.document<Cellar>("Cellar", Form::Answer);
  schemas.document<Box>("Box", Form::Answer);
  EXPECT_EQ(schemas.shared_names(), std::set<std::string>());
  schemas.document<Attic>("Attic", Form::Answer);
  EXPECT_EQ(schemas.shared_names(), std::set<std::string>{"BoxShown"});
  schemas.document<Crate>("Box", Form::Answer);
  EXPECT_EQ(schemas.shared_names(), (std::set<std::string>{"Box", "BoxShown"}));
}

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

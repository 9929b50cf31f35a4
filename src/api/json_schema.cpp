// SPDX-License-Identifier: Apache-2.0
#include "api/json_schema.h"

#include "api/spec_fields.h"

namespace gflow::api {

std::string job_schema() {
  Value schema = Members()
                     .add("$schema", "https://json-schema.org/draft/2020-12/schema")
                     .add("title", "gflow job specification")
                     .value();
  Value object = SchemaWriter::object(JobSpec{}, Form::Request, nullptr);
  for (Member& member : std::get<Value::Object>(object.data)) {
    std::get<Value::Object>(schema.data).push_back(std::move(member));
  }
  return json_text(schema, 2) + '\n';
}

}  // namespace gflow::api

// SPDX-License-Identifier: Apache-2.0
#include "api/job_fields.h"
#include "api/json.h"

namespace gflow::api {

template <class Io, Like<JobPage> T>
void fields(Io& io, T& page) {
  io.required("jobs", page.jobs);
  io.field("next_after", page.next_after);
  io.field("revision", page.revision);
}

std::string write(const JobView& job) { return Writer::document("Job", job); }

Result<JobView> read_job(std::string_view json) {
  return Reader::document<JobView>(json, "Job", Unknown::Ignored);
}

std::string write(const JobPage& page) { return Writer::document("JobPage", page); }

Result<JobPage> read_job_page(std::string_view json) {
  return Reader::document<JobPage>(json, "JobPage", Unknown::Ignored);
}

}  // namespace gflow::api

// SPDX-License-Identifier: Apache-2.0
#include "api/job_fields.h"
#include "api/job_page.h"
#include "api/json.h"

namespace gflow::api {

template <class Io, Like<JobPage> T>
void fields(Io& io, T& page) {
  io.required("jobs", page.jobs);
  io.field("next_after", page.next_after);
  io.field("revision", page.revision);
}

/// JobPage with its jobs written already.
struct JobPageWriter::Page {
  std::vector<Verbatim> jobs;
  std::optional<JobId> next_after;
  std::uint64_t revision = 0;

  friend void fields(Writer& io, const Page& page) {
    io.required("jobs", page.jobs);
    io.field("next_after", page.next_after);
    io.field("revision", page.revision);
  }
};

std::string write(const JobView& job) { return Writer::document("Job", job); }

Result<JobView> read_job(std::string_view json) {
  return Reader::document<JobView>(json, "Job", Unknown::Ignored);
}

std::string write(const JobPage& page) { return Writer::document("JobPage", page); }

Result<JobPage> read_job_page(std::string_view json) {
  return Reader::document<JobPage>(json, "JobPage", Unknown::Ignored);
}

JobPageWriter::JobPageWriter(std::size_t max_bytes)
    : page_(std::make_unique<Page>()), max_bytes_(max_bytes) {}
JobPageWriter::~JobPageWriter() = default;

bool JobPageWriter::add(const JobView& job) {
  Verbatim text = Writer::verbatim(job);
  if (!page_->jobs.empty() && bytes_ + text.json.size() > max_bytes_) return false;
  bytes_ += text.json.size();
  page_->jobs.push_back(std::move(text));
  last_ = job.id;
  return true;
}

void JobPageWriter::more() { page_->next_after = last_; }

std::string JobPageWriter::finish(std::uint64_t revision) {
  page_->revision = revision;
  return Writer::document("JobPage", *page_);
}

}  // namespace gflow::api

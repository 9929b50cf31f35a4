// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "api/documents.h"
#include "api/job_fields.h"
#include "api/job_page.h"
#include "api/json.h"
#include "base/text.h"

namespace gflow::api {

/// All of a page but its jobs.
template <class Io, class T>
void fields_behind_jobs(Io& io, T& page) {
  io.known_text("next", page.next);
  io.field("next_after", page.next_after);
  io.field("revision", page.revision);
}

template <class Io, Like<JobPage> T>
void fields(Io& io, T& page) {
  io.selection("jobs", page.jobs);
  fields_behind_jobs(io, page);
}

/// JobPage with its jobs written already.
struct JobPageWriter::Page {
  std::vector<Verbatim> jobs;
  std::string next;
  std::optional<JobId> next_after;
  std::uint64_t revision = 0;
  FieldFilter filter;  ///< of each job

  friend void fields(Writer& io, const Page& page) {
    io.required("jobs", page.jobs);
    fields_behind_jobs(io, page);
  }
};

std::string write(const JobView& job) { return Writer::document("Job", job); }

Result<JobView> read_job(std::string_view json) { return Reader::answer<JobView>(json, "Job"); }

std::string write(const JobPage& page) { return Writer::document("JobPage", page); }

Result<JobPage> read_job_page(std::string_view json) {
  return Reader::answer<JobPage>(json, "JobPage");
}

namespace {

/// "spec.request.gpus" of an object, or what it has in its place.
bool has_field(const nlohmann::json& object, std::string_view name) {
  const std::size_t dot = name.find('.');
  const auto found = object.find(name.substr(0, dot));
  if (found == object.end() || dot == std::string_view::npos) return found != object.end();
  return found->is_object() && has_field(*found, name.substr(dot + 1));
}

}  // namespace

Result<void> check_job_fields(std::span<const std::string> fields) {
  static const nlohmann::json sample = nlohmann::json::parse(Writer::verbatim(JobView{}).json);
  for (const std::string& name : fields) {
    if (has_field(sample, name)) continue;
    std::vector<std::string> names;
    for (const auto& [field, value] : sample.items()) names.push_back(field);
    return fail(Code::Usage,
                fmt::format("fields: a job has no '{}'; there are {}, and such as spec.name",
                            printable(name),
                            join(names, ", ")));
  }
  return {};
}

JobPageWriter::JobPageWriter(std::size_t max_bytes, std::span<const std::string> fields)
    : page_(std::make_unique<Page>()), max_bytes_(max_bytes) {
  if (fields.empty()) return;
  std::vector<std::string> names(fields.begin(), fields.end());
  names.emplace_back("id");
  page_->filter = FieldFilter(names);
}
JobPageWriter::~JobPageWriter() = default;

bool JobPageWriter::add(const JobView& job) {
  Verbatim text = Writer::verbatim(job, page_->filter);
  if (!page_->jobs.empty() && bytes_ + text.json.size() > max_bytes_) return false;
  bytes_ += text.json.size();
  page_->jobs.push_back(std::move(text));
  last_ = job.id;
  return true;
}

void describe_jobs(Schemas& schemas) {
  schemas.document<JobView>("Job", Form::Answer);
  schemas.document<JobPage>("JobPage", Form::Answer);
}

void JobPageWriter::more() {
  page_->next = std::to_string(last_.value);
  page_->next_after = last_;
}

void JobPageWriter::more(std::string cursor) { page_->next = std::move(cursor); }

const std::string& JobPageWriter::next() const { return page_->next; }

std::string JobPageWriter::finish(std::uint64_t revision) {
  page_->revision = revision;
  return Writer::document("JobPage", *page_);
}

JobPagePieces::JobPagePieces(std::uint64_t revision) {
  JobPage none;
  none.revision = revision;
  const std::string text = write(none);
  const std::size_t jobs = text.find("[]") + 1;  // nothing before them is a list
  begin_ = text.substr(0, jobs);
  end_ = text.substr(jobs);
}

std::string JobPagePieces::add(std::span<const JobView> jobs) {
  std::string text;
  for (const JobView& job : jobs) {
    if (std::exchange(has_jobs_, true)) text += ',';
    text += Writer::verbatim(job).json;
  }
  return text;
}

}  // namespace gflow::api

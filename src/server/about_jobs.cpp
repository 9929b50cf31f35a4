// SPDX-License-Identifier: Apache-2.0
#include "api/json.h"
#include "base/translate.h"
#include "core/job_description.h"
#include "core/job_query.h"
#include "core/status.h"
#include "server/about.h"

namespace gflow::server::about {
namespace {

using api::QueryParameter;
using enum QueryParameter::Type;
using Many = QueryParameter::Many;
using Need = QueryParameter::Need;

constexpr auto kStatusNames = [] {
  std::array<std::string_view, kStatuses.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kStatuses[i].name;
  return names;
}();
constexpr Range kPage = {1, static_cast<std::int64_t>(api::kMaxJobsOnPage)};
constexpr Range kNumbers = {0, INT64_MAX};

}  // namespace

constexpr api::Operation kListJobs = {
    .id = "list_jobs",
    .tag = "jobs",
    .summary = tr_later("List jobs"),
    .description = tr_later(
        "There are more as long as next is not null: ask again with after= it. A page may hold "
        "fewer jobs than limit. Jobs that come and end meanwhile move none to another page."),
    .query = {QueryParameter{.name = "state",
                             .help = tr_later("in any of these states"),
                             .words = kStatusNames,
                             .many = Many::Commas,
                             .example = "Queued,Running,Finished"},
              {.name = "user", .help = tr_later("of any of these users"), .many = Many::Commas},
              {.name = "name",
               .help = tr_later("with any of these names; * and ? stand for others"),
               .many = Many::Repeated,
               .example = "train*"},
              {.name = "project", .help = tr_later("of this project")},
              {.name = "group", .help = tr_later("of this group")},
              {.name = "job",
               .help = tr_later("of these numbers: 1,3,5-7"),
               .pattern =
                   "^[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?(,[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?)*$",
               .example = "1-3"},
              {.name = "since",
               .help = tr_later("submitted at this time or later"),
               .type = Time,
               .example = "2026-01-01T00:00:00Z"},
              {.name = "after",
               .help = tr_later("what the page before had as next; in the order by id a number of "
                                "a job"),
               .pattern = "^([0-9]{1,18}|c[A-Za-z0-9_-]*)$"},
              {.name = "limit",
               .help = tr_later("jobs on a page"),
               .type = Number,
               .range = kPage,
               .example = "50"},
              {.name = "sort",
               .help = tr_later("by this; with - before it backwards"),
               .pattern = "^-?(id|state|time|name|gpus|priority)$",
               .example = "id"},
              {.name = "reverse", .help = tr_later("from the other end"), .type = Truth},
              {.name = "fields",
               .help = tr_later("only these of each job, and its id: status,spec.name"),
               .many = Many::Commas,
               .example = "status,spec.name"}},
    .answers = {{{200, "JobPage"}}},
};

constexpr api::Operation kSubmitJobs = {
    .id = "submit_jobs",
    .tag = "jobs",
    .summary = tr_later("Submit jobs"),
    .description = tr_later(
        "All of them are taken or none, and answered when they are on disk. work_dir and argv have "
        "to be given; an empty name asks for one to be made up."),
    .body = "Submit",
    .example =
        R"({"items": [{"spec": {"name": "train", "request": {"gpus": 1}, "command": "sleep 600", "work_dir": "/"}, "payload": {"argv": ["sleep", "600"], "environment": ["PATH=/usr/bin:/bin"]}}]})",
    .takes_key = true,
    .answers = {{{201, "SubmitAnswer"}}},
    .errors = {404, 409, 422},
};

constexpr api::Operation kCheckJobs = {
    .id = "check_jobs",
    .tag = "jobs",
    .summary = tr_later("Whether a submission would be taken"),
    .description = tr_later("It is refused as the submission would be; nothing is done."),
    .body = "Submit",
    .example = R"({"items": [{"spec": {"work_dir": "/"}, "payload": {"argv": ["true"]}}]})",
    .answers = {{{200, "JobIds"}}},
    .errors = {404, 409, 422},
};

constexpr api::Operation kUpdateJobs = {
    .id = "update_jobs",
    .tag = "jobs",
    .summary = tr_later("Change what was asked for of jobs"),
    .description =
        tr_later("What is not given stays as it is. Until when a field may be changed is "
                 "in x-change: of a job that runs only what says active."),
    .body = "Update",
    .example = R"({"jobs": [3], "priority": 20})",
    .takes_match = true,
    .answers = {{{200, "JobIds"}}},
    .errors = {404, 409, 412, 422},
};

constexpr api::Operation kCancelJobs = {
    .id = "cancel_jobs",
    .tag = "jobs",
    .summary = tr_later("End jobs"),
    .description =
        tr_later("Those that run are told to end with SIGTERM, or signal if it is not 0."),
    .body = "Jobs",
    .example = R"({"jobs": [2]})",
    .answers = {{{200, "JobIds"}}},
    .errors = {404, 409},
};

constexpr api::Operation kSignalJobs = {
    .id = "signal_jobs",
    .tag = "jobs",
    .summary = tr_later("Send a signal to all processes of jobs that run"),
    .body = "Jobs",
    .example = R"({"jobs": [1], "signal": 10})",
    .answers = {{{200, "JobIds"}}},
    .errors = {404, 409},
};

constexpr api::Operation kHoldJobs = {
    .id = "hold_jobs",
    .tag = "jobs",
    .summary = tr_later("Hold jobs that wait"),
    .body = "Jobs",
    .example = R"({"jobs": [2]})",
    .answers = {{{200, "JobIds"}}},
    .errors = {404, 409},
};

constexpr api::Operation kReleaseJobs = {
    .id = "release_jobs",
    .tag = "jobs",
    .summary = tr_later("Release jobs on hold, now or at a time"),
    .body = "Jobs",
    .example = R"({"jobs": [2]})",
    .answers = {{{200, "JobIds"}}},
    .errors = {404, 409},
};

constexpr api::Operation kShowJob = {
    .id = "show_job",
    .tag = "jobs",
    .summary = tr_later("Show a job"),
    .description = tr_later(
        "Of the jobs of others command, work_dir, log_path and outcome.message are empty."),
    .segment = tr_later("number of the job"),
    .answers = {{{200, "Job"}}},
    .errors = {404},
};

constexpr api::Operation kUpdateJob = {
    .id = "update_job",
    .tag = "jobs",
    .summary = tr_later("Change what was asked for of a job"),
    .description = tr_later("As for many: what is not given stays as it is. It answers with the "
                            "job, and with its ETag for the next change."),
    .segment = tr_later("number of the job"),
    .body = "JobUpdate",
    .example = R"({"time_limit_seconds": 7200})",
    .takes_match = true,
    .answers = {{{200, "Job"}}},
    .errors = {404, 409, 412, 422},
};

constexpr api::Operation kCancelJob = {
    .id = "cancel_job",
    .tag = "jobs",
    .summary = tr_later("End a job"),
    .description = tr_later(
        "One that waits is cancelled at once; one that runs is told to end, and killed when its "
        "grace time is over. Those that depend on it are cancelled, too, unless they say not."),
    .query = {QueryParameter{.name = "signal",
                             .help = tr_later("told to end with this one, if it is not 0, in place "
                                              "of SIGTERM"),
                             .type = Number,
                             .range = kSignalRange,
                             .example = "0"}},
    .segment = tr_later("number of the job"),
    .takes_match = true,
    .answers = {{{200, "JobIds"}}},
    .errors = {404, 409, 412},
};

constexpr api::Operation kExplainJob = {
    .id = "explain_job",
    .tag = "jobs",
    .summary = tr_later("Why a job waits, until when, and what would start it sooner"),
    .description = tr_later(
        "What gjob why shows. A suggestion is what you may do: its changes are the body of PATCH "
        "/api/v1/jobs/{id}; where its action is release, POST /api/v1/jobs/release does it."),
    .segment = tr_later("number of the job"),
    .answers = {{{200, "Explanation"}}},
    .errors = {404},
};

constexpr api::Operation kShowNewestJob = {
    .id = "show_newest_job",
    .tag = "jobs",
    .summary = tr_later("Show your newest job"),
    .query = {QueryParameter{.name = "back",
                             .help = tr_later("how many newer jobs of yours to pass over"),
                             .type = Number,
                             .range = kNumbers,
                             .example = "0"}},
    .answers = {{{200, "Job"}}},
    .errors = {404},
};

constexpr api::Operation kShowJobLog = {
    .id = "show_job_log",
    .tag = "jobs",
    .summary = tr_later("What a job has written"),
    .description = tr_later(
        "Byte by byte as it was written: all of it, or the Range of a header. A body that breaks "
        "off is not all: from= goes on."),
    .query =
        {QueryParameter{.name = "tail",
                        .help = tr_later("only so many last lines"),
                        .type = Number,
                        .range = kNumbers,
                        .example = "10"},
         {.name = "from", .help = tr_later("from this byte on"), .type = Number, .range = kNumbers},
         {.name = "follow",
          .help = tr_later("what is written as it is written, until the job has ended"),
          .type = Truth}},
    .segment = tr_later("number of the job"),
    .answers = {{{200, "", "text/plain"}, {206, "", "text/plain"}}},
    .errors = {404, 416},
};

constexpr api::Operation kWaitForChange = {
    .id = "wait_for_change",
    .tag = "jobs",
    .summary = tr_later("Wait for a change"),
    .description =
        tr_later("Answers as soon as the revision is another one and, with job=, that job "
                 "changed since; at the latest after 55 s with the revision as it is."),
    .query = {QueryParameter{.name = "revision",
                             .help = tr_later("you know of"),
                             .type = Number,
                             .range = kNumbers,
                             .example = "0"},
              {.name = "job",
               .help = tr_later("wait for news of this job"),
               .type = Number,
               .range = kNumbers}},
    .answers = {{{200, "Changes"}}},
    .errors = {404},
};

constexpr api::Operation kListenToEvents = {
    .id = "listen_to_events",
    .tag = "jobs",
    .summary = tr_later("Listen to what happens"),
    .description = tr_later(
        "Server-sent events, from now on, or all that came after the one named. What happened to "
        "jobs has an id and is kept for a day; changes of devices and nodes have none and are not "
        "kept."),
    .query = {QueryParameter{.name = "job", .help = tr_later("only of these jobs: 1,3,5-7")},
              {.name = "user", .help = tr_later("of any of these users"), .many = Many::Commas},
              {.name = "type",
               .help = tr_later("only events of these types: job.started,job.ended"),
               .many = Many::Commas},
              {.name = "after",
               .help = tr_later("beyond the event of this id, as the header Last-Event-ID"),
               .type = Number,
               .range = kNumbers},
              {.name = "follow",
               .help = tr_later("false: only what happened by now"),
               .type = Truth,
               .example = "false"}},
    .answers = {{{200, "", "text/event-stream"}}},
    .errors = {410},
};

}  // namespace gflow::server::about

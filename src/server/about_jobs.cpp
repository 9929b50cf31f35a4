// SPDX-License-Identifier: Apache-2.0
#include "api/queue.h"
#include "base/translate.h"
#include "core/job_description.h"
#include "server/about.h"
#include "server/about_kinds.h"
#include "server/queries.h"

namespace gflow::server::about {
namespace {

constexpr std::string_view kJobSegment = tr_later("number of the job");
constexpr std::string_view kJobExample = "7";

}  // namespace

constexpr api::Operation kListJobs = {
    .id = "list_jobs",
    .tag = "jobs",
    .summary = tr_later("List jobs"),
    .description = tr_later(
        "There are more as long as next is not null: ask again with after= it. A page may hold "
        "fewer jobs than limit. Jobs that come and end meanwhile move none to another page."),
    .is_paged = true,
    .is_shared = true,
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
    .answers = {{{.status = 201, .document = "SubmitAnswer", .location = "/api/v1/jobs/{id}"}}},
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

constexpr api::Operation kCancelJobs = acts_on_jobs({
    .id = "cancel_jobs",
    .tag = "jobs",
    .summary = tr_later("End jobs"),
    .description =
        tr_later("Those that run are told to end with SIGTERM, or signal if it is not 0."),
    .example = R"({"jobs": [2]})",
});

constexpr api::Operation kSignalJobs = acts_on_jobs({
    .id = "signal_jobs",
    .tag = "jobs",
    .summary = tr_later("Send a signal to all processes of jobs that run"),
    .example = R"({"jobs": [1], "signal": 10})",
});

constexpr api::Operation kHoldJobs = acts_on_jobs({
    .id = "hold_jobs",
    .tag = "jobs",
    .summary = tr_later("Hold jobs that wait"),
    .example = R"({"jobs": [2]})",
});

constexpr api::Operation kReleaseJobs = acts_on_jobs({
    .id = "release_jobs",
    .tag = "jobs",
    .summary = tr_later("Release jobs on hold, now or at a time"),
    .example = R"({"jobs": [2]})",
});

constexpr api::Operation kSuspendJobs = acts_on_jobs({
    .id = "suspend_jobs",
    .tag = "jobs",
    .summary = tr_later("Suspend jobs that run"),
    .description = tr_later(
        "Their processes are stopped where they stand. They keep their memory, that of the GPUs, "
        "too, unless it comes to host memory meanwhile (parked of Job), and give back compute and "
        "CPUs, until they are resumed: not by gflow, whatever gets free. It answers with those "
        "that this changed: not with those that somebody has suspended "
        "already."),
    .example = R"({"jobs": [1]})",
});

constexpr api::Operation kResumeJobs = acts_on_jobs({
    .id = "resume_jobs",
    .tag = "jobs",
    .summary = tr_later("Resume jobs that somebody suspended"),
    .description = tr_later(
        "They go on where they stand once the compute that they gave back is free. It answers with "
        "those that this changed: not with those that nobody has suspended."),
    .example = R"({"jobs": [1]})",
});

constexpr api::Operation kShowJob = shows_one({
    .id = "show_job",
    .tag = "jobs",
    .summary = tr_later("Show a job"),
    .description = tr_later(
        "Of the jobs of others command, work_dir, log_path and outcome.message are empty; where "
        "[access] others_jobs is usage, name, project and group, too, and pid is 0. Where it is "
        "none "
        "they are answered as jobs that do not exist."),
    .segment = kJobSegment,
    .segment_example = kJobExample,
    .answers = {{{200, "Job"}}},
});

constexpr api::Operation kUpdateJob = {
    .id = "update_job",
    .tag = "jobs",
    .summary = tr_later("Change what was asked for of a job"),
    .description = tr_later("As for many: what is not given stays as it is. It answers with the "
                            "job, and with its ETag for the next change."),
    .segment = kJobSegment,
    .segment_example = kJobExample,
    .body = "JobUpdate",
    .example = R"({"time_limit_seconds": 7200})",
    .takes_match = true,
    .gives_tag = true,
    .answers = {{{200, "Job"}, {204}}},
    .errors = {404, 409, 412, 422},
};

constexpr api::Operation kCancelJob = acts_on_one({
    .id = "cancel_job",
    .tag = "jobs",
    .summary = tr_later("End a job"),
    .description = tr_later(
        "One that waits is cancelled at once; one that runs is told to end, and killed when its "
        "grace time is over. Those that depend on it are cancelled, too, unless they say not."),
    .segment = kJobSegment,
    .segment_example = kJobExample,
});

constexpr api::Operation kSuspendJob = acts_on_one({
    .id = "suspend_job",
    .tag = "jobs",
    .summary = tr_later("Suspend a job that runs"),
    .description = tr_later("As POST /api/v1/jobs/suspend does."),
    .segment = kJobSegment,
    .segment_example = kJobExample,
});

constexpr api::Operation kResumeJob = acts_on_one({
    .id = "resume_job",
    .tag = "jobs",
    .summary = tr_later("Resume a job that somebody suspended"),
    .description = tr_later("As POST /api/v1/jobs/resume does."),
    .segment = kJobSegment,
    .segment_example = kJobExample,
});

constexpr api::Operation kMoveJob = moves_one({
    .id = "move_job",
    .tag = "jobs",
    .summary = tr_later("Move a running job to another GPU of its node"),
    .description = tr_later(
        "Its programs run on; their calls of the driver wait for the seconds in which what they "
        "have of the GPU goes by way of host memory. Only a job with one whole NVIDIA GPU moves, "
        "to "
        "a free one of the same model and size, and where the driver can (580 or newer). It is "
        "answered as soon as that is decided: move of Job says from where to where until it is "
        "there, move_refused why it stayed."),
    .segment = kJobSegment,
    .segment_example = kJobExample,
    .body = "JobMove",
    .example = R"({"gpu": 1, "running_only": true})",
});

constexpr api::Operation kExplainJob = shows_one({
    .id = "explain_job",
    .tag = "jobs",
    .summary = tr_later("Why a job waits, until when, and what would start it sooner"),
    .description = tr_later(
        "What gjob why shows. A suggestion is what you may do: its changes are the body of PATCH "
        "/api/v1/jobs/{id}; where its action is release or resume, POST /api/v1/jobs/release or "
        "/api/v1/jobs/resume does it."),
    .segment = kJobSegment,
    .segment_example = kJobExample,
    .answers = {{{200, "Explanation"}}},
});

constexpr api::Operation kShowQueue = {
    .id = "show_queue",
    .tag = "jobs",
    .summary = tr_later("The queue in its order, and when its jobs should start"),
    .description = tr_later(
        "Jobs that may start as soon as there is room, in the order in which they are considered; "
        "then those that wait for a time, another job or the limit of their group, as they should "
        "start; not those that are held. expected_start is an estimate from time limits and from "
        "how long jobs alike ran, or (not_before) what it waits for at least, and null where these "
        "do not tell."),
    .is_shared = true,
    .answers = {{{200, "Queue"}}},
};

constexpr api::Operation kShowDefrag = {
    .id = "show_defrag",
    .tag = "jobs",
    .summary = tr_later("Which moves of running jobs would start those that wait"),
    .description = tr_later(
        "For the first jobs of the queue, in its order: the cheapest moves after which there is "
        "room, or why no move helps. Each begins where those before it end. A job that moves is "
        "one that may be stopped and queued again; it loses what it has run. Jobs that start "
        "together have one plan. Nothing is changed."),
    .is_shared = true,
    .answers = {{{200, "Defrag"}}},
};

constexpr api::Operation kApplyDefrag = {
    .id = "apply_defrag",
    .tag = "jobs",
    .summary = tr_later("Move running jobs to start one that waits"),
    .description = tr_later(
        "For the job with this id, the first for which GET tells moves, these jobs move, and are "
        "answered: they stop and are queued again behind it, as it gets a priority above theirs. "
        "Who asks must be allowed to change all of them, and to give that priority. 409 if they "
        "would not start it now."),
    .body = "DefragRequest",
    .example = R"({"id": 2, "moves": [1]})",
    .answers = {{{200, "JobIds"}}},
    .errors = {404, 409},
};

constexpr api::Operation kShowNewestJob = shows_one({
    .id = "show_newest_job",
    .tag = "jobs",
    .summary = tr_later("Show your newest job"),
    .answers = {{{200, "Job"}}},
});

constexpr api::Operation kShowJobLog = {
    .id = "show_job_log",
    .tag = "jobs",
    .summary = tr_later("What a job has written"),
    .description = tr_later(
        "Byte by byte as it was written: all of it, or the Range of a header. A body that breaks "
        "off is not all: from= goes on."),
    .segment = kJobSegment,
    .segment_example = kJobExample,
    .takes_range = true,
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
    .takes_event_id = true,
    .answers = {{{200, "", "text/event-stream"}}},
    .events = {"JobEvent", "DeviceEvent", "NodeEvent"},
    .errors = {410},
};

}  // namespace gflow::server::about

namespace gflow::api {

template <>
QueryTable<server::CancelQuery> query_table<server::CancelQuery>() {
  using Query = server::CancelQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::signal>(
          {.name = "signal",
           .help = tr_later("told to end with this one, if it is not 0, in place of SIGTERM"),
           .range = kSignalRange,
           .example = "0"}),
  });
  return {kRows};
}

/// How many jobs from the head of the queue are asked about.
template <class Query, std::size_t kMost>
QueryTable<Query> table_of_head() {
  static constexpr Range kJobs = {1, static_cast<std::int64_t>(kMost)};
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::most>({.name = "limit",
                               .help = tr_later("jobs from the head of the queue"),
                               .range = kJobs,
                               .example = "20"}),
  });
  return {kRows};
}

template <>
QueryTable<server::QueueQuery> query_table<server::QueueQuery>() {
  return table_of_head<server::QueueQuery, kMaxForecast>();
}

template <>
QueryTable<server::DefragQuery> query_table<server::DefragQuery>() {
  return table_of_head<server::DefragQuery, kMaxDefrag>();
}

template <>
QueryTable<server::NewestQuery> query_table<server::NewestQuery>() {
  using Query = server::NewestQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::back>({.name = "back",
                               .help = tr_later("how many newer jobs of yours to pass over"),
                               .example = "0"}),
  });
  return {kRows};
}

namespace {

Result<void> check_begin(server::LogQuery& query) {
  if (!query.tail || query.from == 0) return {};
  return fail(Code::Usage, tr("tail and from exclude each other: both say where to begin"));
}

}  // namespace

template <>
QueryTable<server::LogQuery> query_table<server::LogQuery>() {
  using Query = server::LogQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::tail>(
          {.name = "tail", .help = tr_later("only so many last lines"), .example = "10"}),
      parameter<&Query::from>({.name = "from", .help = tr_later("from this byte on")}),
      parameter<&Query::follow>(
          {.name = "follow",
           .help = tr_later("what is written as it is written, until the job has ended")}),
  });
  return {kRows, check_begin};
}

template <>
QueryTable<server::ChangesQuery> query_table<server::ChangesQuery>() {
  using Query = server::ChangesQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::revision>(
          {.name = "revision", .help = tr_later("you know of"), .example = "0"}),
      parameter<&Query::job>({.name = "job", .help = tr_later("wait for news of this job")}),
  });
  return {kRows};
}

}  // namespace gflow::api

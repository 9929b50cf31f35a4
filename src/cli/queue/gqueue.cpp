// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <utility>

#include "api/job_page.h"
#include "api/queue.h"
#include "api/waiting_jobs.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/queue/fetch.h"
#include "cli/queue/listing.h"
#include "cli/queue/options.h"
#include "cli/queue/screen.h"
#include "cli/queue/screen_stream.h"
#include "cli/queue/starts.h"
#include "cli/queue/watch.h"
#include "cli/selection.h"
#include "cli/selection_options.h"
#include "command/context.h"
#include "command/paged_text.h"
#include "os/clock.h"

namespace gflow::cli {

namespace {

Result<JobQuery> query_of(const Invocation& invocation, Context& context) {
  JobQuery query;
  // Who names a job is told why it is not listed.
  const bool all_states = invocation.has("all") || invocation.has("jobs");
  if (invocation.has("states")) {
    const std::string states = GF_TRY(selected_by(invocation, "states"));
    if (to_lower(trim(states)) == "all") {
      return fail(Code::Usage, tr("'all' is not a state; -a lists jobs in all states"));
    }
    query.statuses = GF_TRY(parse_statuses(states));
  } else if (invocation.has("completed")) {
    query.statuses = kEnded;
  } else if (!all_states) {
    query.statuses = invocation.has("start") ? kPending : kNotEnded;
  }
  query.users = GF_TRY(chosen_owners(invocation, context));
  query.names = parse_list(GF_TRY(selected_by(invocation, "names")));
  query.project = GF_TRY(selected_by(invocation, "project"));
  query.group = GF_TRY(selected_by(invocation, "group"));
  if (invocation.has("jobs")) {
    const std::vector<std::string> words = {invocation.get("jobs")};
    query.jobs = GF_TRY(resolve_jobs(words, context.daemon()));
  }
  if (invocation.has("since")) {
    query.submitted_since =
        GF_TRY(parse_since(invocation.get("since"), os::now().wall, os::utc_offset));
  }
  return query;
}

Format format_of(const Invocation& invocation) {
  const std::string form = invocation.get("output");
  if (form == "json" || (form.empty() && invocation.has("json"))) return Format::Json;
  if (form == "jsonl") return Format::JsonLines;
  if (form == "csv") return Format::Csv;
  if (form == "tsv") return Format::Tsv;
  if (form == "yaml") return Format::Yaml;
  return Format::Table;
}

/// Whether jobs are shown as screen.h does: to a person who asked for no form of their own.
bool is_for_screen(const Invocation& invocation, const Context& context) {
  return context.out_is_terminal && format_of(invocation) == Format::Table &&
         !invocation.has("output") && !invocation.has("format");
}

/// Options with which jobs are listed that have ended, too, or such states as are named.
constexpr std::array kOfAnyState = {"all", "completed", "jobs", "states"};

/// `more`: fields that this listing has besides those that each has.
Result<Listing> listing_of(const Invocation& invocation,
                           const Context& context,
                           std::span<const Field> more) {
  Listing listing;
  listing.format = format_of(invocation);
  const std::string wanted = invocation.get("format");
  if (wanted.find('{') != std::string::npos) {
    listing.text_template = GF_TRY(read_template(wanted, more));
    listing.format = Format::Template;
  } else if (invocation.has("format") || !is_for_screen(invocation, context)) {
    const std::string_view usual = invocation.has("start") ? kDefaultStartFields : kDefaultFields;
    listing.fields =
        GF_TRY(choose_fields(invocation.has("format") ? std::string_view(wanted) : usual, more));
  }
  if (invocation.has("tree")) listing.layout = Layout::Tree;
  if (invocation.has("by-state")) listing.layout = Layout::Grouped;
  if (invocation.has("noheader")) listing.header = Header::Hidden;
  listing.with_ended =
      std::ranges::any_of(kOfAnyState, [&](const char* option) { return invocation.has(option); });
  listing.by_start = invocation.has("start");
  listing.sorted = invocation.has("sort") || listing.by_start;
  // Who names jobs, or counts them, wants to see each.
  listing.folded = !invocation.has("jobs") && !invocation.has("limit") && !listing.sorted;
  return listing;
}

Result<long> limit_of(const Invocation& invocation) {
  const std::string text = invocation.get("limit");
  if (text.empty()) return 0;
  long limit = 0;
  const char* first = text.data() + (text.front() == '+' ? 1 : 0);
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, limit);
  if (error != std::errc{} || end != last) {
    return fail(Code::Usage, tr_format("--limit: '{}' is not a number", printable(text)));
  }
  return limit;
}

/// Whether jobs are listed below a line of counts: of the live view, whatever its columns.
bool shows_counts(const Listing& listing, const Invocation& invocation) {
  return invocation.has("watch") && listing.format == Format::Table;
}

/// What the daemon has to show of each job: no more than is looked at.
std::vector<std::string> fields_of(const Listing& listing, const Invocation& invocation) {
  if (is_screen(listing)) return screen_needs();
  std::vector<std::string> needs = needs_of(listing);
  if (!shows_counts(listing, invocation)) return needs;
  std::ranges::move(screen_needs(), std::back_inserter(needs));  // of its head, and its order
  return each_once(std::move(needs));
}

Result<JobOrder> order_of(const Invocation& invocation) {
  if (!invocation.has("sort")) return JobOrder{};
  auto order = parse_job_order(invocation.get("sort"));
  if (!order) return fail(order.error().code, "--sort: " + order.error().message);
  return order;
}

Result<int> run_watch(const Invocation& invocation,
                      Context& context,
                      const Listing& listing,
                      const Fetch& fetch) {
  return watch(context, listing, fetch, {GF_TRY(interval_of(invocation))});
}

void hint_at_why(Context& context, JobId job) {
  context.hint(tr_format("Why it waits: gjob why {}", job.value));
}

/// What a person may want to do next.
void hint_at_next(Context& context, const Listing& listing, const ListedJobs& listed) {
  const std::vector<api::JobView>& jobs = listed.page.jobs;
  if (jobs.empty() && listing.by_start) return context.hint(tr("No job waits."));
  if (jobs.empty()) {
    return context.hint(listing.with_ended ? tr("No jobs.")
                                           : tr("No jobs. 'gqueue -a' also lists ended jobs."));
  }
  if (!is_screen(listing)) return;
  const auto waits = [](const api::JobView& job) { return job.status == Status::Queued; };
  const auto is_listed = [&](const api::QueuedJob& one) {
    return std::ranges::any_of(
        jobs, [&](const api::JobView& job) { return job.id == one.id && waits(job); });
  };
  const auto first = std::ranges::find_if(listed.queue.jobs, is_listed);
  const auto waiting = std::ranges::find_if(jobs, waits);
  if (waiting == jobs.end()) return;
  const JobId next = first == listed.queue.jobs.end() ? waiting->id : first->id;
  hint_at_why(context, next);
}

void show_page(Context& context, const Listing& listing, const ListedJobs& listed) {
  if (!is_screen(listing)) {
    context.out << context.listing(
        [&] { return listing_text(listing, listed.page, context.paint); });
    return;
  }
  const Viewer viewer{viewer_name(context), os::now().wall, os::utc_offset, context.columns};
  if (!listed.page.jobs.empty()) {
    context.show(queue_screen(listing, listed, viewer, context.paint));
  }
}

/// Whether jobs can be taken page by page: nothing has to be put in order or counted first.
bool is_in_order_of_pages(const JobQuery& query, long limit) {
  return query.order == JobOrder{} && query.jobs.empty() && limit >= 0;
}

std::size_t most_of(long limit) {
  return limit == 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(limit);
}

/// In memory for one page, and as soon as there is one; until nobody reads it any more.
Result<int> print_as_it_comes(Context& context,
                              Listing listing,
                              const JobQuery& query,
                              long limit) {
  bool is_first = true;
  GF_CHECK(context.daemon().job_pages(query, most_of(limit), [&](const api::JobPage& page) {
    context.out << context.listing([&] { return listing_text(listing, page, context.paint); })
                << std::flush;
    if (std::exchange(is_first, false)) hint_at_next(context, listing, {page});
    listing.header = Header::Hidden;
    return context.out.good();
  }));
  return 0;
}

/// One document, in memory for one page of it. Its revision is the oldest: who waits for news after
/// it misses none.
Result<int> print_json(Context& context,
                       const Listing& listing,
                       const JobQuery& query,
                       long limit) {
  std::optional<api::JobPagePieces> pieces;
  bool has_jobs = false;
  GF_CHECK(context.daemon().job_pages(query, most_of(limit), [&](const api::JobPage& page) {
    if (!pieces) context.out << pieces.emplace(page.revision).begin();
    has_jobs = has_jobs || !page.jobs.empty();
    context.out << context.listing([&] { return pieces->add(page.jobs); }) << std::flush;
    return context.out.good();
  }));
  if (!has_jobs) hint_at_next(context, listing, {});
  context.out << pieces->end() << '\n';
  return 0;
}

/// In memory for its rows, though not for the jobs: it is as wide as the widest of them.
Result<int> print_table(Context& context,
                        const Listing& listing,
                        const JobQuery& query,
                        long limit) {
  std::vector<Row> rows;
  GF_CHECK(context.daemon().job_pages(query, most_of(limit), [&](const api::JobPage& page) {
    if (rows.empty()) hint_at_next(context, listing, {page});
    std::ranges::move(context.listing([&] { return rows_of(listing.fields, page.jobs); }),
                      std::back_inserter(rows));
    return true;
  }));
  context.out << table_text(columns_of(listing.fields), rows, listing.header, context.paint);
  return 0;
}

/// Whether rows of a screen can be written before all are known: those of jobs that were named may
/// be missing, and the last ones are found first.
bool is_in_order_of_screen(const Listing& listing, const JobQuery& query, long limit) {
  return is_screen(listing) && listing.layout == Layout::Flat && limit == 0 && query.jobs.empty();
}

/// In memory for some pages, however many jobs there are.
Result<int> print_long_screen(Context& context, const Listing& listing, const JobQuery& query) {
  const Viewer viewer{viewer_name(context), os::now().wall, os::utc_offset, context.columns};
  ScreenStream screen(listing, viewer, context.paint);
  const api::QueueView queue = GF_TRY(fetch_queue(context.daemon()));
  screen.know(queue);
  bool is_read = true;
  PagedText shown(context);
  const auto take = [&](std::vector<api::JobView> jobs) {
    is_read = shown.write(screen.add(std::move(jobs)));
    return is_read;
  };
  GF_CHECK(screen_pages(context.daemon(), query, listing, queue, take));
  if (is_read) (void)shown.write(screen.end());
  shown.end();
  if (const auto first = screen.first_waiting()) hint_at_why(context, *first);
  return 0;
}

/// Of few jobs all are known before they are shown; of many a screen begins before the last are.
Result<int> print_screen(Context& context, const Listing& listing, const JobQuery& query) {
  const ListedJobs listed = GF_TRY(fetch_first_page(context.daemon(), query));
  if (!listed.page.next.empty()) return print_long_screen(context, listing, query);
  show_page(context, listing, listed);
  hint_at_next(context, listing, listed);
  return 0;
}

/// Which of the jobs that were named are not there, where nothing else says which are shown.
std::vector<std::uint64_t> missing_from(const api::JobPage& page, const JobQuery& query) {
  const bool only_named = query.statuses.empty() && query.users.empty() && query.names.empty() &&
                          query.project.empty() && query.group.empty() && !query.submitted_since;
  std::vector<std::uint64_t> missing;
  if (!only_named) return missing;
  std::set<JobId> found;
  for (const api::JobView& job : page.jobs) found.insert(job.id);
  for (const JobId id : query.jobs) {
    if (found.insert(id).second) missing.push_back(id.value);
  }
  std::ranges::sort(missing);
  return missing;
}

Result<int> fail_for(const std::vector<std::uint64_t>& missing) {
  if (missing.empty()) return 0;
  return fail(Code::NotFound,
              missing.size() == 1
                  ? tr_format("there is no job {}", missing.front())
                  : tr_format("there are no jobs {}",
                              ranges_text(std::span<const std::uint64_t>(missing))));
}

/// Shows what is there, and fails for what is not.
Result<int> print_all(Context& context,
                      const Listing& listing,
                      const ListedJobs& listed,
                      const std::vector<std::uint64_t>& missing) {
  if (missing.empty() || !listed.page.jobs.empty()) {
    show_page(context, listing, listed);
    hint_at_next(context, listing, listed);
  }
  return fail_for(missing);
}

/// Options that a form has no use for.
std::vector<std::string> unused_by(Format format) {
  switch (format) {
    case Format::Table:
      return {};
    case Format::Json:
    case Format::JsonLines:
      return {"format", "noheader", "by-state", "tree", "interval"};
    case Format::Csv:
    case Format::Tsv:
      return {"by-state", "tree", "interval"};
    case Format::Yaml:
      return {"noheader", "by-state", "tree", "interval"};
    case Format::Template:
      return {"output", "noheader", "by-state", "tree", "interval"};
  }
  return {};
}

/// Two forms at once, and a form with what would be passed over in it.
Result<void> check_form(const Invocation& invocation, const Listing& listing) {
  const std::string output = invocation.get("output");
  if (invocation.has("json") && invocation.has("output") && output != "json") {
    return fail(Code::Usage,
                tr_format("{} and {} are mutually exclusive", "--json", "--output " + output));
  }
  std::string form = invocation.has("output") ? "--output " + output : "--json";
  if (listing.format == Format::Template) form = "--format TEMPLATE";
  for (const std::string& option : unused_by(listing.format)) {
    if (!invocation.has(option)) continue;
    return fail(Code::Usage, tr_format("{} and {} are mutually exclusive", form, "--" + option));
  }
  return {};
}

/// Of the jobs that were named those that wait; of the others it is said what they are.
void keep_waiting(Context& context, std::vector<api::JobView>& jobs) {
  std::map<Status, std::vector<std::uint64_t>> others;
  for (const api::JobView& job : jobs) {
    if (!is_pending(job.status)) others[job.status].push_back(job.id.value);
  }
  for (auto& [status, ids] : others) {
    std::ranges::sort(ids);
    context.note(tr_count(ids.size(),
                          "job {} does not wait: it is {}",
                          "jobs {} do not wait: they are {}",
                          ranges_text(std::span<const std::uint64_t>(ids)),
                          status_name(status)));
  }
  std::erase_if(jobs, [](const api::JobView& job) { return !is_pending(job.status); });
}

std::string starts_json(const Listing& listing,
                        std::vector<api::JobView> jobs,
                        const Starts& starts) {
  std::vector<api::WaitingJob> waiting;
  for (api::JobView& job : jobs) {
    const auto start = starts.of(job.id);
    waiting.push_back({std::move(job), start});
  }
  if (listing.format == Format::Json) return api::write_waiting(waiting) + '\n';
  std::string lines;
  for (const api::WaitingJob& job : waiting) lines += api::write(job) + '\n';
  return lines;
}

/// Those that wait, in the order in which they should start: `starts`, as far as that is known.
Result<int> print_starts(
    Context& context, const Listing& listing, JobQuery query, long limit, Starts& starts) {
  if (!query.fields.empty()) {
    for (const char* field : {"status", "spec.priority", "blockers"}) query.fields.push_back(field);
  }
  ListedJobs listed{GF_TRY(fetch_jobs(context.daemon(), query, JobQuery::kAll))};
  listed.queue = GF_TRY(fetch_queue(context.daemon(), api::kMaxForecast));
  std::vector<api::JobView>& jobs = listed.page.jobs;
  const auto missing = limit == 0 ? missing_from(listed.page, query) : std::vector<std::uint64_t>{};
  keep_waiting(context, jobs);
  starts.know(listed.queue);
  for (const api::JobView& job : jobs) starts.look_at(job, os::now().wall);
  jobs = in_order_of_start(std::move(jobs), starts, listed.queue);
  if (limit != 0) listed.counts = counts_of(listed.page, viewer_name(context));
  limit_jobs(jobs, limit);
  const bool is_json = listing.format == Format::Json || listing.format == Format::JsonLines;
  if (!is_json) return print_all(context, listing, listed, missing);
  context.out << context.listing([&] { return starts_json(listing, jobs, starts); });
  return fail_for(missing);
}

/// In the order that was asked for: as it comes where it can be, and again and again with --watch.
Result<int> print_listing(const Invocation& invocation,
                          Context& context,
                          const Listing& listing,
                          const JobQuery& query,
                          long limit) {
  const bool counts = is_screen(listing) || shows_counts(listing, invocation);
  const std::string user = counts ? viewer_name(context) : std::string();
  const bool for_one_screen = is_in_order_of_screen(listing, query, limit);
  if (for_one_screen && !invocation.has("watch")) return print_screen(context, listing, query);
  const Fetch fetch = [=](client::Client& daemon) -> Result<ListedJobs> {
    if (for_one_screen) return fetch_one_screen(daemon, query, listing, user);
    if (counts) return fetch_screen(daemon, query, limit, user);
    return ListedJobs{GF_TRY(fetch_listing(daemon, query, limit))};
  };
  if (invocation.has("watch")) return run_watch(invocation, context, listing, fetch);
  if (is_in_order_of_pages(query, limit) && !is_screen(listing)) {
    if (listing.format == Format::Json) return print_json(context, listing, query, limit);
    if (is_line_by_line(listing)) return print_as_it_comes(context, listing, query, limit);
    if (is_plain_table(listing)) return print_table(context, listing, query, limit);
  }
  const ListedJobs listed = GF_TRY(fetch(context.daemon()));
  return print_all(context,
                   listing,
                   listed,
                   limit == 0 ? missing_from(listed.page, query) : std::vector<std::uint64_t>{});
}

Result<int> run_gqueue(const Invocation& invocation, Context& context) {
  Starts starts;
  const bool by_start = invocation.has("start");
  const std::vector<Field> more = by_start ? start_fields(starts) : std::vector<Field>{};
  const Listing listing = GF_TRY(listing_of(invocation, context, more));
  GF_CHECK(check_form(invocation, listing));
  if (!is_screen(listing)) context.is_for_programs();
  const long limit = GF_TRY(limit_of(invocation));
  const JobOrder order = GF_TRY(order_of(invocation));
  JobQuery query = GF_TRY(query_of(invocation, context));
  query.order = order;
  query.fields = fields_of(listing, invocation);
  if (by_start) return print_starts(context, listing, std::move(query), limit, starts);
  return print_listing(invocation, context, listing, query, limit);
}

std::vector<Example> state_legend() {
  std::vector<Example> lines;
  for (const StatusInfo& info : kStatuses) {
    std::string text = tr_format("{}: {}.", info.name, tr(info.legend));
    lines.push_back({std::string(info.code), std::move(text)});
  }
  return lines;
}

std::vector<Example> column_legend() {
  std::vector<Example> lines;
  for (const Field& field : queue_fields()) lines.push_back({field.name, field.help});
  const Starts none;
  for (const Field& field : start_fields(none)) lines.push_back({field.name, field.help});
  return lines;
}

}  // namespace

Command gqueue_command() {
  return {
      .name = "gqueue",
      .summary = tr("list jobs"),
      .usage = {"[options]"},
      .description = tr(
          "Lists the waiting and running jobs of all users. NODES is the number of GPUs; "
          "NODELIST(REASON) is their indices or, in brackets, why the job waits or how it "
          "ended.\n\nOn a terminal, unless -f or -o selects another format, the list is made "
          "for reading: running jobs first, then the waiting ones in the order in which they are "
          "considered, users if there are several, the time limit beside the elapsed time, when "
          "a job started or is expected to start (~, an estimate; >, not before), the waiting "
          "tasks of an "
          "array in one row, and totals last."),
      .options = gqueue_options(),
      .examples = {{"gqueue", tr("waiting and running jobs")},
                   {"gqueue -s Running -f JOBID,NAME,NODES,NODELIST", tr("GPUs of running jobs")},
                   {"gqueue -j 42 -f JOBID,ST,NODES,NODELIST", tr("one job")},
                   {"gqueue -t", tr("dependencies as a tree")},
                   {"gqueue -w", tr("watch the queue")},
                   {"gqueue --start --me", tr("when your waiting jobs should start")},
                   {"gqueue --me -a -r -id -n 10", tr("your last ten jobs")}},
      .legends = {{tr("States (ST)"), state_legend()}, {tr("Columns (-f)"), column_legend()}},
      .run = run_gqueue,
  };
}

}  // namespace gflow::cli

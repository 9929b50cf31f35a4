// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/translate.h"
#include "cli/queue/fold.h"
#include "cli/queue/screen_rows.h"
#include "cli/queue/tree.h"
#include "command/times.h"

namespace gflow::cli {

namespace {

std::vector<const api::JobView*> all_of(const api::JobPage& page) {
  std::vector<const api::JobView*> jobs;
  for (const api::JobView& job : page.jobs) jobs.push_back(&job);
  return jobs;
}

/// As a person looks for them.
std::vector<const api::JobView*> in_order(const Listing& listing, const ListedJobs& listed) {
  std::vector<const api::JobView*> jobs = all_of(listed.page);
  if (listing.sorted) return jobs;
  std::map<JobId, std::size_t> places;
  for (const api::QueuedJob& job : listed.queue.jobs) places.emplace(job.id, places.size());
  const auto place_of = [&places](const api::JobView& job) {
    const auto at = places.find(job.id);
    return at == places.end() ? places.size() : at->second;
  };
  std::ranges::sort(jobs, [&place_of](const api::JobView* a, const api::JobView* b) {
    const Part part = part_of(a->status);
    if (part != part_of(b->status)) return part < part_of(b->status);
    if (part == Part::Ended && a->ended != b->ended) return a->ended > b->ended;
    if (part == Part::Waiting) {
      if (place_of(*a) != place_of(*b)) return place_of(*a) < place_of(*b);
      if (a->spec.priority != b->spec.priority) return a->spec.priority > b->spec.priority;
    }
    return a->id < b->id;
  });
  return jobs;
}

std::string flat_screen(const Listing& listing,
                        const ListedJobs& listed,
                        const Viewer& viewer,
                        const Painter& paint) {
  ScreenRows screen(listing, viewer);
  screen.know(listed.queue);
  screen.look_at(listed.page.jobs);
  const std::vector<const api::JobView*> jobs = in_order(listing, listed);
  std::vector<Row> rows;
  for (const FoldedJobs& one : listing.folded ? fold_arrays(jobs) : unfolded(jobs)) {
    rows.push_back(screen.row(one));
  }
  return screen_table(screen.columns(), rows, viewer.columns, listing.header, paint);
}

std::string tree_screen(const Listing& listing,
                        const ListedJobs& listed,
                        const Viewer& viewer,
                        const Painter& paint) {
  ScreenRows screen(listing, viewer);
  screen.know(listed.queue);
  screen.look_at(listed.page.jobs);
  const std::vector<const api::JobView*> jobs = all_of(listed.page);
  std::vector<Row> rows;
  for (const TreeLine& line : dependency_tree(
           listing.folded ? fold_arrays(jobs, Folding::SameDependencies) : unfolded(jobs))) {
    rows.push_back(line.elsewhere ? screen.reference(line.jobs, line.prefix)
                                  : screen.row(line.jobs, line.prefix));
  }
  return screen_table(screen.columns(), rows, viewer.columns, listing.header, paint);
}

std::string grouped_screen(const Listing& listing,
                           const ListedJobs& listed,
                           const Viewer& viewer,
                           const Painter& paint) {
  std::string out;
  Listing part = listing;
  part.layout = Layout::Flat;
  for (const StatusSet phase : {kActive, kPending, kEnded}) {
    for (const Status status : phase.list()) {
      ListedJobs jobs{{}, listed.queue};
      const auto is_of_it = [&](const auto& job) { return job.status == status; };
      std::ranges::copy_if(listed.page.jobs, std::back_inserter(jobs.page.jobs), is_of_it);
      if (jobs.page.jobs.empty()) continue;
      out += fmt::format(
          "{}{} ({})\n", out.empty() ? "" : "\n", status_name(status), jobs.page.jobs.size());
      out += flat_screen(part, jobs, viewer, paint);
    }
  }
  return out;
}

std::string jobs_screen(const Listing& listing,
                        const ListedJobs& listed,
                        const Viewer& viewer,
                        const Painter& paint) {
  if (listing.layout == Layout::Tree) return tree_screen(listing, listed, viewer, paint);
  if (listing.layout == Layout::Grouped) return grouped_screen(listing, listed, viewer, paint);
  return flat_screen(listing, listed, viewer, paint);
}

/// What a screen says of how many jobs there are.
std::string counts_line(const ListedJobs& listed, const std::string& user, std::size_t columns) {
  if (listed.counts) return counts_text(*listed.counts, listed.page.jobs.size(), columns);
  return counts_text(counts_of(listed.page, user), {}, columns);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

bool has_more(const ListedJobs& listed) {
  return listed.counts && listed.counts->total() > listed.page.jobs.size();
}

/// What stands below the first `shown` of so many lines. Where not all jobs are known, the lines of
/// the others are not either: those count as jobs, as each is a line of its own or a part of one.
std::string more_text(const Listing& listing,
                      const ListedJobs& listed,
                      std::size_t lines,
                      std::size_t shown) {
  if (!has_more(listed)) return tr_format("... {} more", lines - shown);
  const std::size_t header = listing.header == Header::Shown ? 1 : 0;
  const std::vector<const api::JobView*> jobs = in_order(listing, listed);
  std::size_t above = 0;
  std::size_t rows = shown - std::min(shown, header);
  for (const FoldedJobs& one : listing.folded ? fold_arrays(jobs) : unfolded(jobs)) {
    if (rows-- == 0) break;
    above += one.jobs().size();
  }
  return tr_format("... {} more jobs", listed.counts->total() - above);
}

constexpr std::string_view kWatchHint = tr_later("q ends this view, not the jobs");

/// Time, the counts of all and, where there is room, how to leave.
std::string watch_head(const ListedJobs& listed, const Viewer& viewer) {
  std::string head = clock_text(viewer.now, viewer.zone) + "  ";
  const JobCounts counts = listed.counts.value_or(counts_of(listed.page, viewer.user));
  head += counts_text(counts, {}, viewer.columns - std::min(viewer.columns, head.size()));
  const std::string hint = tr(kWatchHint);
  const std::size_t used = display_width(head) + 2 + display_width(hint);
  if (used <= viewer.columns) head += std::string(viewer.columns - used + 2, ' ').append(hint);
  return cut_end(head, viewer.columns);
}

/// Time and what is wrong, all of it that the rows of the viewer hold.
std::string trouble_head(std::string_view trouble, const Viewer& viewer, const Painter& paint) {
  const std::string all = fmt::format("{}  {}", clock_text(viewer.now, viewer.zone), trouble);
  std::string out;
  std::size_t rows = viewer.rows;
  for (const std::string_view part : split(all, '\n')) {
    for (const std::string_view line : wrapped(part, viewer.columns)) {
      if (rows-- == 0) return out;
      out += paint(Style::Yellow, cut_end(line, viewer.columns)) + '\n';
    }
  }
  return out;
}

/// As many as there is room for on so many rows.
void add_lines(std::string_view text, std::size_t rows, std::string& out) {
  std::size_t used = static_cast<std::size_t>(std::ranges::count(out, '\n'));
  for (const std::string_view line : lines_of(text)) {
    if (used++ >= rows) return;
    out.append(line).append("\n");
  }
}

}  // namespace

bool is_screen(const Listing& listing) {
  return listing.fields.empty() && listing.format == Format::Table;
}

std::vector<std::string> screen_needs() {
  return {"blockers",
          "ended",
          "gpu_idle_seconds",
          "gpu_memory",
          "lends",
          "move",
          "node_list",
          "outcome",
          "reason",
          "run_time_seconds",
          "spec.begin",
          "spec.dependencies",
          "spec.group",
          "spec.name",
          "spec.priority",
          "spec.request",
          "spec.time_limit_seconds",
          "started",
          "status",
          "user"};
}

std::string clock_text(WallTime now, const Zone& zone) {
  return local_text(now, zone.offset(now)).substr(11);
}

std::string queue_screen(const Listing& listing,
                         const ListedJobs& listed,
                         const Viewer& viewer,
                         const Painter& paint) {
  std::string out = jobs_screen(listing, listed, viewer, paint);
  if (listing.header == Header::Hidden) return out;
  return out + '\n' + counts_line(listed, viewer.user, viewer.columns) + '\n';
}

std::string watch_screen(const Listing& listing,
                         const ListedJobs& listed,
                         const Viewer& viewer,
                         const WatchHead& head,
                         const Painter& paint) {
  std::string out = head.trouble.empty() ? paint(Style::Bold, watch_head(listed, viewer)) + '\n'
                                         : trouble_head(head.trouble, viewer, paint);
  if (!head.panel.empty()) add_lines("\n" + head.panel, viewer.rows, out);
  const std::string text = jobs_screen(listing, listed, viewer, paint);
  const std::vector<std::string_view> lines = lines_of(text);
  const std::size_t above = static_cast<std::size_t>(std::ranges::count(out, '\n')) + 1;
  const std::size_t room = viewer.rows - std::min(viewer.rows, above);
  const bool all = lines.size() <= room && !has_more(listed);
  const std::size_t shown =
      all ? lines.size() : std::min(lines.size(), room - std::min<std::size_t>(room, 1));
  if (room > 0) out += '\n';
  for (std::size_t i = 0; i < shown; ++i) out.append(lines[i]).append("\n");
  if (!all && room > 0) {
    out += cut_words(more_text(listing, listed, lines.size(), shown), viewer.columns) + '\n';
  }
  return out;
}

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/queue.h"
#include "api/types.h"
#include "cli/queue/counts.h"
#include "cli/queue/fields.h"
#include "command/table.h"
#include "core/job_query.h"

namespace gflow::cli {

enum class Layout { Flat, Grouped, Tree };
enum class Format { Table, Json, JsonLines, Csv, Tsv, Yaml, Template };

/// "{jobid} {name}" as read: text, then a field or none.
struct TemplatePiece {
  std::string text = {};
  const Field* field = nullptr;
};

/// How gqueue prints jobs.
struct Listing {
  std::vector<const Field*> fields;
  std::vector<TemplatePiece> text_template = {};  ///< of Format::Template
  Layout layout = Layout::Flat;
  Format format = Format::Table;
  Header header = Header::Shown;
  bool with_ended = false;  ///< ended jobs are asked for, or a state by name
  /// On a screen, where no fields stand for the columns of screen.h:
  bool sorted = false;    ///< in the order of the page, not that of a screen
  bool folded = true;     ///< tasks of an array that wait are one row
  bool by_start = false;  ///< it is for when they start: that is told however narrow it is
};

/// Jobs, and for a screen how those that wait stand in the queue.
struct ListedJobs {
  api::JobPage page;
  api::QueueView queue = {};
  std::optional<JobCounts> counts = {};  ///< of all that match, where the page is only some of them
  std::optional<api::MachineView> machine = {};  ///< where the GPUs are shown above them
};

/// Whether what is printed of a job hangs on no other: a page at a time is the same text, if all
/// but the first hide the header.
[[nodiscard]] bool is_line_by_line(const Listing& listing);
/// Whether a job is a row of one table, in the order of the page.
[[nodiscard]] bool is_plain_table(const Listing& listing);

/// What a daemon has to show of each job for that listing, as in JobQuery::fields; empty for all.
[[nodiscard]] std::vector<std::string> needs_of(const Listing& listing);

/// A row for each job.
[[nodiscard]] std::vector<Row> rows_of(const std::vector<const Field*>& fields,
                                       const std::vector<api::JobView>& jobs);

/// The text of a page in that form, ending in a line end unless it is empty.
[[nodiscard]] std::string listing_text(const Listing& listing,
                                       const api::JobPage& page,
                                       const Painter& paint);

/// Reads a template of fields as choose_fields() knows them. Text in braces that is no name stands
/// for itself. Errors: Usage with the fields there are, for a name that none of them has.
[[nodiscard]] Result<std::vector<TemplatePiece>> read_template(std::string_view text,
                                                               std::span<const Field> more = {});

/// Puts jobs, which are by ascending id, in this order; `reversed` is not looked at.
void sort_jobs(std::vector<api::JobView>& jobs, const JobOrder& order);

/// Keeps the first `limit` jobs, the last ones if it is negative, all for 0.
void limit_jobs(std::vector<api::JobView>& jobs, long limit);

}  // namespace gflow::cli

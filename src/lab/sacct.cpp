// SPDX-License-Identifier: Apache-2.0
#include "lab/sacct.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/text.h"
#include "core/slurm_text.h"

namespace gflow::lab {
namespace {

using std::chrono::milliseconds;
using Fields = std::vector<std::string_view>;

constexpr char kSeparator = '|';
constexpr std::size_t kLongestRow = 65'536;

/// Why a job of the table is not in the trace.
enum class LeftOut { None, Step, NoGpu, Part, NotStarted, NoEnd };

std::string_view first_line(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Which column has which name.
class Columns {
 public:
  static Result<Columns> of(std::string_view header) {
    Columns columns;
    for (const std::string_view name : slurm::fields_between(header, kSeparator)) {
      columns.at_.emplace(to_lower(trim(name)), columns.count_++);
    }
    for (const std::string_view needed : {"submit", "start", "end", "alloctres"}) {
      if (columns.at_.contains(std::string(needed))) continue;
      return fail(Code::Usage,
                  fmt::format("there is no column '{}'; docs/format/trace.md has the command that "
                              "prints what is needed",
                              needed));
    }
    return columns;
  }
  [[nodiscard]] std::string_view get(const Fields& fields, const char* name) const {
    const auto at = at_.find(name);
    return at == at_.end() ? std::string_view{} : trim(fields[at->second]);
  }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::map<std::string, std::size_t> at_;
  std::size_t count_ = 0;
};

/// A run of a job as the table has it.
struct Run {
  WallTime ready;  ///< from when on it waited for room
  WallTime start;
  TraceJob job{};
  std::string user{};
};

/// What Slurm says it ran, else from its start to its end.
std::optional<milliseconds> run_time_of(const Columns& columns, const Fields& fields) {
  if (const auto seconds = parse_number(columns.get(fields, "elapsedraw"))) {
    constexpr std::uint64_t kMost = 10ULL * 366 * 86'400;
    return std::chrono::seconds(static_cast<std::int64_t>(std::min(*seconds, kMost)));
  }
  if (const auto elapsed = slurm::read_span(columns.get(fields, "elapsed"))) return elapsed;
  const auto start = slurm::read_time(columns.get(fields, "start"));
  const auto end = slurm::read_time(columns.get(fields, "end"));
  if (!start || !end || *end < *start) return {};
  return *end - *start;
}

std::optional<std::chrono::seconds> limit_of(const Columns& columns, const Fields& fields) {
  constexpr std::uint64_t kMostMinutes = 10ULL * 366 * 1440;
  const auto minutes = parse_number(columns.get(fields, "timelimitraw"));
  if (minutes && *minutes > 0 && *minutes <= kMostMinutes) {
    return std::chrono::minutes(static_cast<std::int64_t>(*minutes));
  }
  const auto span = slurm::read_span(columns.get(fields, "timelimit"));
  if (!span || span->count() == 0) return {};
  return std::chrono::ceil<std::chrono::seconds>(*span);
}

/// On as many nodes as it had, if each of them had as many.
void set_gpus(Request& request, int gpus, std::string_view tres) {
  request.gpus = gpus;
  const std::int64_t nodes = slurm::count_of_tres(tres, "node");
  if (nodes <= 1 || gpus % nodes != 0) return;
  request.nodes = static_cast<int>(nodes);
  request.gpus = gpus / request.nodes;
}

/// A job that waited for another, or for a time, waited for room only after that.
WallTime ready_at(const Columns& columns, const Fields& fields, WallTime submit, WallTime start) {
  const auto eligible = slurm::read_time(columns.get(fields, "eligible"));
  return eligible && *eligible > submit && *eligible <= start ? *eligible : submit;
}

class SacctReader {
 public:
  explicit SacctReader(Columns columns) : columns_(std::move(columns)) {}

  Result<void> take(std::string_view line) {
    if (line.size() > kLongestRow) return fail(Code::Usage, "the line is longer than 64 KiB");
    const Fields fields = slurm::fields_between(line, kSeparator);
    if (fields.size() != columns_.count()) {
      return fail(Code::Usage,
                  fmt::format("{} fields, but there are {} columns: leave out JobName and what "
                              "else may have a '|' in it",
                              fields.size(),
                              columns_.count()));
    }
    Run run{};
    const LeftOut why = GF_TRY(read(fields, run));
    ++left_out_[why];
    if (why != LeftOut::None) return {};
    if (runs_.size() == kMaxTraceJobs) {
      return fail(Code::Exhausted, fmt::format("more than {} jobs", kMaxTraceJobs));
    }
    runs_.push_back(std::move(run));
    return {};
  }

  Trace finish() {
    std::ranges::stable_sort(runs_, {}, &Run::ready);
    Trace trace;
    trace.notes = notes();
    if (runs_.empty()) return trace;
    trace.begins = runs_.front().ready;
    trace.scheduler = "Slurm";
    std::map<std::string, std::uint32_t> users;
    for (Run& run : runs_) {
      const auto id = 1000 + static_cast<std::uint32_t>(users.size());
      run.job.spec.user = {users.try_emplace(run.user, id).first->second, run.user};
      run.job.submitted = run.ready - *trace.begins;
      run.job.started = run.start - *trace.begins;
      trace.jobs.push_back(std::move(run.job));
    }
    return trace;
  }

 private:
  [[nodiscard]] Result<LeftOut> read(const Fields& fields, Run& run) const {
    const std::string_view id = id_of(fields);
    if (id.find('.') != std::string_view::npos) return LeftOut::Step;
    const auto submit = slurm::read_time(columns_.get(fields, "submit"));
    if (!submit) {
      return fail(Code::Usage,
                  fmt::format("submit: '{}' is no time of the form 2026-03-01T12:00:00 (unset "
                              "SLURM_TIME_FORMAT)",
                              printable(columns_.get(fields, "submit"))));
    }
    const std::string_view tres = columns_.get(fields, "alloctres");
    const auto start = slurm::read_time(columns_.get(fields, "start"));
    if (!start || tres.empty()) return LeftOut::NotStarted;
    const int gpus = slurm::gpus_of_tres(tres).count;
    const bool is_part =
        slurm::count_of_tres(tres, "gres/shard") > 0 || slurm::count_of_tres(tres, "gres/mps") > 0;
    if (is_part) return LeftOut::Part;
    if (gpus == 0) return LeftOut::NoGpu;
    const auto run_time = run_time_of(columns_, fields);
    if (!run_time) return LeftOut::NoEnd;
    run.ready = ready_at(columns_, fields, *submit, *start);
    run.start = std::max(*start, run.ready);
    run.user = printable(columns_.get(fields, "user").substr(0, 64));
    run.job.run_time = *run_time;
    run.job.spec.name = "job" + printable(id.substr(0, 64));
    run.job.spec.time_limit = limit_of(columns_, fields);
    set_gpus(run.job.spec.request, gpus, tres);
    return LeftOut::None;
  }

  [[nodiscard]] std::string_view id_of(const Fields& fields) const {
    const std::string_view id = columns_.get(fields, "jobid");
    return id.empty() ? columns_.get(fields, "jobidraw") : id;
  }

  [[nodiscard]] std::vector<std::string> notes() const {
    constexpr std::array<std::pair<LeftOut, std::string_view>, 4> kWhy = {{
        {LeftOut::NoGpu, "have no GPU"},
        {LeftOut::Part, "have shards or MPS, of which sacct does not say how many a GPU has"},
        {LeftOut::NotStarted, "never started"},
        {LeftOut::NoEnd, "have no end"},
    }};
    std::vector<std::string> notes;
    for (const auto& [why, text] : kWhy) {
      const auto at = left_out_.find(why);
      if (at != left_out_.end())
        notes.push_back(fmt::format("left out, jobs that {}: {}", text, at->second));
    }
    return notes;
  }

  Columns columns_;
  std::vector<Run> runs_;
  std::map<LeftOut, std::int64_t> left_out_;
};

}  // namespace

bool is_sacct(std::string_view text) {
  const std::vector<std::string_view> names =
      slurm::fields_between(first_line(text.substr(0, kLongestRow)), kSeparator);
  return names.size() > 1 && std::ranges::any_of(names, [](std::string_view name) {
           const std::string lower = to_lower(trim(name));
           return lower == "jobid" || lower == "jobidraw";
         });
}

Result<Trace> read_sacct(std::string_view text, const std::string& file) {
  std::optional<SacctReader> reader;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = first_line(text);
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    const auto taken = [&]() -> Result<void> {
      if (reader) return trim(line).empty() ? Result<void>{} : reader->take(line);
      reader.emplace(GF_TRY(Columns::of(line)));
      return {};
    }();
    if (!taken) {
      return with_context(taken.error(), fmt::format("{}:{}", printable(file), number));
    }
  }
  Trace trace = reader->finish();
  if (!trace.jobs.empty()) return trace;
  return fail(Code::Usage,
              fmt::format("{}: no job that had a GPU{}{}. Slurm notes GPUs where slurm.conf has "
                          "AccountingStorageTRES=gres/gpu",
                          printable(file),
                          trace.notes.empty() ? "" : "; ",
                          join(trace.notes, "; ")));
}

}  // namespace gflow::lab

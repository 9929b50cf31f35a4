// SPDX-License-Identifier: Apache-2.0
#include "lab/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "base/text.h"
#include "lab/sacct.h"

namespace gflow::lab {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxLine = 65'536;
constexpr double kMaxSeconds = 10.0 * 366 * 86'400;
constexpr int kMaxGpusOfJob = 1'000'000;

/// One line as it is being understood.
struct Line {
  TraceJob job;
  milliseconds at{0};  ///< of a calendar, or of the trace's own clock
  bool calendar = false;
  std::string user = "trace";
};

Result<double> amount_of(std::string_view text, double most) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value) || value < 0) {
    return fail(Code::Usage, fmt::format("'{}' is not a number from 0 on", printable(text)));
  }
  if (value > most) {
    return fail(Code::Usage, fmt::format("'{}' is more than {:.0f}", printable(text), most));
  }
  return value;
}

Result<int> count_of(std::string_view text, int most) {
  const double value = GF_TRY(amount_of(text, most));
  if (value != std::floor(value)) {
    return fail(Code::Usage, fmt::format("'{}' is not a whole number", printable(text)));
  }
  return static_cast<int>(value);
}

Result<milliseconds> span_of(std::string_view text) {
  const double seconds = GF_TRY(amount_of(text, kMaxSeconds));
  return milliseconds(std::llround(seconds * 1000));
}

/// Seconds of a clock of the trace's own, or a time of a calendar.
Result<void> set_submit(Line& line, std::string_view text) {
  if (text.find(':') == std::string_view::npos) {
    const double seconds = GF_TRY(amount_of(text, 1e11));
    line.at = milliseconds(std::llround(seconds * 1000));
    return {};
  }
  std::string moment(text);
  if (moment.size() > 10 && moment[10] == ' ') moment[10] = 'T';
  if (moment.size() == 19) moment += 'Z';
  line.at = GF_TRY(parse_rfc3339(moment)).time_since_epoch();
  line.calendar = true;
  return {};
}

Result<void> set_duration(Line& line, std::string_view text) {
  line.job.run_time = GF_TRY(span_of(text));
  return {};
}

Result<void> set_gpus(Line& line, std::string_view text) {
  line.job.spec.request.gpus = GF_TRY(count_of(text, kMaxGpusOfJob));
  return {};
}

Result<void> set_share(Line& line, std::string_view text) {
  const double part = GF_TRY(amount_of(text, 1));
  Request& request = line.job.spec.request;
  request.share = Share{static_cast<std::int32_t>(std::lround(part * Share::kWholeParts))};
  if (request.share.parts == 0) return fail(Code::Usage, "a share is more than nothing");
  request.mode = request.share < Share::whole() ? GpuMode::Fraction : GpuMode::Whole;
  return {};
}

Result<void> set_limit(Line& line, std::string_view text) {
  const auto limit = std::chrono::ceil<std::chrono::seconds>(GF_TRY(span_of(text)));
  if (limit.count() > 0) line.job.spec.time_limit = limit;
  return {};
}

Result<void> set_preemption(Line& line, std::string_view text) {
  for (const Preemption kind : {Preemption::None, Preemption::Requeue, Preemption::Suspend}) {
    if (text != preemption_name(kind)) continue;
    line.job.spec.preemption = kind;
    return {};
  }
  return fail(Code::Usage,
              fmt::format("'{}' is none of none, requeue and suspend", printable(text)));
}

Result<void> set_user(Line& line, std::string_view text) {
  line.user = printable(text.substr(0, 64));
  return {};
}

struct Column {
  std::string_view name;
  std::string_view aliases;  ///< between spaces: what published traces call it
  Result<void> (*set)(Line&, std::string_view);
};
constexpr std::array<Column, 11> kColumns = {{
    {"submit", " submit_time submitted timestamp arrival ", set_submit},
    {"duration", " run_time runtime duration_seconds ", set_duration},
    {"gpus", " num_gpus num_gpu gpu_num ", set_gpus},
    {"user", " cluster vc user_name ", set_user},
    {"share", " gpu_share ", set_share},
    {"nodes",
     " num_nodes ",
     [](Line& line, std::string_view text) -> Result<void> {
       line.job.spec.request.nodes = std::max(GF_TRY(count_of(text, 100'000)), 1);
       return {};
     }},
    {"cpus",
     " num_cpus ",
     [](Line& line, std::string_view text) -> Result<void> {
       line.job.spec.request.cpus = GF_TRY(count_of(text, 1'000'000));
       return {};
     }},
    {"memory",
     " mem ",
     [](Line& line, std::string_view text) -> Result<void> {
       line.job.spec.request.memory = GF_TRY(parse_memory(text));
       return {};
     }},
    {"time_limit", " time_limit_seconds limit ", set_limit},
    {"priority",
     "",
     [](Line& line, std::string_view text) -> Result<void> {
       line.job.spec.priority = GF_TRY(count_of(text, kMaxPriority));
       return {};
     }},
    {"preemption", "", set_preemption},
}};

/// Which column of the table stands where in the file; null for one that is not looked at.
using Layout = std::vector<const Column*>;

/// RFC 4180 for one line: quotes, and quotes in quotes; with blanks for commas where there are
/// none.
Result<std::vector<std::string>> fields_of(std::string_view line, bool commas) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (commas ? c == ',' : c == ' ' || c == '\t')) {
      if (commas || !fields.back().empty()) fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return fail(Code::Usage, "a quote is not closed");
  for (std::string& field : fields) field = std::string(trim(field));
  return fields;
}

const Column* column_called(std::string_view name) {
  const std::string wanted = to_lower(name);
  for (const Column& column : kColumns) {
    if (wanted == column.name) return &column;
    if (!wanted.empty() && column.aliases.find(' ' + wanted + ' ') != std::string_view::npos) {
      return &column;
    }
  }
  return nullptr;
}

/// Without names in the first line, columns stand in the order of the table.
Result<Layout> layout_of(const std::vector<std::string>& first, bool named) {
  Layout layout;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Column* column = named                 ? column_called(first[i])
                           : i < kColumns.size() ? &kColumns.at(i)
                                                 : nullptr;
    if (column != nullptr && std::ranges::find(layout, column) != layout.end()) {
      return fail(Code::Usage, fmt::format("two columns say '{}'", column->name));
    }
    layout.push_back(column);
  }
  for (const std::string_view needed : {"submit", "duration", "gpus"}) {
    const auto is_it = [needed](const Column* c) { return c != nullptr && c->name == needed; };
    if (std::ranges::any_of(layout, is_it)) continue;
    const auto near = nearest(needed, first);
    return fail(Code::Usage,
                fmt::format("there is no column '{}'{}; docs/format/trace.md lists the columns",
                            needed,
                            near ? fmt::format(" (is it '{}'?)", printable(*near)) : ""));
  }
  return layout;
}

Result<Line> read_line(const Layout& layout, const std::vector<std::string>& fields) {
  if (fields.size() != layout.size()) {
    return fail(Code::Usage,
                fmt::format("{} fields, but there are {} columns", fields.size(), layout.size()));
  }
  Line line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Column* column = layout[i];
    const bool needed = i < layout.size() && column != nullptr &&
                        (column->name == "submit" || column->name == "duration");
    if (column == nullptr || (fields[i].empty() && !needed)) continue;
    if (auto set = column->set(line, fields[i]); !set) {
      return with_context(set.error(), column->name);
    }
  }
  return line;
}

class TraceReader {
 public:
  explicit TraceReader(std::string_view text)
      : commas_(text.substr(0, text.find('\n')).find(',') != std::string_view::npos) {}

  Result<void> take(std::string_view raw) {
    if (raw.size() > kMaxLine) return fail(Code::Usage, "a line of more than 64 KiB");
    const std::string_view text = trim(raw);
    if (text.empty() || text.starts_with('#')) return {};
    const auto fields = GF_TRY(fields_of(text, commas_));
    if (layout_.empty()) {
      const bool named =
          !fields.front().empty() && (fields.front()[0] < '0' || fields.front()[0] > '9');
      layout_ = GF_TRY(layout_of(fields, named));
      if (named) return {};
    }
    Line line = GF_TRY(read_line(layout_, fields));
    if (!lines_.empty() && lines_.front().calendar != line.calendar) {
      return fail(Code::Usage, "submit: some lines give a date, others seconds");
    }
    if (lines_.size() == kMaxTraceJobs) {
      return fail(Code::Exhausted, fmt::format("more than {} jobs", kMaxTraceJobs));
    }
    const auto [user, is_new] =
        users_.try_emplace(line.user, 1000 + static_cast<std::uint32_t>(users_.size()));
    line.job.spec.user = {user->second, line.user};
    line.job.spec.name = fmt::format("job{}", lines_.size() + 1);
    lines_.push_back(std::move(line));
    return {};
  }

  Trace finish() {
    std::ranges::stable_sort(lines_, {}, &Line::at);
    Trace trace;
    if (lines_.empty()) return trace;
    const milliseconds first = lines_.front().at;
    if (lines_.front().calendar) trace.begins = WallTime(first);
    trace.jobs.reserve(lines_.size());
    for (Line& line : lines_) {
      line.job.submitted = line.at - first;
      trace.jobs.push_back(std::move(line.job));
    }
    return trace;
  }

 private:
  bool commas_;
  Layout layout_;
  std::vector<Line> lines_;
  std::map<std::string, std::uint32_t> users_;
};

}  // namespace

Result<Trace> read_trace(std::string_view text, const std::string& file) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (is_sacct(text)) return read_sacct(text, file);
  TraceReader reader(text);
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    ++number;
    if (auto taken = reader.take(text.substr(0, end)); !taken) {
      return with_context(taken.error(), fmt::format("{}:{}", printable(file), number));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  Trace trace = reader.finish();
  if (trace.jobs.empty()) return fail(Code::Usage, fmt::format("{}: no jobs", printable(file)));
  return trace;
}

Trace days_of(Trace trace, int first, int last) {
  constexpr milliseconds kDay = std::chrono::hours(24);
  std::erase_if(trace.jobs, [&](const TraceJob& job) {
    return job.submitted < first * kDay || job.submitted >= last * kDay;
  });
  if (trace.jobs.empty()) return trace;
  const milliseconds begin = trace.jobs.front().submitted;
  for (TraceJob& job : trace.jobs) {
    job.submitted -= begin;
    if (job.started) *job.started -= begin;
  }
  if (trace.begins) *trace.begins += begin;
  return trace;
}

void spread_over_nodes(Trace& trace, int per_node) {
  if (per_node <= 0) return;
  for (TraceJob& job : trace.jobs) {
    Request& request = job.spec.request;
    if (request.gpus <= per_node || request.nodes > 1) continue;
    request.nodes = (request.gpus + per_node - 1) / per_node;
    request.gpus = per_node;
  }
}

}  // namespace gflow::lab

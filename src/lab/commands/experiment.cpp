// SPDX-License-Identifier: Apache-2.0
#include "lab/commands/experiment.h"

#include <fmt/format.h>

#include <ostream>

#include "base/text.h"
#include "base/translate.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::cli {

std::vector<Option> output_options() {
  return {{.name = "csv",
           .help = tr("Print the tables as CSV, with plain numbers."),
           .group = tr("Output"),
           .excludes = {"json"}},
          {.name = "plot",
           .value = "FILE.svg",
           .help = tr("Also plot the result to this SVG file."),
           .group = tr("Output"),
           .complete = Complete::File}};
}

Option data_option() {
  return {
      .name = "data",
      .value = "DIR",
      .help = tr(
          "Directory of the public data sets (default: the environment variable GFLOW_LAB_DATA)."),
      .complete = Complete::Directory};
}

std::string data_directory(const Invocation& invocation) {
  if (invocation.has("data")) return invocation.get("data");
  return os::environment("GFLOW_LAB_DATA").value_or("");
}

Option days_option() {
  return {
      .name = "days",
      .value = "FIRST-LAST",
      .help = tr("For a trace: only jobs submitted on these days, counted from the first job.")};
}

Result<Days> read_days(const std::string& text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_number(text.substr(0, dash));
  const auto last = parse_number(dash == std::string::npos ? "" : text.substr(dash + 1));
  if (!first || !last || *first >= *last || *last > 36'500) {
    return fail(
        Code::Usage,
        tr_format(
            "'{}' is not a range of days; '28-58' is from the end of day 28 to the end of day 58",
            printable(text)));
  }
  return Days{static_cast<int>(*first), static_cast<int>(*last)};
}

Result<void> draw(const std::vector<lab::Chart>& charts,
                  const std::string& option,
                  const std::string& file,
                  Context& context) {
  if (!file.ends_with(".svg")) {
    return fail(Code::Usage,
                tr_format("--{} writes an SVG file: name it '{}.svg'", option, printable(file)));
  }
  GF_CHECK(os::write_file(file, lab::svg_text(charts), 0644));
  context.note(tr_format("plotted to {}", printable(file)));
  return {};
}

Result<int> give(const lab::Report& report, const Invocation& invocation, Context& context) {
  if (invocation.has("plot")) {
    GF_CHECK(draw(report.charts, "plot", invocation.get("plot"), context));
  }
  if (context.json) {
    context.out << lab::report_json(report);
  } else if (invocation.has("csv")) {
    context.out << lab::report_csv(report);
  } else {
    context.out << lab::report_text(report);
  }
  return 0;
}

lab::Progress ProgressLine::callback() {
  if (!context_.err_is_terminal) return {};
  return [this](double done, const std::string& at) {
    const std::string line = fmt::format("{:3.0f} %  {}", done * 100, printable(at));
    if (line == shown_) return;
    context_.err << "\r\033[K" << line << std::flush;
    shown_ = line;
  };
}

void ProgressLine::wipe() {
  if (!shown_.empty()) context_.err << "\r\033[K" << std::flush;
  shown_.clear();
}

}  // namespace gflow::cli

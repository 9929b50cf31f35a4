// SPDX-License-Identifier: Apache-2.0
#include "lab/commands/experiment.h"

#include <fmt/format.h>

#include <ostream>

#include "base/text.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::cli {

std::vector<Option> output_options() {
  return {{.name = "csv",
           .help = "print the tables as CSV, with plain numbers.",
           .group = "Output",
           .excludes = {"json"}},
          {.name = "plot",
           .value = "FILE.svg",
           .help = "draw the result into this file, too.",
           .group = "Output",
           .complete = Complete::File}};
}

Option data_option() {
  return {.name = "data",
          .value = "DIR",
          .help =
              "where the public data sets are; else the environment variable GFLOW_LAB_DATA "
              "says it.",
          .complete = Complete::Directory};
}

std::string data_directory(const Invocation& invocation) {
  if (invocation.has("data")) return invocation.get("data");
  return os::environment("GFLOW_LAB_DATA").value_or("");
}

Result<int> give(const lab::Report& report, const Invocation& invocation, Context& context) {
  if (invocation.has("plot")) {
    const std::string file = invocation.get("plot");
    if (!file.ends_with(".svg")) {
      return fail(Code::Usage,
                  fmt::format("--plot writes SVG pictures: call it '{}.svg'", printable(file)));
    }
    GF_CHECK(os::write_file(file, lab::svg_text(report.charts), 0644));
    context.note(fmt::format("drawn into {}", printable(file)));
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

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "scenario/scenario.h"

namespace {

struct Played {
  std::string name;
  std::string wrong;  ///< the first contradiction; "" if there is none
};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    if (c == '<') out += "&lt;";
    if (c == '"') out += "&quot;";
    if (c != '&' && c != '<' && c != '"') out += c;
  }
  return out;
}

/// A report as JUnit writes it, one test case for each file.
void write_report(const std::string& path, const std::vector<Played>& all) {
  std::ofstream out(path);
  out << "<testsuites><testsuite>\n";
  for (const Played& played : all) {
    out << fmt::format("<testcase classname=\"scenario\" name=\"{}\">", escaped(played.name));
    if (!played.wrong.empty()) {
      out << fmt::format("<failure message=\"{}\"/>", escaped(played.wrong));
    }
    out << "</testcase>\n";
  }
  out << "</testsuite></testsuites>\n";
}

}  // namespace

/// Plays the scenario files given; prints the first contradiction of each. `--junit FILE` before
/// them leaves a report.
int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  std::string report;
  if (arguments.size() > 1 && arguments.front() == "--junit") {
    report = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  std::vector<Played> all;
  bool failed = arguments.empty();
  for (const std::string& path : arguments) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    const std::string wrong =
        file ? gflow::scenario::Scenario().play(path, text.str()) : path + ": it cannot be read";
    fmt::print("{} {}\n", wrong.empty() ? "ok  " : "FAIL", wrong.empty() ? path : wrong);
    failed = failed || !wrong.empty();
    all.push_back({std::filesystem::path(path).stem().string(), wrong});
  }
  if (!report.empty()) write_report(report, all);
  return failed ? 1 : 0;
}

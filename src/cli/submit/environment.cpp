// SPDX-License-Identifier: Apache-2.0
#include "cli/submit/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/memory.h"
#include "base/text.h"
#include "base/translate.h"

namespace gflow::cli {

namespace {

constexpr std::size_t kMaxBytes = 256 * 1024;

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

/// Variables the runner sets for the job itself; GFLOW_SOCKET and GFLOW_CONFIG are the user's.
bool is_of_a_job(std::string_view name) {
  constexpr std::array<std::string_view, 8> kPrefixes = {"GFLOW_JOB_",
                                                         "GFLOW_ARRAY_",
                                                         "GFLOW_PARAM_",
                                                         "GFLOW_GPU",
                                                         "GFLOW_LOG_",
                                                         "GFLOW_PORT_",
                                                         "GFLOW_ATTEMPT",
                                                         "GFLOW_LAUNCH"};
  return std::ranges::any_of(kPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// What a job can hardly do without although nothing is exported.
bool is_basic(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {
      "HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TZ", "XDG_RUNTIME_DIR"};
  return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

Environment own_environment() {
  Environment all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (variable.find('=') != std::string_view::npos && variable.front() != '=') {
      all.emplace_back(variable);
    }
  }
  return all;
}

Environment exported(const Environment& all, const Export& wanted) {
  Environment environment;
  for (const std::string& variable : all) {
    const std::string_view name = name_of(variable);
    if (is_of_a_job(name)) continue;
    const bool named = std::ranges::find(wanted.names, name) != wanted.names.end();
    if (wanted.base == Export::Base::All || named || is_basic(name))
      environment.push_back(variable);
  }
  for (const std::string& variable : wanted.set) {
    const std::string_view name = name_of(variable);
    set_variable(environment, name, std::string_view(variable).substr(name.size() + 1));
  }
  return environment;
}

void set_variable(Environment& environment, std::string_view name, std::string_view value) {
  std::string variable = fmt::format("{}={}", name, value);
  const auto at = std::ranges::find_if(
      environment, [&](const std::string& other) { return name_of(other) == name; });
  if (at == environment.end()) {
    environment.push_back(std::move(variable));
  } else {
    *at = std::move(variable);
  }
}

std::string variable(const Environment& environment, std::string_view name) {
  for (const std::string& variable : environment) {
    if (name_of(variable) == name) return variable.substr(name.size() + 1);
  }
  return "";
}

Result<void> check_size(const Environment& environment) {
  std::size_t bytes = 0;
  const std::string* largest = nullptr;
  for (const std::string& variable : environment) {
    bytes += variable.size() + 1;
    if (largest == nullptr || variable.size() > largest->size()) largest = &variable;
  }
  if (bytes <= kMaxBytes) return {};
  return fail(Code::Exhausted,
              tr_format("the environment is {} KiB, the maximum is {} KiB; the largest variable is "
                        "{} with {} KiB: unset it, or use --export NONE",
                        bytes / 1024,
                        kMaxBytes / 1024,
                        printable(name_of(*largest)),
                        largest->size() / 1024));
}

}  // namespace gflow::cli

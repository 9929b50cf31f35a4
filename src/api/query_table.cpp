// SPDX-License-Identifier: Apache-2.0
#include "api/query_table.h"

#include <algorithm>
#include <charconv>

#include "api/query.h"
#include "base/text.h"
#include "base/translate.h"
#include "core/requests.h"

namespace gflow::api::detail {
namespace {

std::string shown(std::string_view value) { return printable(value.substr(0, 100)); }

std::string words_of(const QueryParameter& told) {
  return join(std::vector<std::string>(told.words.begin(), told.words.end()), ", ");
}

/// What an unset variable of a script makes of a filter: it means neither all nor none.
std::unexpected<Error> says_nothing(const QueryParameter& told) {
  return fail(Code::Usage, tr_format("{} is empty; leave it out if it is not wanted", told.name));
}

}  // namespace

Result<void> read_value(std::string& into, const QueryParameter& told, std::string_view value) {
  if (value.empty()) return says_nothing(told);
  into = value;
  return {};
}

Result<void> read_value(std::vector<std::string>& into,
                        const QueryParameter& told,
                        std::string_view value) {
  const bool is_list = told.many != QueryParameter::Many::Repeated;
  if (value.find_first_not_of(is_list ? " ," : "") == std::string_view::npos) {
    return says_nothing(told);
  }
  if (!is_list) {
    into.emplace_back(value);
    return {};
  }
  for (const std::string_view one : split(value, ',')) into.emplace_back(trim(one));
  return {};
}

Result<void> read_value(StatusSet& into, const QueryParameter& told, std::string_view value) {
  for (const std::string_view one : split(value, ',')) {
    const auto status = parse_status(trim(one));
    if (!status) return with_context(status.error(), told.name);
    into.insert(*status);
  }
  return {};
}

Result<void> read_value(std::vector<JobId>& into,
                        const QueryParameter& told,
                        std::string_view value) {
  auto jobs = parse_job_ids(value);
  if (!jobs) return with_context(jobs.error(), told.name);
  into = *std::move(jobs);
  return {};
}

Result<void> read_value(bool& into, const QueryParameter& told, std::string_view value) {
  into = value == "true";
  if (into || value == "false") return {};
  return fail(Code::Usage,
              tr_format("{} must be true or false, not '{}'", told.name, shown(value)));
}

Result<void> read_value(double& into, const QueryParameter& told, std::string_view value) {
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
  const bool is_number = error == std::errc() && end == value.data() + value.size();
  // Not even what is no number is below it.
  if (is_number && into >= static_cast<double>(told.range.least) &&
      into <= static_cast<double>(told.range.most)) {
    return {};
  }
  return fail(Code::Usage,
              tr_format("{} must be a number from {} to {}, as 16 or 16.5, not '{}'",
                        told.name,
                        told.range.least,
                        told.range.most,
                        shown(value)));
}

Result<void> read_value(WallTime& into, const QueryParameter& told, std::string_view value) {
  const auto time = parse_rfc3339(value);
  if (!time) return with_context(time.error(), told.name);
  into = *time;
  return {};
}

Result<std::uint64_t> number_of(const QueryParameter& told, std::string_view value) {
  const auto number = parse_number(value);
  if (!number || *number > static_cast<std::uint64_t>(INT64_MAX)) {
    return fail(Code::Usage, tr_format("{} must be a number, not '{}'", told.name, shown(value)));
  }
  if (told.range.contains(static_cast<std::int64_t>(*number))) return *number;
  return fail(
      Code::Usage,
      told.range.most == INT64_MAX
          ? tr_format("{} must be at least {}, not {}", told.name, told.range.least, *number)
          : tr_format("{} must be {} to {}, not {}",
                      told.name,
                      told.range.least,
                      told.range.most,
                      *number));
}

Result<std::size_t> word_of(const QueryParameter& told, std::string_view value) {
  const auto found = std::ranges::find(told.words, value);
  if (found != told.words.end()) return static_cast<std::size_t>(found - told.words.begin());
  return fail(Code::Usage,
              tr_format("{} must be one of {}, not '{}'", told.name, words_of(told), shown(value)));
}

Result<void> read_rows(std::string_view query,
                       const std::vector<QueryParameter>& rows,
                       const std::function<Result<void>(std::size_t, std::string_view)>& take) {
  std::vector<std::string> names;
  std::vector<std::string_view> lists;
  for (const QueryParameter& row : rows) {
    names.emplace_back(row.name);
    if (row.many != QueryParameter::Many::One) lists.push_back(row.name);
  }
  for (const Parameter& parameter : GF_TRY(read_parameters(query, lists))) {
    const auto row = std::ranges::find(names, parameter.name);
    if (row == names.end()) return unknown_parameter(parameter.name, names);
    GF_CHECK(take(static_cast<std::size_t>(row - names.begin()), parameter.value));
  }
  return {};
}

}  // namespace gflow::api::detail

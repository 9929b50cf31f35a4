// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "api/json.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/queue/tree.h"

namespace gflow::cli {

std::vector<Row> rows_of(const std::vector<const Field*>& fields,
                         const std::vector<api::JobView>& jobs) {
  std::vector<Row> rows;
  for (const api::JobView& job : jobs) rows.push_back(row_of(fields, job));
  return rows;
}

namespace {

std::string tree_text(const Listing& listing, const api::JobPage& page, const Painter& paint) {
  std::vector<const api::JobView*> jobs;
  for (const api::JobView& job : page.jobs) jobs.push_back(&job);
  std::vector<Row> rows;
  for (const TreeLine& line : dependency_tree(unfolded(jobs))) {
    Row row = row_of(listing.fields, line.jobs.first());
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool id = listing.fields[i]->name == "JOBID";
      if (line.elsewhere) {
        row[i] = {id ? tr_format("→ see job {}", line.jobs.ids()) : "", Style::Dim};
      }
      if (id) row[i].text.insert(0, line.prefix);
    }
    rows.push_back(std::move(row));
  }
  return table_text(columns_of(listing.fields), rows, listing.header, paint);
}

std::string grouped_text(const Listing& listing, const api::JobPage& page, const Painter& paint) {
  std::map<Status, std::vector<api::JobView>> groups;
  for (const api::JobView& job : page.jobs) groups[job.status].push_back(job);
  std::string rule;
  for (int i = 0; i < 60; ++i) rule += "─";
  std::string out;
  const auto add = [&](Status status) {
    const auto group = groups.find(status);
    if (group == groups.end()) return;
    if (!out.empty()) out += '\n';
    out += fmt::format("{} ({})\n{}\n", status_name(status), group->second.size(), rule);
    out += table_text(
        columns_of(listing.fields), rows_of(listing.fields, group->second), listing.header, paint);
  };
  // What runs is looked for first.
  for (const StatusSet part : {kActive, kPending, kEnded}) {
    for (const Status status : part.list()) add(status);
  }
  return out;
}

std::string template_text(const std::vector<TemplatePiece>& pieces, const api::JobView& job) {
  std::string out;
  for (const TemplatePiece& piece : pieces) {
    out += piece.text;
    if (piece.field != nullptr) out += piece.field->cell(job).text;
  }
  return out + '\n';
}

template <typename Key>
void sort_by(std::vector<api::JobView>& jobs, bool backwards, Key key) {
  const auto is_before = [&](const api::JobView& a, const api::JobView& b) {
    return backwards ? key(b) < key(a) : key(a) < key(b);
  };
  // Most often they are so already, and moving a job is not cheap.
  if (!std::ranges::is_sorted(jobs, is_before)) std::ranges::stable_sort(jobs, is_before);
}

}  // namespace

Result<std::vector<TemplatePiece>> read_template(std::string_view text,
                                                 std::span<const Field> more) {
  const auto is_of_a_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  std::vector<TemplatePiece> pieces(1);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text[at] == '{' ? text.find('}', at) : std::string_view::npos;
    if (end != std::string_view::npos) {
      const std::string_view name = text.substr(at + 1, end - at - 1);
      const auto field = choose_fields(name, more);
      if (field && field->size() == 1) {
        pieces.back().field = field->front();
        pieces.emplace_back();
        at = end + 1;
        continue;
      }
      if (!field && !name.empty() && std::ranges::all_of(name, is_of_a_name)) {
        return std::unexpected(field.error());
      }
    }
    pieces.back().text += text[at++];
  }
  return pieces;
}

std::vector<std::string> needs_of(const Listing& listing) {
  if (listing.format == Format::Json || listing.format == Format::JsonLines) return {};
  std::vector<std::string> needs = needs_of(listing.fields);
  for (const TemplatePiece& piece : listing.text_template) {
    if (piece.field != nullptr) std::ranges::copy(piece.field->needs, std::back_inserter(needs));
  }
  needs.emplace_back("id");  // of none there would be all
  if (listing.layout == Layout::Tree) needs.emplace_back("spec.dependencies");
  if (listing.layout == Layout::Grouped) needs.emplace_back("status");
  return each_once(std::move(needs));
}

bool is_line_by_line(const Listing& listing) {
  switch (listing.format) {
    case Format::JsonLines:
    case Format::Csv:
    case Format::Tsv:
    case Format::Template:
      return true;
    case Format::Json:
    case Format::Yaml:
    case Format::Table:
      return false;
  }
  return false;
}

bool is_plain_table(const Listing& listing) {
  return listing.format == Format::Table && listing.layout == Layout::Flat;
}

std::string listing_text(const Listing& listing, const api::JobPage& page, const Painter& paint) {
  const auto table = [&](auto write) {
    return write(columns_of(listing.fields), rows_of(listing.fields, page.jobs), listing.header);
  };
  std::string out;
  switch (listing.format) {
    case Format::Json:
      return api::write(page) + '\n';
    case Format::JsonLines:
      for (const api::JobView& job : page.jobs) out += api::write(job) + '\n';
      return out;
    case Format::Csv:
      return table(csv_text);
    case Format::Tsv:
      return table(tsv_text);
    case Format::Yaml:
      return yaml_text(columns_of(listing.fields), rows_of(listing.fields, page.jobs));
    case Format::Template:
      for (const api::JobView& job : page.jobs) out += template_text(listing.text_template, job);
      return out;
    case Format::Table:
      break;
  }
  if (listing.layout == Layout::Tree) return tree_text(listing, page, paint);
  if (listing.layout == Layout::Grouped) return grouped_text(listing, page, paint);
  return table_text(
      columns_of(listing.fields), rows_of(listing.fields, page.jobs), listing.header, paint);
}

void sort_jobs(std::vector<api::JobView>& jobs, const JobOrder& order) {
  using api::JobView;
  const bool backwards = order.descending;
  switch (order.key) {
    case JobKey::Id:
      return sort_by(jobs, backwards, [](const JobView& j) { return j.id; });
    case JobKey::State:
      return sort_by(jobs, backwards, [](const JobView& j) { return &status_info(j.status); });
    case JobKey::Time:
      return sort_by(jobs, backwards, [](const JobView& j) { return j.run_time; });
    case JobKey::Name:
      return sort_by(jobs, backwards, [](const JobView& j) { return j.spec.name; });
    case JobKey::Gpus:
      return sort_by(jobs, backwards, [](const JobView& j) {
        return std::int64_t{j.spec.request.gpus} * j.spec.request.nodes;
      });
    case JobKey::Priority:
      return sort_by(jobs, backwards, [](const JobView& j) { return j.spec.priority; });
  }
}

void limit_jobs(std::vector<api::JobView>& jobs, long limit) {
  const auto size = static_cast<long>(jobs.size());
  if (limit > 0 && limit < size) jobs.resize(static_cast<std::size_t>(limit));
  if (limit < 0 && -limit < size) jobs.erase(jobs.begin(), jobs.end() + limit);
}

}  // namespace gflow::cli

// SPDX-License-Identifier: Apache-2.0
#include "store/columns.h"

#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>

#include <utility>

#include "store/number_list.h"
#include "store/payload_row.h"

namespace gflow::store {
namespace {

std::string numbers_text(const std::vector<int>& numbers) {
  return write_numbers({numbers.begin(), numbers.end()});
}

std::vector<int> numbers_of(std::string_view text) {
  const auto numbers = read_numbers(text);
  if (!numbers) throw SQLite::Exception(fmt::format("numbers '{}'", text));
  std::vector<int> list;
  list.reserve(numbers->size());
  for (const std::uint64_t number : *numbers) list.push_back(static_cast<int>(number));
  return list;
}

/// As many strings as a part has, for each part.
std::vector<std::string> strings_of(Query& query, std::size_t each) {
  auto strings = unpack(query.text());
  if (!strings || strings->size() % each != 0) throw SQLite::Exception("a damaged list");
  return std::move(*strings);
}

}  // namespace

void put(Query& query, const std::string& text) { query.text(text); }

void put(Query& query, const std::vector<int>& numbers) { query.copied(numbers_text(numbers)); }

void put(Query& query, const std::vector<std::string>& strings) {
  query.copied_blob(pack(strings));
}

void put(Query& query, const std::vector<Label>& labels) {
  std::vector<std::string> strings;
  for (const Label& label : labels) {
    strings.push_back(label.key);
    strings.push_back(label.value);
  }
  query.copied_blob(pack(strings));
}

void put(Query& query, const std::vector<Allocation>& allocations) {
  std::vector<std::string> strings;
  for (const Allocation& allocation : allocations) {
    strings.push_back(allocation.node);
    strings.push_back(numbers_text(allocation.gpus));
    strings.push_back(numbers_text(allocation.cpus));
  }
  query.copied_blob(pack(strings));
}

void get(Query& query, std::string& text) { text = query.text(); }

void get(Query& query, std::vector<int>& numbers) { numbers = numbers_of(query.text()); }

void get(Query& query, std::vector<std::string>& strings) { strings = strings_of(query, 1); }

void get(Query& query, std::vector<Label>& labels) {
  const std::vector<std::string> strings = strings_of(query, 2);
  for (std::size_t i = 0; i < strings.size(); i += 2) {
    labels.push_back({strings[i], strings[i + 1]});
  }
}

void get(Query& query, std::vector<Allocation>& allocations) {
  const std::vector<std::string> strings = strings_of(query, 3);
  for (std::size_t i = 0; i < strings.size(); i += 3) {
    allocations.push_back({strings[i], numbers_of(strings[i + 1]), numbers_of(strings[i + 2])});
  }
}

std::string jobs_text(const std::vector<JobId>& jobs) {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(jobs.size());
  for (const JobId job : jobs) numbers.push_back(job.value);
  return write_numbers(numbers);
}

std::vector<JobId> read_jobs_text(const std::string& text) {
  const auto numbers = read_numbers(text);
  if (!numbers) throw SQLite::Exception("damaged numbers of jobs");
  std::vector<JobId> jobs;
  jobs.reserve(numbers->size());
  for (const std::uint64_t number : *numbers) jobs.emplace_back(number);
  return jobs;
}

}  // namespace gflow::store

// SPDX-License-Identifier: Apache-2.0
#include "engine/job_table.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <ranges>
#include <tuple>
#include <utility>

#include "core/job_description.h"

namespace gflow::engine {
namespace {

std::size_t hash_of(const JobSpec& spec) {
  std::size_t hash = 0;
  const auto add = [&hash](const auto& value) {
    hash = hash * 31 + std::hash<std::remove_cvref_t<decltype(value)>>{}(value);
  };
  add(spec.user.uid);
  add(spec.project);
  add(spec.group);
  add(spec.work_dir);
  add(spec.priority);
  add(spec.request.gpus);
  add(spec.request.cpus);
  add(spec.request.memory.bytes);
  add(spec.request.gpu_memory.bytes);
  add(spec.time_limit ? spec.time_limit->count() : 0);
  for (const JobId id : spec.dependencies.jobs) add(id.value);
  return hash;
}

/// Whether it comes after all of them.
bool is_behind(const auto& jobs, JobId id) { return jobs.empty() || jobs.rbegin()->first < id; }

bool says_nothing(const Held& held) {
  const auto& [why] = held;  // all there is
  return why.empty();
}

bool fits(std::size_t size) { return size <= std::numeric_limits<std::uint32_t>::max(); }

}  // namespace

Glance glance_at(const Job& job) {
  return {job.id, job.spec.name, &job.spec, status_of(job), job.submitted, &job};
}

JobTable::JobTable(const JobTable& other) {
  for (const JobId id : other.ids()) add(other.at(id));
}

JobTable& JobTable::operator=(const JobTable& other) {
  JobTable copy(other);
  return *this = std::move(copy);
}

Job& JobTable::add(Job job) {
  const JobId id = job.id;
  // Nearly all are the newest.
  if (!is_behind(open_, id) || !is_behind(packed_, id)) {
    if (packed_.contains(id) || open_.contains(id)) return at(id);
  }
  changed_.push_back(id);
  return open_.emplace_hint(open_.end(), id, std::move(job))->second;
}

void JobTable::erase(JobId id) {
  open_.erase(id);
  shown_.erase(id);
  const auto at = packed_.find(id);
  if (at == packed_.end()) return;
  let_go(at->second.spec);
  packed_.erase(at);
}

const Job* JobTable::find(JobId id) const {
  if (const auto at = open_.find(id); at != open_.end()) return &at->second;
  if (const auto at = shown_.find(id); at != shown_.end()) return &at->second;
  const auto at = packed_.find(id);
  return at == packed_.end()
             ? nullptr
             : &shown_.emplace_hint(shown_.end(), id, unpack(id, at->second))->second;
}

const Job& JobTable::at(JobId id) const { return *find(id); }

Job& JobTable::at(JobId id) {
  changed_.push_back(id);
  if (const auto at = open_.find(id); at != open_.end()) return at->second;
  (void)find(id);
  const auto packed = packed_.find(id);
  let_go(packed->second.spec);
  packed_.erase(packed);
  return open_.insert(shown_.extract(id)).position->second;  // where it was shown
}

std::vector<JobId> JobTable::ids() const { return last_ids(size()); }

std::vector<JobId> JobTable::unpacked_ids() const {
  const auto ids = std::views::keys(open_);
  return {ids.begin(), ids.end()};
}

std::vector<JobId> JobTable::last_ids(std::size_t most) const {
  std::vector<JobId> ids;
  auto open = open_.rbegin();
  auto packed = packed_.rbegin();
  while (ids.size() < most && (open != open_.rend() || packed != packed_.rend())) {
    const bool from_open =
        packed == packed_.rend() || (open != open_.rend() && open->first > packed->first);
    ids.push_back(from_open ? (open++)->first : (packed++)->first);
  }
  std::ranges::reverse(ids);
  return ids;
}

JobTable::Reader::Reader(const JobTable& table)
    : table_(&table), open_(table.open_.begin()), packed_(table.packed_.begin()) {}

std::optional<Glance> JobTable::Reader::at(JobId id) {
  const auto is_next = [id](const auto& jobs, auto next) {
    return next != jobs.end() && next->first == id;
  };
  if (!is_next(table_->packed_, packed_) && !is_next(table_->open_, open_)) {
    packed_ = table_->packed_.lower_bound(id);
    open_ = table_->open_.lower_bound(id);
  }
  if (is_next(table_->packed_, packed_)) return glance(id, (packed_++)->second);
  if (is_next(table_->open_, open_)) return glance_at((open_++)->second);
  return std::nullopt;
}

Glance JobTable::Reader::glance(JobId id, const Packed& packed) {
  return {id,
          {packed.texts.get(), packed.name_size},
          &packed.spec->second.spec,
          packed.held ? Status::Hold : Status::Queued,
          packed.submitted,
          nullptr};
}

void JobTable::pack() {
  shown_.clear();
  for (const JobId id : std::exchange(changed_, {})) {
    const auto at = open_.find(id);
    if (at == open_.end() || !can_be_packed(at->second)) continue;
    packed_.emplace_hint(packed_.end(), id, pack(std::move(at->second)));
    open_.erase(at);
  }
}

// A new field of a job: Packed has it, or a job in which it says something is not packed.
static_assert(std::tuple_size_v<decltype(Description<Job>::kFields)> == 8);

/// One of which everything is in Packed.
bool JobTable::can_be_packed(const Job& job) {
  const auto* held = std::get_if<Held>(&job.state);
  const bool waits = held != nullptr ? says_nothing(*held) : job.state == JobState(Queued{});
  return waits && job.attempts == 0 && job.retries == 0 && job.preemptions == 0 &&
         job.served == std::chrono::milliseconds(0) && fits(job.spec.name.size()) &&
         fits(job.spec.command.size());
}

JobTable::Packed JobTable::pack(Job&& job) {
  Packed packed;
  packed.name_size = static_cast<std::uint32_t>(job.spec.name.size());
  packed.command_size = static_cast<std::uint32_t>(job.spec.command.size());
  const std::size_t size = job.spec.name.size() + job.spec.command.size();
  packed.texts = std::make_unique_for_overwrite<char[]>(size);
  std::ranges::copy(job.spec.command, std::ranges::copy(job.spec.name, packed.texts.get()).out);
  job.spec.name.clear();
  job.spec.command.clear();
  packed.spec = share(std::move(job.spec));
  packed.submitted = job.submitted;
  packed.lived = job.lived;
  packed.payload_bytes = job.payload_bytes;
  packed.held = std::holds_alternative<Held>(job.state);
  return packed;
}

Job JobTable::unpack(JobId id, const Packed& packed) const {
  Job job;
  job.id = id;
  job.spec = packed.spec->second.spec;
  job.spec.name.assign(packed.texts.get(), packed.name_size);
  job.spec.command.assign(packed.texts.get() + packed.name_size, packed.command_size);
  if (packed.held) job.state = Held{};
  job.submitted = packed.submitted;
  job.lived = packed.lived;
  job.payload_bytes = packed.payload_bytes;
  return job;
}

JobTable::Specs::value_type* JobTable::share(JobSpec&& spec) {
  const std::size_t hash = hash_of(spec);
  const auto [first, last] = specs_.equal_range(hash);
  auto at = std::find_if(first, last, [&spec](const auto& one) { return one.second.spec == spec; });
  if (at == last) at = specs_.emplace(hash, Shared{std::move(spec), 0});
  ++at->second.users;
  return &*at;
}

void JobTable::let_go(Specs::value_type* shared) {
  if (--shared->second.users > 0) return;
  const auto [first, last] = specs_.equal_range(shared->first);
  specs_.erase(std::find_if(first, last, [shared](const auto& one) { return &one == shared; }));
}

}  // namespace gflow::engine

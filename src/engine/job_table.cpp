// SPDX-License-Identifier: Apache-2.0
#include "engine/job_table.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <ranges>
#include <tuple>
#include <utility>

#include "core/job_description.h"
#include "core/requests.h"
#include "engine/spec_hash.h"

namespace gflow::engine {
namespace {

/// Whether these jobs, one behind the other, are before this one.
bool are_before(JobId first, std::uint64_t count, JobId id) {
  return first < id && id.value - first.value >= count;
}

bool is_among(JobId first, std::uint64_t count, JobId id) {
  return id.value - first.value < count;  // those before the first are far behind the last
}

bool says_nothing(const Held& held) {
  const auto& [why] = held;  // all there is
  return why.empty();
}

bool fits(std::size_t size) { return size <= std::numeric_limits<std::uint32_t>::max(); }

}  // namespace

Glance glance_at(const Job& job) {
  return {.id = job.id,
          .given_name = job.spec.name,
          .spec = &job.spec,
          .status = status_of(job),
          .submitted = job.submitted,
          .lived = job.lived,
          .job = &job};
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
  const bool is_newest =
      (open_.empty() || open_.rbegin()->first < id) &&
      (packed_.empty() || are_before(packed_.rbegin()->first, packed_.rbegin()->second.count, id));
  if (!is_newest && (open_.contains(id) || find_packed(id) != packed_.end())) return at(id);
  changed_.push_back(id);
  return open_.emplace_hint(open_.end(), id, std::move(job))->second;
}

void JobTable::add(const JobRange& range) {
  Packed packed = pack(Job(range.first), range.naming);
  packed.count = range.count;
  packed_count_ += range.count;
  packed_.emplace_hint(packed_.end(), range.first.id, std::move(packed));
}

void JobTable::restore(Job&& job) {
  if (can_be_packed(job)) return add_packed(std::move(job));
  const JobId id = job.id;
  open_.emplace_hint(open_.end(), id, std::move(job));
}

void JobTable::erase(JobId id) {
  open_.erase(id);
  shown_.erase(id);
  const auto jobs = find_packed(id);
  if (jobs != packed_.end()) erase_packed(packed_.find(jobs->first), id);
}

const Job* JobTable::find(JobId id) const {
  if (const auto at = open_.find(id); at != open_.end()) return &at->second;
  if (const auto at = shown_.find(id); at != shown_.end()) return &at->second;
  const auto jobs = find_packed(id);
  return jobs == packed_.end() ? nullptr
                               : &shown_.emplace_hint(shown_.end(), id, unpack(id, *jobs))->second;
}

const Job& JobTable::at(JobId id) const { return *find(id); }

Job& JobTable::at(JobId id) {
  changed_.push_back(id);
  if (const auto at = open_.find(id); at != open_.end()) return at->second;
  (void)find(id);
  erase_packed(packed_.find(find_packed(id)->first), id);
  return open_.insert(shown_.extract(id)).position->second;  // where it was shown
}

std::vector<JobId> JobTable::ids() const { return last_ids(size()); }

std::vector<JobId> JobTable::unpacked_ids() const {
  const auto ids = std::views::keys(open_);
  return {ids.begin(), ids.end()};
}

std::vector<JobTable::Alike> JobTable::alike() const {
  std::vector<Alike> all;
  auto open = open_.begin();
  for (const auto& [first, packed] : packed_) {
    for (; open != open_.end() && open->first < first; ++open) all.push_back({open->first});
    all.push_back({first, packed.count, packed.facts.naming});
  }
  for (; open != open_.end(); ++open) all.push_back({open->first});
  return all;
}

std::vector<JobId> JobTable::last_ids(std::size_t most) const {
  std::vector<JobId> ids;
  auto open = open_.rbegin();
  auto packed = packed_.rbegin();
  std::uint64_t left = packed == packed_.rend() ? 0 : packed->second.count;
  while (ids.size() < most && (open != open_.rend() || packed != packed_.rend())) {
    const JobId last = left == 0 ? JobId() : JobId(packed->first.value + left - 1);
    if (left == 0 || (open != open_.rend() && last < open->first)) {
      ids.push_back((open++)->first);
      continue;
    }
    ids.push_back(last);
    if (--left == 0 && ++packed != packed_.rend()) left = packed->second.count;
  }
  std::ranges::reverse(ids);
  return ids;
}

JobTable::Reader::Reader(const JobTable& table)
    : table_(&table), open_(table.open_.begin()), packed_(table.packed_.begin()) {}

std::optional<Glance> JobTable::Reader::at(JobId id) {
  const auto has = [id](const PackedJobs& all, PackedJobs::const_iterator jobs) {
    return jobs != all.end() && is_among(jobs->first, jobs->second.count, id);
  };
  const auto is_next = [this, id] { return open_ != table_->open_.end() && open_->first == id; };
  const PackedJobs& packed = table_->packed_;
  // The next of either kind, in the same row of those alike or behind it.
  if (!has(packed, packed_) && packed_ != packed.end() && has(packed, std::next(packed_))) {
    ++packed_;
  }
  if (!has(packed, packed_) && !is_next()) {
    packed_ = table_->find_packed(id);
    open_ = table_->open_.lower_bound(id);
  }
  if (has(packed, packed_)) return glance(id, *packed_);
  if (is_next()) return glance_at((open_++)->second);
  return std::nullopt;
}

Glance JobTable::Reader::glance(JobId id, const PackedJobs::value_type& jobs) {
  const auto& [first, packed] = jobs;
  return {.id = id,
          .given_name = packed.name(),
          .naming = packed.facts.naming,
          .after_named = id.value - first.value,
          .spec = &packed.spec->second.spec,
          .status = packed.facts.held ? Status::Hold : Status::Queued,
          .submitted = packed.facts.submitted,
          .lived = packed.facts.lived};
}

void JobTable::pack() {
  shown_.clear();
  for (const JobId id : std::exchange(changed_, {})) {
    const auto at = open_.find(id);
    if (at == open_.end() || !can_be_packed(at->second)) continue;
    add_packed(std::move(at->second));
    open_.erase(at);
  }
}

void JobTable::add_packed(Job&& job) {
  const JobId id = job.id;
  const Naming naming{.by_id = job.spec.name == made_up_name(id.value)};
  add_packed(id, pack(std::move(job), naming));
}

// A new field of a job: Packed has it, or a job in which it says something is not packed.
static_assert(kJobFields == 9);

/// One of which everything is in Packed.
bool JobTable::can_be_packed(const Job& job) {
  const auto* held = std::get_if<Held>(&job.state);
  const bool waits = held != nullptr ? says_nothing(*held) : job.state == JobState(Queued{});
  return waits && job.attempts == 0 && job.retries == 0 && job.preemptions == 0 &&
         job.served == std::chrono::milliseconds(0) &&
         job.served_gpu_time == std::chrono::milliseconds(0) && fits(job.spec.name.size()) &&
         fits(job.spec.command.size());
}

JobTable::Packed JobTable::pack(Job&& job, Naming naming) {
  Packed packed;
  packed.facts.naming = naming;
  if (packed.facts.naming.by_id) job.spec.name.clear();
  set_texts(packed, job.spec.name, job.spec.command);
  job.spec.name.clear();
  job.spec.command.clear();
  packed.spec = share(std::move(job.spec));
  packed.facts.submitted = job.submitted;
  packed.facts.lived = job.lived;
  packed.facts.payload_bytes = job.payload_bytes;
  packed.facts.held = std::holds_alternative<Held>(job.state);
  return packed;
}

void JobTable::set_texts(Packed& packed, std::string_view name, std::string_view command) {
  auto texts = std::make_unique_for_overwrite<char[]>(name.size() + command.size());
  std::ranges::copy(command, std::ranges::copy(name, texts.get()).out);
  packed.texts = std::move(texts);  // the old ones may be what was copied
  packed.name_size = static_cast<std::uint32_t>(name.size());
  packed.command_size = static_cast<std::uint32_t>(command.size());
}

Job JobTable::unpack(JobId id, const PackedJobs::value_type& jobs) {
  const auto& [first, packed] = jobs;
  Job job;
  job.id = id;
  job.spec = packed.spec->second.spec;
  job.spec.name = name_after(packed.name(), first, packed.facts.naming, id.value - first.value);
  job.spec.command = packed.command();
  if (packed.facts.held) job.state = Held{};
  job.submitted = packed.facts.submitted;
  job.lived = packed.facts.lived;
  job.payload_bytes = packed.facts.payload_bytes;
  return job;
}

/// But for their ids, and how many they are.
bool JobTable::are_alike(const Packed& a, const Packed& b) {
  return a.spec == b.spec && a.facts == b.facts && a.facts.naming.step == 0 &&
         a.name() == b.name() && a.command() == b.command();
}

JobTable::PackedJobs::const_iterator JobTable::find_packed(JobId id) const {
  auto jobs = packed_.upper_bound(id);
  if (jobs == packed_.begin()) return packed_.end();
  --jobs;
  return is_among(jobs->first, jobs->second.count, id) ? jobs : packed_.end();
}

/// To those alike before it, and with them to those behind it.
void JobTable::add_packed(JobId id, Packed packed) {
  ++packed_count_;
  auto next = packed_.upper_bound(id);
  if (next != packed_.begin()) {
    const auto before = std::prev(next);
    if (before->first.value + before->second.count == id.value &&
        are_alike(before->second, packed)) {
      let_go(packed.spec);
      ++before->second.count;
      if (next == packed_.end() || next->first.value != id.value + 1 ||
          !are_alike(before->second, next->second)) {
        return;
      }
      before->second.count += next->second.count;
      let_go(next->second.spec);
      packed_.erase(next);
      return;
    }
  }
  if (next != packed_.end() && next->first.value == id.value + 1 &&
      are_alike(packed, next->second)) {
    let_go(packed.spec);
    auto node = packed_.extract(next++);
    node.key() = id;
    ++node.mapped().count;
    packed_.insert(next, std::move(node));
    return;
  }
  packed_.emplace_hint(next, id, std::move(packed));
}

/// Those from the at-th on, which are then no more of these.
/// REQUIRES: there are some, and some before them.
JobTable::Packed JobTable::split(PackedJobs::iterator jobs, std::uint64_t at) {
  Packed& packed = jobs->second;
  Packed rest;
  rest.count = packed.count - at;
  rest.spec = packed.spec;
  ++rest.spec->second.users;
  const bool has_name = !packed.facts.naming.by_id;
  set_texts(rest,
            has_name ? name_after(packed.name(), jobs->first, packed.facts.naming, at) : "",
            packed.command());
  rest.facts = packed.facts;
  packed.count = at;
  return rest;
}

/// REQUIRES: it is one of these.
void JobTable::erase_packed(PackedJobs::iterator jobs, JobId id) {
  --packed_count_;
  const std::uint64_t before = id.value - jobs->first.value;
  const std::uint64_t behind = jobs->second.count - before - 1;
  const JobId next(id.value + 1);
  if (before > 0) {
    if (behind > 0) packed_.emplace_hint(std::next(jobs), next, split(jobs, before + 1));
    jobs->second.count = before;
    return;
  }
  if (behind == 0) {
    let_go(jobs->second.spec);
    packed_.erase(jobs);
    return;
  }
  // The first of many is what mostly goes: the others stay where they are.
  if (jobs->second.facts.naming.step > 0) {
    Packed& packed = jobs->second;
    set_texts(
        packed, name_after(packed.name(), jobs->first, packed.facts.naming, 1), packed.command());
  }
  auto node = packed_.extract(jobs++);
  node.key() = next;
  node.mapped().count = behind;
  packed_.insert(jobs, std::move(node));
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/job.h"
#include "core/job_range.h"
#include "engine/glance.h"

/// Inside of the engine: where the jobs are. Not for other modules.
namespace gflow::engine {

/// The jobs by id. Those that wait, have never run and are not looked at are kept packed: what they
/// ask for once for all that ask for the same, and those alike in all but their ids, one behind the
/// other, as one.
class JobTable {
 public:
  JobTable() = default;
  ~JobTable() = default;
  JobTable(JobTable&&) noexcept = default;
  JobTable& operator=(JobTable&&) noexcept = default;
  JobTable(const JobTable& other);
  JobTable& operator=(const JobTable& other);

  /// Takes a job; one with this id that is there already stays. Returns the one that is there.
  Job& add(Job job);
  /// Takes them packed at once. REQUIRES: they can be (can_be_packed()), and none is there.
  void add(const JobRange& range);
  /// Takes one packed at once if it can be. REQUIRES: it is not there.
  void restore(Job&& job);
  /// One that waits and has never run.
  [[nodiscard]] static bool can_be_packed(const Job& job);
  void erase(JobId id);
  /// Pointers and references to jobs are good until pack(), or until the job is erased; changing
  /// one changes what they refer to.
  [[nodiscard]] const Job* find(JobId id) const;
  [[nodiscard]] const Job& at(JobId id) const;  ///< REQUIRES: it is there
  [[nodiscard]] Job& at(JobId id);              ///< the same
  [[nodiscard]] std::size_t size() const { return open_.size() + packed_count_; }
  /// All there are, ascending.
  [[nodiscard]] std::vector<JobId> ids() const;
  [[nodiscard]] std::vector<JobId> unpacked_ids() const;
  /// All there are, ascending: those packed as one by their first and how many they are.
  struct Alike {
    JobId first;
    std::uint64_t count = 1;
    Naming naming{};
  };
  [[nodiscard]] std::vector<Alike> alike() const;
  /// The last ones, ascending; fewer if there are not so many.
  [[nodiscard]] std::vector<JobId> last_ids(std::size_t most) const;

  /// Looks at one job after the other, without unpacking any: fast where they ascend. Good until
  /// the table changes.
  class Reader;

  /// Packs what was added or may have been changed since this was last called, as far as it can be.
  void pack();
  /// How many packed jobs take their full memory until then because they were looked at.
  [[nodiscard]] std::size_t shown() const { return shown_.size(); }
  [[nodiscard]] std::size_t packed() const { return packed_count_; }
  /// What is kept of them: one for each of those alike in a row.
  [[nodiscard]] std::size_t packs() const { return packed_.size(); }

 private:
  /// What packed jobs ask for, but for name and command, by its hash.
  struct Shared {
    JobSpec spec;
    std::size_t users = 0;  ///< Packed
  };
  using Specs = std::unordered_multimap<std::size_t, Shared>;

  /// Jobs with ids one behind the other.
  struct Packed {
    /// What they have in common besides their spec and texts.
    struct Facts {
      WallTime submitted;
      std::chrono::milliseconds lived{0};
      std::int64_t payload_bytes = 0;
      bool held = false;
      Naming naming{};  ///< where by id, texts has no name

      friend bool operator==(const Facts&, const Facts&) = default;
    };

    std::uint64_t count = 1;
    Specs::value_type* spec = nullptr;  ///< of specs_
    std::unique_ptr<char[]> texts;      ///< name and command, one behind the other
    std::uint32_t name_size = 0;
    std::uint32_t command_size = 0;
    Facts facts;

    /// Of the first.
    [[nodiscard]] std::string_view name() const { return {texts.get(), name_size}; }
    [[nodiscard]] std::string_view command() const {
      return {texts.get() + name_size, command_size};
    }
  };
  using PackedJobs = std::map<JobId, Packed>;  ///< by the first of them

  [[nodiscard]] Packed pack(Job&& job, Naming naming);
  void add_packed(Job&& job);
  void set_texts(Packed& packed, std::string_view name, std::string_view command);
  [[nodiscard]] Packed split(PackedJobs::iterator jobs, std::uint64_t at);
  [[nodiscard]] static bool are_alike(const Packed& a, const Packed& b);
  [[nodiscard]] PackedJobs::const_iterator find_packed(JobId id) const;
  void add_packed(JobId id, Packed packed);
  void erase_packed(PackedJobs::iterator jobs, JobId id);
  [[nodiscard]] static Job unpack(JobId id, const PackedJobs::value_type& jobs);
  [[nodiscard]] Specs::value_type* share(JobSpec&& spec);
  void let_go(Specs::value_type* shared);

  std::map<JobId, Job> open_;  ///< not packed
  PackedJobs packed_;
  std::size_t packed_count_ = 0;
  Specs specs_;
  mutable std::map<JobId, Job> shown_;  ///< packed ones that were looked at since pack()
  std::vector<JobId> changed_;          ///< open ones since pack(); some more than once
};

class JobTable::Reader {
 public:
  explicit Reader(const JobTable& table);
  /// Nothing if it is not there.
  [[nodiscard]] std::optional<Glance> at(JobId id);

 private:
  [[nodiscard]] static Glance glance(JobId id, const PackedJobs::value_type& jobs);

  const JobTable* table_;
  std::map<JobId, Job>::const_iterator open_;  ///< where the next one is, if the next is such a one
  PackedJobs::const_iterator packed_;          ///< the same, or the next is one of these
};

}  // namespace gflow::engine

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// How long jobs run, learned from those that ran. Nobody is asked for an estimate: jobs that look
/// alike before they start (owner, size, time limit, name) are taken to run alike, and where there
/// are few of them, those that look alike in less are asked.
///
/// Usage: record() whenever a job that ran ended, whatever ended it; run_time() for
/// the place of a job that keeps running once it started; time_to_end() for one that can be stopped
/// and go on later; chances() and time_left() for when a running one will be gone. After a restart,
/// record() for every ended job the store still has, oldest first.
///
/// All in whole numbers: the same calls give the same answers on every machine. Memory is bounded;
/// what was not seen for the longest time is forgotten first.
namespace gflow::engine {

/// Service a job has received, in steps: step 0 is up to 30 s, each further one ends at twice the
/// time, the last has no end.
constexpr int kServiceSteps = 24;
[[nodiscard]] int service_step(std::chrono::seconds served);
/// When a job enters the step.
[[nodiscard]] std::chrono::seconds step_begin(int step);
/// How much longer a job may be served before it enters the next step; nothing in the last one.
[[nodiscard]] std::optional<std::chrono::seconds> until_next_step(std::chrono::seconds served);

/// Time limits are told apart in classes only: up to 1 h, 4 h, 12 h, 1, 3, 7, 14, 30, 60, 400 days.
/// Class 0 has no limit.
[[nodiscard]] int limit_class(std::optional<std::chrono::seconds> limit);

/// What is known of a job before it runs. Jobs alike in all of it are most alike.
struct Signature {
  int limit_class = 0;
  std::int64_t parts = 0;  ///< of GPUs, all nodes together; Share::kWholeParts is one
  std::uint32_t uid = 0;
  std::string name;  ///< "" if it says nothing

  friend auto operator<=>(const Signature&, const Signature&) = default;
};

struct HistoryRules {
  std::size_t max_levels = 20'000;  ///< sets of jobs taken to be alike that are remembered
  /// How many jobs of a step are remembered of a set: less adapts faster to a new campaign of jobs.
  int memory = 12;
  int max_jobs = 512;   ///< of a set, in its mean run time; older ones count less
  int weight_step = 4;  ///< jobs that what is known of less alike jobs is worth: chances of ending
  int weight_mean = 8;  ///< the same for the mean run time
  int chance_permille = 160;  ///< of ending within a step, where nothing is known at all

  friend bool operator==(const HistoryRules&, const HistoryRules&) = default;
};

/// How an attempt ended, as far as run times go.
enum class Seen {
  Ended,    ///< the job is over, by itself or not
  Stopped,  ///< it has more to do: made to leave, or the machine went down
};

/// Of a job that enters a step of service, to end within it; in fixed point.
using Chances = std::array<std::int64_t, kServiceSteps>;
/// How much longer a job of these chances that was served so long is expected to run: the time
/// within which half of such jobs end.
[[nodiscard]] std::chrono::seconds time_left(const Chances& chances, std::chrono::seconds served);

class History {
 public:
  explicit History(HistoryRules rules = {}) : rules_(rules) {}

  /// A job was served from `before` on until it had `after` in all.
  void record(const Signature& signature,
              std::chrono::seconds before,
              std::chrono::seconds after,
              Seen how);

  /// Mean time such a job takes from its start to its end.
  [[nodiscard]] std::chrono::seconds run_time(const Signature& signature) const;

  /// Of a job that was served so long: the least time of service per job that ends, over all ways
  /// to serve such jobs for a while and give up then. This is the inverse of the Gittins index,
  /// which orders jobs of unknown length best (Gittins 1989; Scully and Harchol-Balter 2018 for
  /// queues). It is short where many such jobs end soon, however long the others may run.
  [[nodiscard]] std::chrono::seconds time_to_end(const Signature& signature,
                                                 std::chrono::seconds served) const;

  /// How many jobs of its owner, size and class of limit are remembered.
  [[nodiscard]] std::int64_t jobs_like(const Signature& signature) const;
  [[nodiscard]] Chances chances(const Signature& signature) const;

  [[nodiscard]] std::size_t levels() const { return tables_.size(); }

 private:
  friend class MeanRuns;
  /// Jobs taken to be alike: the first `depth` things of their Signatures are equal.
  struct Level {
    int depth = 0;
    Signature signature;

    friend std::strong_ordering operator<=>(const Level&, const Level&) = default;
    friend bool operator==(const Level&, const Level&) = default;
  };
  /// Numbers of jobs in fixed point, so that old ones can count in part.
  struct Table {
    std::array<std::int64_t, kServiceSteps> entered{};
    std::array<std::int64_t, kServiceSteps> ended{};
    std::int64_t jobs = 0;
    std::int64_t seconds = 0;  ///< their run times together
    std::uint64_t used = 0;
  };
  [[nodiscard]] static std::vector<Level> levels_of(const Signature& signature);
  [[nodiscard]] Table& table(const Level& level);

  HistoryRules rules_;
  std::map<Level, Table> tables_;
  std::map<std::uint64_t, Level> by_use_;
  std::uint64_t uses_ = 0;
};

/// Mean run times of some jobs, as a History has them at first, that go on to learn apart from it:
/// for who tells what will be, and leaves what is as it is. To ask and to learn costs no search.
class MeanRuns {
 public:
  /// What is known of jobs alike. Good for the MeanRuns that gave it.
  struct Alike {
    int limit_class = 0;
    std::array<std::uint32_t, 4> levels{};
    std::size_t depth = 0;
  };

  explicit MeanRuns(const History& history) : history_(history) {}
  [[nodiscard]] Alike of(const Signature& signature);
  /// A job alike took so long, and is over.
  void record(const Alike& alike, std::chrono::seconds took);
  /// The same as History::run_time() and jobs_like().
  [[nodiscard]] std::chrono::seconds run_time(const Alike& alike) const;
  [[nodiscard]] std::int64_t jobs_like(const Alike& alike) const;

 private:
  struct Mean {
    std::int64_t jobs = 0;
    std::int64_t seconds = 0;
  };
  const History& history_;
  std::map<History::Level, std::uint32_t> numbers_;
  std::vector<Mean> means_;
};

}  // namespace gflow::engine

// SPDX-License-Identifier: Apache-2.0
#include "slurm/look.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "core/slurm_text.h"
#include "os/random.h"
#include "slurm/programs.h"

namespace gflow::slurm {
namespace {

constexpr std::uint64_t kDay = 86'400;

/// A job that ended, and not as it should: a cancelled one may have a code, too.
bool is_code_of_interest(const Job& job) {
  constexpr std::array<std::string_view, 4> kWith = {
      "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY"};
  return std::ranges::find(kWith, job.state) != kWith.end();
}

/// Nobody who names a job can know the mark.
Result<std::vector<Job>> read_jobs(std::vector<std::string> words) {
  const std::string mark = os::random_hex(8);
  words.insert(words.begin(), {"squeue", "--noheader", "--states=all"});
  words.push_back("--format=" + squeue_format(mark));
  return read_squeue(GF_TRY(output_of({std::move(words)})), mark);
}

/// How those ended of which the state does not say all.
Result<void> read_exits(std::vector<Job>& jobs) {
  std::set<std::string> states;
  for (const Job& job : jobs) {
    if (is_code_of_interest(job)) states.insert(job.state);
  }
  if (states.empty()) return {};
  const std::string mark = os::random_hex(8);
  const std::vector<std::string> names(states.begin(), states.end());
  add_exits(jobs,
            GF_TRY(output_of({{"squeue",
                               "--all",
                               "--noheader",
                               "--states=" + join(names, ","),
                               "--Format=" + exit_format(mark)}})),
            mark);
  std::erase_if(jobs, [](const Job& job) { return is_code_of_interest(job) && !job.exit; });
  return {};
}

/// Those that another's name describes, too, are asked for one by one, as many as a look may cost.
Result<void> read_details(std::vector<Job>& jobs) {
  constexpr std::size_t kMost = 50;
  const auto doubtful =
      add_details(jobs, GF_TRY(output_of({{"scontrol", "--all", "--details", "show", "job"}})));
  for (std::size_t i = 0; i < std::min(doubtful.size(), kMost); ++i) {
    const std::string id = fmt::format("{}", doubtful[i]);
    const Ran alone = GF_TRY(run({{"scontrol", "--all", "--details", "show", "job", id}}));
    if (alone.exit_code != 0) continue;  // it is gone
    std::vector<Job> one = {*std::ranges::find(jobs, doubtful[i], &Job::id)};
    (void)add_details(one, alone.out);  // in doubt still, where it describes itself twice
    *std::ranges::find(jobs, doubtful[i], &Job::id) = std::move(one.front());
  }
  return {};
}

}  // namespace

Result<Facts> read_facts() {
  Facts facts;
  facts.jobs = GF_TRY(read_jobs({"--all"}));
  facts.nodes =
      read_nodes(GF_TRY(output_of({{"scontrol", "--oneliner", "--details", "show", "node"}})));
  GF_CHECK(read_details(facts.jobs));
  GF_CHECK(read_exits(facts.jobs));
  return facts;
}

Result<std::chrono::seconds> read_job_age() {
  const std::string said = GF_TRY(output_of({{"scontrol", "show", "config"}}));
  for (const std::string_view line : fields_between(said, '\n')) {
    if (!line.starts_with("MinJobAge ")) continue;
    const std::string_view value = trim(line.substr(line.find('=') + 1));
    const auto seconds = parse_number(value.substr(0, value.find(' ')));
    if (seconds) return std::chrono::seconds(static_cast<std::int64_t>(std::min(*seconds, kDay)));
  }
  return fail(Code::NotFound, "'scontrol show config' has no MinJobAge");
}

Result<std::vector<Job>> read_own_jobs() {
  return read_jobs({fmt::format("--user={}", ::geteuid())});
}

}  // namespace gflow::slurm

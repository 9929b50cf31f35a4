// SPDX-License-Identifier: Apache-2.0
#include "slurm/look.h"

#include <fmt/format.h>
#include <unistd.h>

#include "os/random.h"
#include "slurm/programs.h"

namespace gflow::slurm {
namespace {

/// Nobody who names a job can know the mark.
Result<std::vector<Job>> read_jobs(std::vector<std::string> words) {
  const std::string mark = os::random_hex(8);
  words.insert(words.begin(), {"squeue", "--noheader", "--states=all"});
  words.push_back("--format=" + squeue_format(mark));
  return read_squeue(GF_TRY(output_of({std::move(words)})), mark);
}

}  // namespace

Result<Facts> read_facts() {
  Facts facts;
  facts.jobs = GF_TRY(read_jobs({"--all"}));
  facts.nodes =
      read_nodes(GF_TRY(output_of({{"scontrol", "--oneliner", "--details", "show", "node"}})));
  const Ran details = GF_TRY(run({{"scontrol", "--all", "--details", "show", "job"}}));
  if (details.exit_code == 0) add_details(facts.jobs, details.out);
  return facts;
}

Result<std::vector<Job>> read_own_jobs() {
  return read_jobs({fmt::format("--user={}", ::geteuid())});
}

}  // namespace gflow::slurm

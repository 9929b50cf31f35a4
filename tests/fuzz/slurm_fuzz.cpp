// SPDX-License-Identifier: Apache-2.0
// What Slurm prints is read whatever it is: nothing in it is negative, and no list is without end.
#include "core/slurm_text.h"
#include "require.h"
#include "slurm/facts.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = gflow::fuzz::text_of(data, size);
  auto jobs = gflow::slurm::read_squeue(text, "@");
  gflow::slurm::add_details(jobs, text);
  for (const gflow::slurm::Job& job : jobs) {
    require(job.id > 0 && job.nodes >= 1 && job.cpus >= 0);
    require(job.node_names.size() <= 10'000);
  }
  for (const gflow::slurm::Node& node : gflow::slurm::read_nodes(text)) {
    require(!node.name.empty() && node.cpus >= 0);
  }
  require(gflow::slurm::gpus_of_tres(text).count >= 0);
  if (const auto span = gflow::slurm::read_span(text)) require(span->count() >= 0);
  return 0;
}

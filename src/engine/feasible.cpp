// SPDX-License-Identifier: Apache-2.0
#include "engine/feasible.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/text.h"
#include "base/translate.h"
#include "core/catalogue.h"
#include "engine/cutting.h"

namespace gflow::engine {

using placement::Demand;
using placement::Ledger;
using placement::NodeIndex;

namespace {

/// "1 GPU", "4 V100 GPUs".
std::string gpus_text(int count, const std::string& kind) {
  return tr_count(static_cast<std::uint64_t>(count),
                  "{} {}GPU",
                  "{} {}GPUs",
                  count,
                  kind.empty() ? kind : kind + " ");
}

std::unexpected<Error> never(std::string_view asked, std::string_view has) {
  return fail(Code::Infeasible,
              tr_format("the job requests {} and {}: it could never start", asked, has));
}

/// "1 GPU", "4 V100 GPUs", "every GPU of a machine with V100 GPUs".
std::string asked_text(const Request& request) {
  const std::string kind = kind_text(request);
  if (!request.see_all) return gpus_text(request.gpus, kind);
  return tr_format("every GPU of a machine with {} GPUs", kind);
}

/// How many devices a node has that the demand would take, whatever is on them.
int suitable(const Ledger& ledger, const Demand& wanted, NodeIndex node) {
  return static_cast<int>(std::ranges::count_if(
      ledger.node(node).devices, [&wanted](const placement::DeviceFacts& device) {
        return placement::wants(wanted, device) && device.memory >= wanted.gpu_memory;
      }));
}

/// The most of something that any node has.
template <typename Of>
auto most(const Ledger& ledger, Of of) {
  decltype(of(NodeIndex{})) best{};
  for (NodeIndex node = 0; node < ledger.size(); ++node) best = std::max(best, of(node));
  return best;
}

std::string owner(const Ledger& ledger) {
  return ledger.count() == 1 ? tr("this machine has") : tr("no node has more than");
}

/// Of any GPU that the demand would take; 0 if that is not known.
Memory largest_memory(const Ledger& ledger, const Demand& wanted) {
  return most(ledger, [&](NodeIndex n) {
    Memory largest{};
    for (const placement::DeviceFacts& device : ledger.node(n).devices) {
      const bool is_one = placement::wants(wanted, device);
      if (is_one) largest = std::max(largest, device.memory);
    }
    return largest;
  });
}

/// Each once, with those of the slices that could be made.
std::vector<std::string> models_of(const Index& index) {
  const Ledger& ledger = index.ledger;
  std::vector<std::string> models = models_to_cut(index);
  for (NodeIndex n = 0; n < ledger.size(); ++n) {
    for (const placement::DeviceFacts& device : ledger.node(n).devices) {
      const bool is_known = std::ranges::find(models, device.model) != models.end();
      if (!device.absent && !is_known) models.push_back(device.model);
    }
  }
  return models;
}

/// "A100-1g.5gb, A100-3g.20gb": MIG devices that a job could have which names them; "" if there are
/// none.
std::string slices_text(const std::vector<std::string>& models) {
  std::vector<std::string> slices;
  std::ranges::copy_if(models, std::back_inserter(slices), catalogue::is_slice);
  std::ranges::sort(slices);
  return printable(join(slices, ", "));
}

/// What is said where MIG devices are all, or part of what there is, and are not asked for by name.
std::unexpected<Error> only_slices(const std::string& asked,
                                   const std::vector<std::string>& models) {
  const std::string slices = slices_text(models);
  const std::string first = slices.substr(0, slices.find(','));
  if (std::ranges::all_of(models, catalogue::is_slice)) {
    return never(asked,
                 tr_format("there are only MIG devices here ({}), which a job gets that names one, "
                           "such as --gpus '1({})'",
                           slices,
                           first));
  }
  return never(asked,
               tr_format("there are only {} here; a MIG device is requested by its name, such as "
                         "--gpus '1({})'",
                         printable(join(models, ", ")),
                         first));
}

/// What slices could be made is too few or too small; empty where none of the kind could.
std::optional<Error> too_few_to_make(const Index& index,
                                     const Request& request,
                                     const Demand& wanted) {
  const auto could = [&index](const Demand& demand) {
    return most(index.ledger, [&](NodeIndex n) { return slices_to_make(index, demand, n); });
  };
  Demand any_size = wanted;
  any_size.gpu_memory = {};
  const int of_kind = could(any_size);
  if (of_kind == 0) return std::nullopt;
  const std::string asked = asked_text(request);
  if (of_kind < request.gpus) {
    return never(asked,
                 tr_format("the GPUs of a node can be cut into {} of these at most", of_kind))
        .error();
  }
  if (could(wanted) < request.gpus) {
    return never(tr_format("{} with {} of memory each", asked, memory_text(request.gpu_memory)),
                 tr("a slice of that profile has less"))
        .error();
  }
  return never(tr_format("{} on each of {} nodes", asked, request.nodes),
               tr("slices are made for jobs on one node alone"))
      .error();
}

/// The machine has GPUs, but none or not enough that the demand would take.
std::unexpected<Error> too_few(const Index& index, const Request& request, const Demand& wanted) {
  const Ledger& ledger = index.ledger;
  const std::string kind = kind_text(request);
  const std::string asked = asked_text(request);
  const auto all = most(ledger, [&](NodeIndex n) {
    return std::ranges::count(ledger.node(n).devices, false, &placement::DeviceFacts::absent);
  });
  if (all == 0 && models_to_cut(index).empty()) {
    if (index.nodes.size() != 1) return never(asked, tr("no node has any"));
    const std::string& note = index.nodes.begin()->second.machine.note;
    return never(asked,
                 tr_format("this machine has none{}",
                           note.empty() ? "" : fmt::format(" ({})", printable(note))));
  }
  if (auto why = too_few_to_make(index, request, wanted)) return std::unexpected(*std::move(why));
  Demand any_size = wanted;
  any_size.gpu_memory = {};
  const int of_kind = most(ledger, [&](NodeIndex n) { return suitable(ledger, any_size, n); });
  if (request.gpus > 0 && of_kind >= request.gpus) {
    const Memory largest = largest_memory(ledger, wanted);
    const std::string of_size =
        tr_format("{} with {} of memory each", asked, memory_text(request.gpu_memory, largest));
    const int enough = most(ledger, [&](NodeIndex n) { return suitable(ledger, wanted, n); });
    if (enough > 0) return never(of_size, fmt::format("{} {}", owner(ledger), enough));
    return never(of_size,
                 largest == Memory{} ? tr("how much memory the GPUs here have is not known")
                                     : tr_format("the largest here has {}",
                                                 memory_text(largest, request.gpu_memory)));
  }
  const std::vector<std::string> models = models_of(index);
  const bool names_slices = std::ranges::any_of(request.models, catalogue::is_slice);
  if (of_kind == 0 && !names_slices && !slices_text(models).empty()) {
    return only_slices(asked, models);
  }
  if (of_kind > 0 || kind.empty())
    return never(asked, fmt::format("{} {}", owner(ledger), of_kind));
  return never(asked, tr_format("there are only {} here", printable(join(models, ", "))));
}

Result<void> check_sense(const Policy& policy, const Request& request) {
  if (request.gpus < 0 || request.cpus < 0 || request.memory.bytes < 0 ||
      request.gpu_memory.bytes < 0) {
    return fail(Code::Usage, tr("GPUs, CPUs and memory cannot be negative"));
  }
  if (request.share.parts < 1 || request.share > Share::whole() || request.nodes < 1) {
    return fail(Code::Usage, tr("a job needs some part of a GPU and at least one node"));
  }
  if (request.mode != GpuMode::Whole && request.gpus > 0 &&
      std::ranges::any_of(request.models, catalogue::is_slice)) {
    return fail(Code::Usage,
                tr_format("a MIG device is given to one job as a whole, and not shared: request "
                          "'{}({})' without a share or time slices",
                          request.gpus,
                          join(request.models, "|")));
  }
  const auto slices = std::ranges::count_if(request.models, catalogue::is_slice);
  if (request.gpus > 1 && slices > 0 && slices < std::ssize(request.models)) {
    return fail(Code::Usage,
                tr_format("a program that has a MIG device sees no whole GPU: request one of '{}', "
                          "or several of one kind",
                          join(request.models, "|")));
  }
  if (request.mode == GpuMode::TimeSlice && request.gpus > 0 && request.gpu_memory == Memory{}) {
    return fail(Code::Usage,
                tr("time-sliced jobs hold their GPU memory all the time: give its amount, such as "
                   "--gpu-memory 8G"));
  }
  if (request.see_all && !policy.allow_see_all) {
    return fail(Code::Infeasible,
                tr("-1 sees every GPU and reserves none, which the administrator has not allowed "
                   "(allow_see_all in gflow.toml)"));
  }
  return {};
}

}  // namespace

std::string kind_text(const Request& request) {
  if (!request.models.empty()) return join(request.models, "|");
  return request.vendor;
}

Result<void> check_gpu_quota(const GpuQuota& quota, const JobSpec& spec) {
  const auto limit = quota.of(spec.user.name);
  const std::int64_t parts = gpu_parts_of(spec.request);
  if (!limit || parts <= limit->parts) return {};
  const std::string gpus = share_text(*limit);
  return fail(
      Code::Infeasible,
      tr_format("the job requests {} GPUs and {} may hold {} at once: it could never start; "
                "request {} or fewer, or ask an administrator for more (limits.max_gpus_per_user, "
                "limits.max_gpus_of)",
                share_text(Share{static_cast<std::int32_t>(parts)}),
                printable(spec.user.name),
                gpus,
                gpus));
}

Result<void> check_preemption(const JobSpec& spec) {
  if (spec.preempt_signal != 0 && spec.preemption != Preemption::Requeue) {
    return fail(Code::Usage,
                tr("only requeued jobs get a preemption signal: --preempt-signal requires "
                   "--preemptible=requeue"));
  }
  if (spec.preemption == Preemption::Suspend && spec.request.mode == GpuMode::Whole &&
      spec.request.gpus > 0 && spec.request.gpu_memory == Memory{}) {
    return fail(Code::Usage,
                tr("a job that may be suspended keeps its GPU memory: give its amount, such as "
                   "--gpu-memory 20G"));
  }
  return {};
}

Result<void> check_dependencies(const Index& index,
                                const Dependencies& dependencies,
                                std::size_t position,
                                const JobSight& sight) {
  if (dependencies.jobs.size() > index.policy.max_dependencies_per_job) {
    return fail(Code::Exhausted,
                tr_format("it depends on {} jobs; the maximum is {}",
                          dependencies.jobs.size(),
                          index.policy.max_dependencies_per_job));
  }
  for (const JobId id : dependencies.jobs) {
    const bool sibling = (id.value & event::kSibling) != 0;
    if (sibling && (id.value ^ event::kSibling) < position) continue;
    const Job* job = sibling ? nullptr : index.find(id);
    if (job != nullptr && sight.knows(job->spec.user)) continue;
    // Who is not shown others' jobs is not told that one was there either.
    if (sibling || id >= index.next_id || sight.others == OthersJobs::None) {
      return fail(Code::NotFound,
                  sibling ? tr("a job can only depend on jobs before it")
                          : tr_format("it depends on job {}, which does not exist", id.value));
    }
    return fail(
        Code::NotFound,
        tr_format("it depends on job {}, which ended too long ago to be remembered", id.value));
  }
  return {};
}

Result<void> check_request(Index& index, const Request& request) {
  GF_CHECK(check_sense(index.policy, request));
  const Ledger& ledger = index.ledger;
  const PassingDemand passing(index, placement::demand_of(request));
  const placement::DemandIndex demand = passing.index();
  const Demand& wanted = ledger.demand(demand);
  int fitting = 0;
  for (NodeIndex node = 0; node < ledger.size() && fitting < request.nodes; ++node) {
    if (ledger.could_fit(demand, node) || could_be_cut(index, demand, node)) ++fitting;
  }
  if (fitting >= request.nodes) return {};
  if (fitting > 0) {
    return never(tr_format("{} nodes", request.nodes),
                 tr_format("only {} could take its part", fitting));
  }
  const int needed = wanted.only_sees() ? 1 : request.gpus;
  const auto has = [&](NodeIndex n) {
    const int made = suitable(ledger, wanted, n);
    return may_be_cut_for(wanted) ? std::max(made, slices_to_make(index, wanted, n)) : made;
  };
  if (most(ledger, has) < needed) return too_few(index, request, wanted);
  const auto cpus = most(ledger, [&](NodeIndex n) { return ledger.node(n).milli_cpus; });
  if (cpus < wanted.milli_cpus) {
    return never(tr_format("{} CPUs", request.cpus),
                 fmt::format("{} {}", owner(ledger), cpus / 1000));
  }
  const Memory memory = most(ledger, [&](NodeIndex n) { return ledger.node(n).memory; });
  if (memory < wanted.memory) {
    return never(tr_format("{} of memory", memory_text(request.memory, memory)),
                 fmt::format("{} {}", owner(ledger), memory_text(memory)));
  }
  return never(tr("what it does"), tr("no single node has all of it"));
}

}  // namespace gflow::engine

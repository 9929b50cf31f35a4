// SPDX-License-Identifier: Apache-2.0
#include "kube/command.h"

#include "base/text.h"
#include "base/translate.h"
#include "command/context.h"
#include "kube/service.h"

namespace gflow::kube {
namespace {

using cli::Context;
using cli::Invocation;

Result<std::int64_t> number_of(const Invocation& typed,
                               std::string_view option,
                               std::int64_t otherwise,
                               std::int64_t least,
                               std::int64_t most) {
  if (!typed.has(option)) return otherwise;
  const auto read = parse_number(typed.get(option));
  if (read && *read >= static_cast<std::uint64_t>(least) &&
      *read <= static_cast<std::uint64_t>(most)) {
    return static_cast<std::int64_t>(*read);
  }
  return fail(Code::Usage,
              tr_format("--{} {}: write a whole number from {} to {}",
                        option,
                        printable(typed.get(option)),
                        least,
                        most));
}

Result<int> run(const Invocation& typed, Context& context) {
  Options options;
  options.access = {typed.get("kubeconfig"), typed.get("context")};
  if (typed.has("scheduler-name")) options.name = typed.get("scheduler-name");
  if (typed.has("namespace")) options.name_space = typed.get("namespace");
  options.lease = std::chrono::seconds(GF_TRY(number_of(typed, "lease-duration", 15, 3, 3600)));
  options.writers = static_cast<int>(GF_TRY(number_of(typed, "writers", 16, 1, 256)));
  options.preempt = typed.has("preempt");
  if (typed.has("listen")) {
    const auto address = parse_listen_address(typed.get("listen"));
    if (!address) return with_context(address.error(), "--listen");
    options.listen = *address;
  }
  set_messages(nullptr);  // its log is for everybody
  GF_CHECK(serve(options, context.err));
  return 0;
}

}  // namespace

cli::Command gflow_kube_command() {
  return {
      .name = "gflow-kube",
      .summary = tr("schedules the pods of a Kubernetes cluster that ask for it"),
      .usage = {"[options]"},
      .description = tr(
          "Puts pods whose spec.schedulerName is gflow on nodes, by the engine that gflowd has: "
          "GPUs by the annotation gflow/gpu (\"2(V100)\", \"8G,0.5\") or as nvidia.com/gpu, CPUs "
          "and memory as Kubernetes counts them. The devices chosen stand in the annotation "
          "gflow/allocation; why a pod waits in its condition PodScheduled and in an Event.\n\n"
          "Of several that run, one decides: who has the Lease. It keeps nothing, and one that "
          "starts finds everything in the cluster."),
      .options =
          {{.name = "kubeconfig",
            .value = "FILE",
            .help = tr("which cluster, and who asks; otherwise KUBECONFIG, ~/.kube/config, or the "
                       "service account of the pod it runs in"),
            .complete = cli::Complete::File},
           {.name = "context",
            .value = "NAME",
            .help = tr("of that file; otherwise its current one")},
           {.name = "scheduler-name",
            .value = "NAME",
            .help = tr("schedulerName of the pods it is for (gflow)")},
           {.name = "namespace", .value = "NAME", .help = tr("where its Lease is (gflow-system)")},
           {.name = "lease-duration",
            .value = "SECONDS",
            .help = tr("after which another takes over from one that is gone (15)")},
           {.name = "writers",
            .value = "COUNT",
            .help = tr("requests to the API server at once (16)")},
           {.name = "preempt",
            .help = tr("evicts pods of a lower priority for one that finds no room, within "
                       "their disruption budgets")},
           {.name = "listen",
            .value = "ADDRESS:PORT",
            .help = tr("shows /healthz, /readyz and /metrics there, by HTTP, to whoever "
                       "can reach it; otherwise it listens nowhere")}},
      .common = cli::Common::Basic,
      .examples = {{"gflow-kube", tr("in a pod, as its service account")},
                   {"gflow-kube --kubeconfig admin.conf --context lab",
                    tr("from outside, as a user of a kubeconfig")},
                   {"gflow-kube --listen 0.0.0.0:10259",
                    tr("in a pod that is probed and scraped")}},
      .run = run,
  };
}

}  // namespace gflow::kube

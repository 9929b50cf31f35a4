// SPDX-License-Identifier: Apache-2.0
#include "kube/command.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/text.h"
#include "base/translate.h"
#include "command/context.h"
#include "core/image_variable.h"
#include "kube/extender_service.h"
#include "kube/job_manifest.h"
#include "kube/serve.h"
#include "kube/service.h"
#include "kube/webhook.h"
#include "os/user.h"

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

/// --listen, if it is there.
Result<std::optional<ListenAddress>> listen_of(const Invocation& typed) {
  if (!typed.has("listen")) return std::nullopt;
  auto address = parse_listen_address(typed.get("listen"));
  if (!address) return with_context(address.error(), "--listen");
  return *std::move(address);
}

Result<int> run(const Invocation& typed, Context& context) {
  Options options;
  options.access = {typed.get("kubeconfig"), typed.get("context")};
  if (typed.has("scheduler-name")) options.name = typed.get("scheduler-name");
  if (typed.has("namespace")) options.name_space = typed.get("namespace");
  options.lease = std::chrono::seconds(GF_TRY(number_of(typed, "lease-duration", 15, 3, 3600)));
  options.writers = static_cast<int>(GF_TRY(number_of(typed, "writers", 16, 1, 256)));
  options.preempt = typed.has("preempt");
  options.defrag = typed.has("defrag");
  options.listen = GF_TRY(listen_of(typed));
  set_messages(nullptr);  // its log is for everybody
  GF_CHECK(serve(options, context.err));
  return 0;
}

/// And whose pods are meant.
std::vector<cli::Option> cluster_options() {
  std::vector<cli::Option> options = access_options();
  options.push_back({.name = "scheduler-name",
                     .value = "NAME",
                     .help = tr("schedulerName of the pods it is for (gflow)")});
  return options;
}

/// What was typed, else what the environment says, as it does for commands that start this.
std::string typed_or(const Invocation& typed,
                     std::string_view option,
                     const char* variable,
                     std::string otherwise) {
  if (typed.has(option)) return typed.get(option);
  return os::environment(variable).value_or(std::move(otherwise));
}

Result<int> run_serve(const Invocation& typed, Context& context) {
  ServeOptions options;
  options.access = {typed.get("kubeconfig"), typed.get("context")};
  options.name = typed_or(typed, "scheduler-name", "GFLOW_KUBE_SCHEDULER", options.name);
  options.name_space = typed_or(typed, "namespace", "GFLOW_KUBE_NAMESPACE", options.name_space);
  options.image = typed_or(typed, "image", kImageVariable, "");
  options.has_channel = typed.has("channel");
  if (!options.has_channel) {
    const std::string where = typed.has("listen") ? typed.get("listen") : "127.0.0.1:8000";
    auto addresses = parse_loopback(where);
    if (!addresses) return with_context(addresses.error(), "--listen");
    options.loopback = *std::move(addresses);
  }
  auto served = serve_api(options, context.out);
  // Who gave it a channel was told there.
  if (!served && options.has_channel) return exit_code(served.error().code);
  GF_CHECK(served);
  return 0;
}

Result<int> run_webhook(const Invocation& typed, Context& context) {
  WebhookOptions options;
  options.access = {typed.get("kubeconfig"), typed.get("context")};
  if (typed.has("scheduler-name")) options.rules.scheduler = typed.get("scheduler-name");
  if (typed.has("namespace")) options.name_space = typed.get("namespace");
  options.rules.allocations = typed.has("allocations");
  options.host = typed.get("host");
  if (auto address = GF_TRY(listen_of(typed))) options.listen = *std::move(address);
  set_messages(nullptr);  // its log is for everybody
  GF_CHECK(serve_webhook(options, context.err));
  return 0;
}

Result<int> run_extender(const Invocation& typed, Context& context) {
  ExtenderOptions options;
  options.access = {typed.get("kubeconfig"), typed.get("context")};
  auto addresses = parse_loopback(typed.has("listen") ? typed.get("listen") : "127.0.0.1:10260");
  if (!addresses) return with_context(addresses.error(), "--listen");
  options.listen = *std::move(addresses);
  set_messages(nullptr);  // its log is for everybody
  GF_CHECK(serve_extender(options, context.err));
  return 0;
}

cli::Command extender_command() {
  cli::Command command{
      .name = "extender",
      .summary = tr("answers a kube-scheduler about GPUs, for clusters that keep it"),
      .usage = {"[--listen ADDRESS:PORT]"},
      .description = tr(
          "An HTTP extender of kube-scheduler, for those who want no second scheduler: which nodes "
          "have what a pod asks for by the annotation gflow/gpu (\"2(V100)\", \"8G,0.5\") or as "
          "nvidia.com/gpu, how good they are for it, and which devices it has, which it writes "
          "with "
          "the binding into the annotation gflow/allocation. The queue, priorities and all else of "
          "a node stay kube-scheduler's; gangs, limits by namespace and 'gctl defrag' are those of "
          "gflow-kube as a scheduler.\n\nIt runs beside kube-scheduler, on the same machine or in "
          "the same pod, as the same user or with kube-scheduler as root, and with its kubeconfig: "
          "the rights are those that kube-scheduler has. One for each kube-scheduler; it keeps "
          "nothing, and one that starts finds everything in the cluster."),
      .options = access_options(),
      .common = cli::Common::Basic,
      .examples = {{"gflow-kube extender --kubeconfig /etc/kubernetes/scheduler.conf",
                    tr("beside the kube-scheduler of this machine")}},
      .run = run_extender,
  };
  command.options.push_back({.name = "listen",
                             .value = "ADDRESS:PORT",
                             .help = tr("where on this machine it answers (127.0.0.1:10260)")});
  return command;
}

cli::Command webhook_command() {
  cli::Command command{
      .name = "webhook",
      .summary = tr("makes new pods that ask for GPUs by the annotation pods of gflow-kube"),
      .usage = {"[--allocations] [--listen ADDRESS:PORT]"},
      .description = tr(
          "A mutating admission webhook, for clusters before Kubernetes 1.36, where "
          "packaging/kubernetes/admission-policy.yaml does the same without a program. The API "
          "server asks it about new pods with the annotation gflow/gpu: those for which nobody "
          "chose a scheduler or a node get spec.schedulerName, and who created one with a request "
          "that makes no sense is warned.\n\nThe certificate it shows it makes itself, each time "
          "it starts, and writes it into the caBundle of the MutatingWebhookConfiguration, which "
          "packaging/kubernetes/webhook.yaml makes with the rights for that. Several may run."),
      .options = cluster_options(),
      .common = cli::Common::Basic,
      .examples = {{"gflow-kube webhook", tr("in a pod, as its service account")},
                   {"gflow-kube webhook --allocations",
                    tr("where all nodes with GPUs have gflow-device-plugin")}},
      .run = run_webhook,
  };
  command.options.push_back(
      {.name = "namespace", .value = "NAME", .help = tr("where its Service is (gflow-system)")});
  command.options.push_back(
      {.name = "allocations",
       .help = tr("has pods that ask by the annotation alone ask for gflow/allocation, too, as "
                  "allocation-policy.yaml does")});
  command.options.push_back({.name = "host",
                             .value = "NAME",
                             .help = tr("as the API server calls it, where that is not by its "
                                        "Service (gflow-kube-webhook.NAMESPACE.svc)")});
  command.options.push_back(
      {.name = "listen", .value = "ADDRESS:PORT", .help = tr("where it answers (0.0.0.0:8443)")});
  return command;
}

cli::Command serve_command() {
  cli::Command command{
      .name = "serve",
      .summary = tr("answers the API of gflowd about the cluster"),
      .usage = {"[--listen ADDRESS:PORT]"},
      .description = tr(
          "Reads nodes, pods and limits of the cluster with the rights of the user who runs it, "
          "follows them, and answers what gflowd answers about its machine: the queue, why a job "
          "waits, nodes, devices, a snapshot. Jobs that are submitted it makes as Jobs of the "
          "cluster, and deletes those that are cancelled; moves that are asked for it hands to the "
          "scheduler ('gflow-kube --defrag'). It changes nothing else, and serves only "
          "this user, on this machine. 'gqueue --server kube', 'gbatch --server kube' and others "
          "start one for themselves.\n\nThe rights it needs are those of "
          "packaging/kubernetes/rbac-viewer.yaml, to submit rbac-submitter.yaml, and to have pods "
          "moved the Role gflow-mover of rbac-defrag.yaml."),
      .options = cluster_options(),
      .common = cli::Common::Basic,
      .examples = {{"gflow-kube serve", tr("the REST API at http://127.0.0.1:8000")},
                   {"gflow-kube serve --context lab --listen localhost:8001",
                    tr("of another cluster, elsewhere")}},
      .run = run_serve,
  };
  command.options.back().help =
      tr("schedulerName of the pods that are shown (GFLOW_KUBE_SCHEDULER, else gflow)");
  command.options.push_back({.name = "namespace",
                             .value = "NAME",
                             .help = tr("where the limits of its namespaces and its moves are "
                                        "(GFLOW_KUBE_NAMESPACE, else gflow-system)")});
  command.options.push_back({.name = "image",
                             .value = "IMAGE",
                             .help = tr("of the containers of jobs that name none "
                                        "(GFLOW_KUBE_IMAGE)")});
  command.options.push_back({.name = "listen",
                             .value = "ADDRESS:PORT",
                             .help = tr("where on this machine it answers (127.0.0.1:8000)")});
  command.options.push_back({.name = "channel", .excludes = {"listen"}, .hidden = true});
  return command;
}

}  // namespace

std::vector<cli::Option> access_options() {
  return {
      {.name = "kubeconfig",
       .value = "FILE",
       .help = tr("which cluster, and who asks; otherwise KUBECONFIG, ~/.kube/config, or the "
                  "service account of the pod it runs in"),
       .complete = cli::Complete::File},
      {.name = "context", .value = "NAME", .help = tr("of that file; otherwise its current one")}};
}

cli::Command gflow_kube_command() {
  cli::Command command{
      .name = "gflow-kube",
      .summary = tr("schedules the pods of a Kubernetes cluster that ask for it"),
      .usage = {"[options]", "serve [options]", "webhook [options]", "extender [options]"},
      .description = tr(
          "Puts pods whose spec.schedulerName is gflow on nodes, by the engine that gflowd has: "
          "GPUs by the annotation gflow/gpu (\"2(V100)\", \"8G,0.5\") or as nvidia.com/gpu, CPUs "
          "and memory as Kubernetes counts them. The devices chosen stand in the annotation "
          "gflow/allocation; why a pod waits in its condition PodScheduled and in an Event.\n\n"
          "Of several that run, one decides: who has the Lease. It keeps nothing, and one that "
          "starts finds everything in the cluster."),
      .options = {{.name = "namespace",
                   .value = "NAME",
                   .help = tr("where its Lease is (gflow-system)")},
                  {.name = "lease-duration",
                   .value = "SECONDS",
                   .help = tr("after which another takes over from one that is gone (15)")},
                  {.name = "writers",
                   .value = "COUNT",
                   .help = tr("requests to the API server at once (16)")},
                  {.name = "preempt",
                   .help = tr("evicts pods of a lower priority for one that finds no room, within "
                              "their disruption budgets")},
                  {.name = "defrag",
                   .help = tr("moves pods for one that waits where somebody asks for it with "
                              "'gctl defrag --apply', within their disruption budgets")},
                  {.name = "listen",
                   .value = "ADDRESS:PORT",
                   .help = tr("shows /healthz, /readyz and /metrics there, by HTTP, to whoever "
                              "can reach it; otherwise it listens nowhere")}},
      .common = cli::Common::Basic,
      .examples = {{"gflow-kube", tr("in a pod, as its service account")},
                   {"gflow-kube --kubeconfig admin.conf --context lab",
                    tr("from outside, as a user of a kubeconfig")},
                   {"gflow-kube --listen 0.0.0.0:10259", tr("in a pod that is probed and scraped")},
                   {"gflow-kube serve", tr("the REST API about a cluster, for this user")}},
      .subcommands = {serve_command(), webhook_command(), extender_command()},
      .run = run,
  };
  std::vector<cli::Option> options = cluster_options();
  std::ranges::move(command.options, std::back_inserter(options));
  command.options = std::move(options);
  return command;
}

}  // namespace gflow::kube

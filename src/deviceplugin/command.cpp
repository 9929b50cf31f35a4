// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text.h"
#include "base/translate.h"
#include "command/context.h"
#include "deviceplugin/service.h"
#include "kube/command.h"
#include "os/user.h"

namespace gflow::deviceplugin {
namespace {

using cli::Context;
using cli::Invocation;

Result<std::string> node_name(const Invocation& typed) {
  if (typed.has("node")) return typed.get("node");
  if (auto told = os::environment("NODE_NAME")) return *std::move(told);
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) {
    return fail(Code::Usage, tr("this machine has no name: --node says how the cluster calls it"));
  }
  return to_lower(host.data());
}

/// The same directory for the container runtime, so no path that is relative to this process.
Result<void> read_directory(const Invocation& typed, std::string_view option, std::string& into) {
  if (!typed.has(option)) return {};
  into = typed.get(option);
  if (into.starts_with('/')) return {};
  return fail(Code::Usage,
              tr_format("--{} {}: write a path that begins with /", option, printable(into)));
}

Result<int> run(const Invocation& typed, Context& context) {
  Options options;
  options.access = {typed.get("kubeconfig"), typed.get("context")};
  options.node = GF_TRY(node_name(typed));
  if (typed.has("devices")) options.devices = typed.get("devices");
  GF_CHECK(read_directory(typed, "kubelet", options.places.kubelet));
  GF_CHECK(read_directory(typed, "state", options.places.state));
  GF_CHECK(read_directory(typed, "library", options.places.library));
  GF_CHECK(read_directory(typed, "cdi", options.places.cdi));
  set_messages(nullptr);  // its log is for everybody
  GF_CHECK(serve(options, context.err));
  return 0;
}

}  // namespace

cli::Command device_plugin_command() {
  cli::Command command{
      .name = "gflow-device-plugin",
      .summary = tr("gives the containers of a Kubernetes node the GPUs that gflow-kube chose"),
      .usage = {"[options]"},
      .description = tr(
          "Runs on each node with GPUs, in the place of the device plugin of the GPUs' vendor. It "
          "offers them to the kubelet as the vendor does (nvidia.com/gpu), and gflow/allocation, "
          "of "
          "which a container asks for one to be given all that its pod's annotation "
          "gflow/allocation names: a part of a GPU, too. Before a container starts it finds out "
          "whose it is, and gives it exactly the devices of that annotation, as a CDI device; one "
          "with a part of a GPU is held to it by libgflow-share.so. Which devices there are, and "
          "what is wrong with one, stands in the node's annotation gflow/devices.\n\nThe container "
          "runtime has to know CDI: containerd 2, containerd 1.7 with enable_cdi, CRI-O."),
      .options = {{.name = "node",
                   .value = "NAME",
                   .help =
                       tr("how the cluster calls this machine (NODE_NAME, else its host name)")},
                  {.name = "devices",
                   .value = "SOURCE",
                   .help =
                       tr("where GPUs come from, as for gflowd (auto): nvml, none, sim:8xH100")},
                  {.name = "kubelet",
                   .value = "DIRECTORY",
                   .help = tr("of the kubelet (/var/lib/kubelet)"),
                   .complete = cli::Complete::File},
                  {.name = "cdi",
                   .value = "DIRECTORY",
                   .help = tr("where what a container is given is written (/var/run/cdi)"),
                   .complete = cli::Complete::File},
                  {.name = "state",
                   .value = "DIRECTORY",
                   .help = tr("where it keeps what containers have, until the machine starts anew "
                              "(/run/gflow-device-plugin)"),
                   .complete = cli::Complete::File},
                  {.name = "library",
                   .value = "DIRECTORY",
                   .help = tr("where it puts libgflow-share.so for containers, not mounted noexec "
                              "(/var/lib/gflow-device-plugin)"),
                   .complete = cli::Complete::File}},
      .common = cli::Common::Basic,
      .examples = {{"gflow-device-plugin", tr("in a pod of a DaemonSet, with NODE_NAME")},
                   {"gflow-device-plugin --devices sim:8xH100 --node n1 --kubeconfig admin.conf",
                    tr("a node with simulated GPUs")}},
      .run = run,
  };
  std::ranges::move(kube::access_options(), std::back_inserter(command.options));
  return command;
}

}  // namespace gflow::deviceplugin

// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/command.h"

#include "base/translate.h"
#include "command/context.h"
#include "deviceplugin/node_options.h"
#include "deviceplugin/service.h"

namespace gflow::deviceplugin {
namespace {

using cli::Context;
using cli::Invocation;

Result<int> run(const Invocation& typed, Context& context) {
  const NodeOptions options = GF_TRY(read_node_options(typed, Places{}));
  set_messages(nullptr);  // its log is for everybody
  GF_CHECK(serve(options, context.err));
  return 0;
}

}  // namespace

cli::Command device_plugin_command() {
  return {
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
      .options = node_options(Places{}),
      .common = cli::Common::Basic,
      .examples = {{"gflow-device-plugin", tr("in a pod of a DaemonSet, with NODE_NAME")},
                   {"gflow-device-plugin --devices sim:8xH100 --node n1 --kubeconfig admin.conf",
                    tr("a node with simulated GPUs")}},
      .run = run,
  };
}

}  // namespace gflow::deviceplugin

// SPDX-License-Identifier: Apache-2.0
#include "dra/command.h"

#include "base/translate.h"
#include "command/context.h"
#include "deviceplugin/node_options.h"
#include "dra/service.h"

namespace gflow::dra {
namespace {

using cli::Context;
using cli::Invocation;
using deviceplugin::Places;

Places usual_places() {
  return {.state = "/run/gflow-dra-driver", .library = "/var/lib/gflow-dra-driver"};
}

Result<int> run(const Invocation& typed, Context& context) {
  const auto options = GF_TRY(deviceplugin::read_node_options(typed, usual_places()));
  set_messages(nullptr);  // its log is for everybody
  GF_CHECK(serve(options, context.err));
  return 0;
}

}  // namespace

cli::Command dra_driver_command() {
  return {
      .name = "gflow-dra-driver",
      .summary = tr("gives the containers of a Kubernetes node the GPUs of their resource claims"),
      .usage = {"[options]"},
      .description = tr(
          "Runs on each node with GPUs, from Kubernetes 1.34 on, in the place of a device plugin "
          "and of the vendor's own driver of that kind. It tells the cluster of the GPUs by "
          "ResourceSlices of the driver gpu.gflow, with model, memory, place and what is wrong "
          "with "
          "one; the scheduler of the cluster allocates them to ResourceClaims: whole ones, or, "
          "from "
          "1.36 on, parts of those of NVIDIA (memory: 8Gi, share: 500m). Before a container starts "
          "that names such a claim, it is given exactly those, as a CDI device; one with a part is "
          "held to it by libgflow-share.so.\n\nThe container runtime has to know CDI: containerd "
          "2, "
          "containerd 1.7 with enable_cdi, CRI-O."),
      .options = deviceplugin::node_options(usual_places()),
      .common = cli::Common::Basic,
      .examples = {{"gflow-dra-driver", tr("in a pod of a DaemonSet, with NODE_NAME")},
                   {"gflow-dra-driver --devices sim:8xH100 --node n1 --kubeconfig admin.conf",
                    tr("a node with simulated GPUs")}},
      .run = run,
  };
}

}  // namespace gflow::dra

// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/node_options.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "kube/command.h"
#include "os/user.h"

namespace gflow::deviceplugin {
namespace {

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

}  // namespace

std::vector<cli::Option> node_options(const Places& usual) {
  std::vector<cli::Option> options = {
      {.name = "node",
       .value = "NAME",
       .help = tr("how the cluster calls this machine (NODE_NAME, else its host name)")},
      {.name = "devices",
       .value = "SOURCE",
       .help = tr("where GPUs come from, as for gflowd (auto): nvml, none, sim:8xH100")},
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
       .help = tr_format("where it keeps what containers have, until the machine starts anew ({})",
                         usual.state),
       .complete = cli::Complete::File},
      {.name = "library",
       .value = "DIRECTORY",
       .help = tr_format("where it puts libgflow-share.so for containers, not mounted noexec ({})",
                         usual.library),
       .complete = cli::Complete::File}};
  std::ranges::move(kube::access_options(), std::back_inserter(options));
  return options;
}

Result<NodeOptions> read_node_options(const Invocation& typed, Places usual) {
  NodeOptions options{.access = {typed.get("kubeconfig"), typed.get("context")},
                      .node = GF_TRY(node_name(typed)),
                      .places = std::move(usual)};
  if (typed.has("devices")) options.devices = typed.get("devices");
  GF_CHECK(read_directory(typed, "kubelet", options.places.kubelet));
  GF_CHECK(read_directory(typed, "state", options.places.state));
  GF_CHECK(read_directory(typed, "library", options.places.library));
  GF_CHECK(read_directory(typed, "cdi", options.places.cdi));
  return options;
}

}  // namespace gflow::deviceplugin

// SPDX-License-Identifier: Apache-2.0
// gflow._native: what the package has of the daemon, in the process. Thin: what it means is said in
// Python, what it does is the daemon's own code.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <variant>

#include "base/text.h"
#include "base/utf8.h"
#include "cluster.h"
#include "core/catalogue.h"
#include "core/gpu_request.h"

namespace nb = nanobind;

namespace gflow::native {
namespace {

/// What is wrong with a request; columns and stretches in characters, as Python counts.
struct Mistake {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string what;
  std::string instead;
};

/// gpu_num, gpu_type, resource_name, memory_gb, compute_ratio.
using Read = std::tuple<std::variant<int, double>,
                        std::optional<std::string>,
                        std::string,
                        std::optional<double>,
                        std::optional<double>>;

double gb_of(Memory memory) { return static_cast<double>(memory.bytes) / 0x1p30; }

/// Whole MiB, rounded up, as requests have it.
Memory memory_of_gb(double gb) {
  constexpr double kMibPerGb = 1024;
  constexpr double kMost = 1 << 20;
  if (!(gb > 0)) return {};
  return Memory::mib(static_cast<std::int64_t>(std::ceil(std::min(gb, kMost) * kMibPerGb)));
}

Share share_of(double part) {
  constexpr double kWhole = Share::kWholeParts;
  return Share{static_cast<std::int32_t>(std::clamp(std::round(part * kWhole), 1.0, kWhole))};
}

std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(utf8::next(text).length);
  return count;
}

std::variant<Read, Mistake> read_request(std::string_view text, const GpuResources& resources) {
  auto request = read_gpu_request(text, resources);
  if (!request) {
    GpuRequestMistake& mistake = request.error();
    return Mistake{.begin = characters(text.substr(0, mistake.begin)),
                   .end = characters(text.substr(0, mistake.end)),
                   .what = std::move(mistake.what),
                   .instead = std::move(mistake.instead)};
  }
  Read read;
  auto& [gpu_num, gpu_type, name, memory_gb, compute_ratio] = read;
  gpu_num = request->see_all ? -1 : request->gpus;
  if (request->share < Share::whole()) {
    const double each = request->share.parts / static_cast<double>(Share::kWholeParts);
    gpu_num = request->gpus * each;
    compute_ratio = each;
  }
  if (!request->models.empty()) gpu_type = join(request->models, "|");
  name = resource_name(*request, resources);
  if (request->memory > Memory{}) memory_gb = gb_of(request->memory);
  return read;
}

std::optional<double> memory_of_model(std::string_view text) {
  const auto memory = catalogue::memory_of(model_of(text));
  return memory ? std::optional(gb_of(*memory)) : std::nullopt;
}

std::map<std::string, double> memory_of_models() {
  std::map<std::string, double> all;
  for (const catalogue::Listed& model : catalogue::list()) {
    if (const auto memory = catalogue::memory_of(model.name))
      all[std::string(model.name)] = gb_of(*memory);
  }
  return all;
}

bool answers(std::string_view wanted, std::string_view device) {
  const std::string model = catalogue::device_model("", device, std::nullopt);
  return std::ranges::any_of(split(wanted, '|'), [&](std::string_view one) {
    return catalogue::answers(model_of(one), model);
  });
}

ClusterNode node_of(
    std::string name,
    const std::vector<std::tuple<std::string, std::string, int, std::optional<double>>>& gpus,
    std::pair<double, double> cpus,
    std::pair<double, double> memory_gb) {
  ClusterNode node{.name = std::move(name),
                   .gpus = {},
                   .cpus = {.all = cpus.first, .used = cpus.second},
                   .memory_gb = {.all = memory_gb.first, .used = memory_gb.second}};
  for (const auto& [resource, model, count, memory] : gpus) {
    constexpr int kMostGpus = 4096;  // of a node: more is a mistake of who describes it
    node.gpus.push_back({.resource = resource,
                         .model = model,
                         .count = std::clamp(count, 0, kMostGpus),
                         .memory = memory ? std::optional(memory_of_gb(*memory)) : std::nullopt});
  }
  return node;
}

}  // namespace
}  // namespace gflow::native

NB_MODULE(_native, m) {
  using namespace gflow;
  using namespace gflow::native;
  using namespace nb::literals;
  nb::set_leak_warnings(false);  // what a thread or a cache has at the end is nobody's mistake
  m.attr("__doc__") =
      "What the package has of the daemon, in the process. Use gflow.gpu_parser and its like.";

  nb::class_<GpuResources>(m, "Resources", "What a cluster calls the GPUs of a vendor.")
      .def(
          "__init__",
          [](GpuResources* self,
             std::map<std::string, std::string> names,
             std::string default_name) {
            new (self) GpuResources{std::move(names), std::move(default_name)};
          },
          "names"_a,
          "default_name"_a);
  nb::class_<Mistake>(
      m, "Mistake", "What is wrong with a request, and where: [begin, end) in characters.")
      .def_ro("begin", &Mistake::begin)
      .def_ro("end", &Mistake::end)
      .def_ro("what", &Mistake::what)
      .def_ro("instead", &Mistake::instead);
  m.def("read_request",
        &read_request,
        "text"_a,
        "resources"_a,
        "gpu_num, gpu_type, resource_name, memory_gb, compute_ratio of a request, or what is wrong "
        "with it.");
  m.def("memory_of_model", &memory_of_model, "model"_a, "In GB; None if it is not known.");
  m.def("memory_of_models", &memory_of_models, "Of every model that is known, in GB.");
  m.def("answers",
        &answers,
        "wanted"_a,
        "device"_a,
        "Whether a device of this model is one of those wanted ('A100|H100').");

  nb::class_<Cluster>(
      m, "Cluster", "Nodes, what of them is in use, and which are the best for what is needed.")
      .def(nb::init<>())
      .def(
          "add",
          [](Cluster& self,
             std::string name,
             const std::vector<std::tuple<std::string, std::string, int, std::optional<double>>>&
                 gpus,
             std::pair<double, double> cpus,
             std::pair<double, double> memory_gb) {
            return self.add(node_of(std::move(name), gpus, cpus, memory_gb));
          },
          "name"_a,
          "gpus"_a,
          "cpus"_a,
          "memory_gb"_a,
          "gpus: resource, model, count, GB of each; cpus and memory_gb: in all, in use. The index "
          "of the node.")
      .def("use", &Cluster::use, "node"_a, "resource"_a, "gpus"_a, "What pods hold there.")
      .def(
          "reserve",
          [](Cluster& self, int node, int gpus, double memory_gb) {
            return self.reserve(node, gpus, memory_of_gb(memory_gb));
          },
          "node"_a,
          "gpus"_a,
          "memory_gb"_a,
          "Sets so much memory aside on each of so many GPUs; False if they do not have it.")
      .def(
          "idle",
          [](const Cluster& self, int node, std::string_view model, double memory_gb) {
            return self.idle(node, model, memory_of_gb(memory_gb));
          },
          "node"_a,
          "model"_a,
          "memory_gb"_a,
          "GPUs nobody is on, of this model ('' is any), with so much memory left.")
      .def(
          "rank",
          [](Cluster& self,
             int gpus,
             double share,
             double memory_gb,
             std::string resource,
             std::vector<std::string> models,
             std::string_view policy) {
            const Need need{.gpus = gpus,
                            .share = share_of(share),
                            .memory = memory_of_gb(memory_gb),
                            .resource = std::move(resource),
                            .models = std::move(models)};
            std::vector<std::pair<int, double>> told;
            for (const Ranked& one : self.rank(need, policy))
              told.emplace_back(one.node, one.score);
            return told;
          },
          "gpus"_a,
          "share"_a,
          "memory_gb"_a,
          "resource"_a,
          "models"_a,
          "policy"_a,
          "The nodes that have so many GPUs, so much of each: index and score, the best first.");
}

// SPDX-License-Identifier: Apache-2.0
#include "api/gpu_resources.h"
#include "base/translate.h"
#include "server/about.h"
#include "server/about_kinds.h"
#include "server/queries.h"

namespace gflow::server::about {
namespace {

constexpr std::string_view kAllocationSegment = tr_later("number of the allocation");
constexpr std::string_view kAllocationExample = "12";
constexpr std::string_view kOrOfOne =
    tr_later("Or for the allocation there is, by its allocation_id.");

/// Holds what a need says; with wait it may stand in the queue first.
constexpr api::Operation allocates(api::Operation told) {
  told.tag = "gpu";
  told.body = "GpuNeed";
  told.takes_key = true;
  told.answers = {{{200, "GpuAllocation"},
                   {.status = 202, .document = "GpuAllocation", .location = kAllocationPattern}}};
  told.errors = {404, 409, 422};
  return told;
}

}  // namespace

constexpr api::Operation kShowGpuStatus = {
    .id = "show_gpu_status",
    .tag = "gpu",
    .summary = tr_later("What is free, and how busy the GPUs are"),
    .is_shared = true,
    .answers = {{{200, "GpuStatus"}}},
};

constexpr api::Operation kListGpuNodes = {
    .id = "list_gpu_nodes",
    .tag = "gpu",
    .summary = tr_later("The nodes that have such a GPU free"),
    .is_shared = true,
    .answers = {{{200, "GpuStatus"}}},
    .errors = {422},
};

constexpr api::Operation kShowGpuHealth = {
    .id = "show_gpu_health",
    .tag = "gpu",
    .summary = tr_later("Whether the GPUs can be used, and what is wrong"),
    .description = tr_later("503 with the same document where no GPU answers."),
    .is_shared = true,
    .answers = {{{200, "GpuHealth"}, {503, "GpuHealth"}}},
};

constexpr api::Operation kShowGpuMonitoring = {
    .id = "show_gpu_monitoring",
    .tag = "gpu",
    .summary = tr_later("Each GPU as it is measured"),
    .is_shared = true,
    .answers = {{{200, "GpuMonitoring"}}},
};

constexpr api::Operation kValidateGpuNeed = {
    .id = "validate_gpu_need",
    .tag = "gpu",
    .summary = tr_later("Whether a need can ever be met here, and now"),
    .body = "GpuNeed",
    .example = R"({"gpu_count": 1, "gpu_type": "A100", "memory_gb": 80.0})",
    .answers = {{{200, "GpuValidation"}}},
};

constexpr api::Operation kAllocateGpus = allocates({
    .id = "allocate_gpus",
    .summary = tr_later("Hold GPUs for a program"),
    .description = tr_later(
        "Where nothing is free, success is false and error_message says what is missing; with wait "
        "it stands in the queue, which is answered with 202."),
    .example = R"({"gpu_count": 1, "gpu_type": "V100", "memory_gb": 32.0})",
});

constexpr api::Operation kSetUpPytorch = allocates({
    .id = "set_up_pytorch",
    .summary = tr_later("The same, with what PyTorch is to be told"),
    .description = kOrOfOne,
    .example = R"({"gpu_count": 1, "gpu_type": "A100", "distributed_training": true})",
});

constexpr api::Operation kSetUpTensorflow = allocates({
    .id = "set_up_tensorflow",
    .summary = tr_later("The same, with what TensorFlow is to be told"),
    .description = kOrOfOne,
    .example = R"({"gpu_count": 1, "gpu_type": "A100", "gpu_memory_fraction": 0.9})",
});

constexpr api::Operation kCleanUpGpus = ends_later({
    .id = "clean_up_gpus",
    .tag = "gpu",
    .summary = tr_later("Give back what you hold on a node"),
    .segment = tr_later("name of the node"),
    .segment_example = "lab1",
    .answers = {{{200, "GpuCleanup"}}},
    .errors = {404, 409},
});

constexpr api::Operation kListGpuAllocations = {
    .id = "list_gpu_allocations",
    .tag = "gpu",
    .summary = tr_later("Your allocations that have not ended"),
    .is_shared = true,
    .answers = {{{200, "GpuAllocations"}}},
};

constexpr api::Operation kShowGpuAllocation = shows_one({
    .id = "show_gpu_allocation",
    .tag = "gpu",
    .summary = tr_later("Show an allocation"),
    .segment = kAllocationSegment,
    .segment_example = kAllocationExample,
    .answers = {{{200, "GpuAllocation"}}},
});

constexpr api::Operation kReleaseGpuAllocation = ends_later(acts_on_one({
    .id = "release_gpu_allocation",
    .tag = "gpu",
    .summary = tr_later("Give an allocation back"),
    .segment = kAllocationSegment,
    .segment_example = kAllocationExample,
}));

constexpr api::Operation kRenewGpuAllocation = {
    .id = "renew_gpu_allocation",
    .tag = "gpu",
    .summary = tr_later("Keep an allocation for so long from now: a heartbeat"),
    .segment = kAllocationSegment,
    .segment_example = kAllocationExample,
    .body = "GpuRenewal",
    .example = R"({"ttl_seconds": 600})",
    .answers = {{{200, "GpuAllocation"}, {204}}},
    .errors = {404, 409, 422},
};

}  // namespace gflow::server::about

namespace gflow::api {

template <>
QueryTable<server::GpuNodesQuery> query_table<server::GpuNodesQuery>() {
  using Query = server::GpuNodesQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::gpu_type>({.name = "gpu_type",
                                   .help = tr_later("a model, models with | between, or a vendor"),
                                   .example = "V100"}),
      parameter<&Query::min_memory_gb>({.name = "min_memory_gb",
                                        .help = tr_later("memory of each GPU, in GB of 2^30 bytes"),
                                        .range = {.least = 0, .most = api::kMostGb},
                                        .example = "16"}),
  });
  return {kRows};
}

template <>
QueryTable<server::CleanupQuery> query_table<server::CleanupQuery>() {
  using Query = server::CleanupQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::gpu_count>(
          {.name = "gpu_count",
           .help = tr_later("only your newest allocation of so many GPUs there"),
           .example = "1"}),
  });
  return {kRows};
}

}  // namespace gflow::api

// SPDX-License-Identifier: Apache-2.0
#include "base/translate.h"
#include "server/about.h"

namespace gflow::server::about {
namespace {

using api::QueryParameter;
using enum QueryParameter::Type;

constexpr std::string_view kAllocationSegment = tr_later("number of the allocation");

}  // namespace

constexpr api::Operation kShowGpuStatus = {
    .id = "show_gpu_status",
    .tag = "gpu",
    .summary = tr_later("What is free, and how busy the GPUs are"),
    .answers = {{{200, "GpuStatus"}}},
};

constexpr api::Operation kListGpuNodes = {
    .id = "list_gpu_nodes",
    .tag = "gpu",
    .summary = tr_later("The nodes that have such a GPU free"),
    .query = {QueryParameter{.name = "gpu_type",
                             .help = tr_later("a model, models with | between, or a vendor"),
                             .example = "V100"},
              {.name = "min_memory_gb",
               .help = tr_later("memory of each GPU, in GB of 2^30 bytes"),
               .type = Decimal,
               .example = "16"}},
    .answers = {{{200, "GpuStatus"}}},
    .errors = {422},
};

constexpr api::Operation kShowGpuHealth = {
    .id = "show_gpu_health",
    .tag = "gpu",
    .summary = tr_later("Whether the GPUs can be used, and what is wrong"),
    .description = tr_later("503 with the same document where no GPU answers."),
    .answers = {{{200, "GpuHealth"}, {503, "GpuHealth"}}},
};

constexpr api::Operation kShowGpuMonitoring = {
    .id = "show_gpu_monitoring",
    .tag = "gpu",
    .summary = tr_later("Each GPU as it is measured"),
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

constexpr api::Operation kAllocateGpus = {
    .id = "allocate_gpus",
    .tag = "gpu",
    .summary = tr_later("Hold GPUs for a program"),
    .description = tr_later(
        "Where nothing is free, success is false and error_message says what is missing; with wait "
        "it stands in the queue, which is answered with 202."),
    .body = "GpuNeed",
    .example = R"({"gpu_count": 1, "gpu_type": "V100", "memory_gb": 32.0})",
    .takes_key = true,
    .answers = {{{200, "GpuAllocation"}, {202, "GpuAllocation"}}},
    .errors = {404, 409, 422},
};

constexpr api::Operation kSetUpPytorch = {
    .id = "set_up_pytorch",
    .tag = "gpu",
    .summary = tr_later("The same, with what PyTorch is to be told"),
    .description = tr_later("Or for the allocation there is, by its allocation_id."),
    .body = "GpuNeed",
    .example = R"({"gpu_count": 1, "gpu_type": "A100", "distributed_training": true})",
    .takes_key = true,
    .answers = {{{200, "GpuAllocation"}, {202, "GpuAllocation"}}},
    .errors = {404, 409, 422},
};

constexpr api::Operation kSetUpTensorflow = {
    .id = "set_up_tensorflow",
    .tag = "gpu",
    .summary = tr_later("The same, with what TensorFlow is to be told"),
    .description = tr_later("Or for the allocation there is, by its allocation_id."),
    .body = "GpuNeed",
    .example = R"({"gpu_count": 1, "gpu_type": "A100", "gpu_memory_fraction": 0.9})",
    .takes_key = true,
    .answers = {{{200, "GpuAllocation"}, {202, "GpuAllocation"}}},
    .errors = {404, 409, 422},
};

constexpr api::Operation kCleanUpGpus = {
    .id = "clean_up_gpus",
    .tag = "gpu",
    .summary = tr_later("Give back what you hold on a node"),
    .query = {QueryParameter{.name = "gpu_count",
                             .help = tr_later("only your newest allocation of so many GPUs there"),
                             .type = Number,
                             .range = {0, INT64_MAX},
                             .example = "1"}},
    .segment = tr_later("name of the node"),
    .answers = {{{200, "GpuCleanup"}}},
    .errors = {404, 409},
};

constexpr api::Operation kListGpuAllocations = {
    .id = "list_gpu_allocations",
    .tag = "gpu",
    .summary = tr_later("Your allocations that have not ended"),
    .answers = {{{200, "GpuAllocations"}}},
};

constexpr api::Operation kShowGpuAllocation = {
    .id = "show_gpu_allocation",
    .tag = "gpu",
    .summary = tr_later("Show an allocation"),
    .segment = kAllocationSegment,
    .answers = {{{200, "GpuAllocation"}}},
    .errors = {404},
};

constexpr api::Operation kReleaseGpuAllocation = {
    .id = "release_gpu_allocation",
    .tag = "gpu",
    .summary = tr_later("Give an allocation back"),
    .segment = kAllocationSegment,
    .takes_match = true,
    .answers = {{{200, "JobIds"}}},
    .errors = {404, 409, 412},
};

constexpr api::Operation kRenewGpuAllocation = {
    .id = "renew_gpu_allocation",
    .tag = "gpu",
    .summary = tr_later("Keep an allocation for so long from now: a heartbeat"),
    .segment = kAllocationSegment,
    .body = "GpuRenewal",
    .example = R"({"ttl_seconds": 600})",
    .answers = {{{200, "GpuAllocation"}, {204}}},
    .errors = {404, 409, 422},
};

}  // namespace gflow::server::about

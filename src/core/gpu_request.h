// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "base/result.h"
#include "base/share.h"
#include "core/job.h"

/// What people write for GPUs, for the command line, scripts, REST, Python and Kubernetes alike:
///
///   request := "-1" [kind]                        see every GPU, reserve none
///            | part ["," part]                    an amount and memory, in either order
///   part    := (amount | memory) [kind]           one kind in all
///   amount  := COUNT | SHARE | COUNT "x" SHARE    2   0.5   2x0.5
///            | SHARE ".." SHARE                   0.3..1: guaranteed, and the most
///   memory  := NUMBER (K|M|G|T)["i"]["B"]         of each device: 8G, 512M, 1.5GiB
///   kind    := "(" [vendor ","] model {"|" model} ")"  |  "(" vendor ")"
///
/// and as Slurm writes it, ["gpu" ":"] [MODEL ":"] COUNT. Letters of either case, full-width
/// characters and blanks between the parts are the same. A share has at most four decimals: parts
/// of 10,000. Memory is rounded up to a whole MiB. docs/requests.md is the page for users.
namespace gflow {

struct GpuRequest {
  int gpus = 0;
  Share share = Share::whole();     ///< of each
  Share share_limit{};              ///< the most of it; 0: `share`
  Memory memory{};                  ///< of each; 0: not said
  std::string vendor;               ///< "nvidia", "amd", "intel", "ascend", or one of GpuResources
  std::vector<std::string> models;  ///< as catalogue::read_model() writes them, sorted; any of them
  bool see_all = false;             ///< -1

  friend bool operator==(const GpuRequest&, const GpuRequest&) = default;
};

/// What a cluster calls the GPUs of a vendor: gpu_resource of gpu_config.yaml.
struct GpuResources {
  std::map<std::string, std::string> names = {{"amd", "amd.com/gpu"},
                                              {"gpu", "nvidia.com/gpu"},
                                              {"intel", "intel.com/gpu"},
                                              {"npu", "huawei.com/npu"},
                                              {"nvidia", "nvidia.com/gpu"}};
  std::string default_name = "nvidia.com/gpu";

  friend bool operator==(const GpuResources&, const GpuResources&) = default;
};

/// What is wrong with a request, and where.
struct GpuRequestMistake {
  std::size_t begin = 0;  ///< bytes of the text, [begin, end)
  std::size_t end = 0;
  std::size_t column = 1;  ///< of begin, in characters
  std::string what;        ///< "a job has whole GPUs or a part of one"
  std::string instead;     ///< what would be right; may be ""

  friend bool operator==(const GpuRequestMistake&, const GpuRequestMistake&) = default;
};

constexpr int kMaxGpus = 1024;
constexpr std::size_t kMaxGpuRequestText = 256;
constexpr std::size_t kMaxModels = 16;

[[nodiscard]] std::expected<GpuRequest, GpuRequestMistake> read_gpu_request(
    std::string_view text, const GpuResources& resources = {});
/// The same with the mistake as Code::Usage: "'1.5', column 1: a job has ...; write 2 or 0.5".
[[nodiscard]] Result<GpuRequest> parse_gpu_request(std::string_view text,
                                                   const GpuResources& resources = {});
[[nodiscard]] Error error_of(const GpuRequestMistake& mistake, std::string_view text);

/// The one way to write it, which parses to the same value: "2(A100),40G", "8G,0.5(T4)", "0", "-1".
[[nodiscard]] std::string gpu_request_text(const GpuRequest& request);
/// The same of a whole request.
[[nodiscard]] std::string gpu_request_text(const Request& request);

/// "nvidia.com/gpu": what such devices are called in a cluster. A model says its vendor.
[[nodiscard]] std::string resource_name(const GpuRequest& request, const GpuResources& resources);
/// "nvidia" of "CUDA", "ascend" of "npu", "" of "gpu"; an empty optional for a word that is none.
[[nodiscard]] std::optional<std::string> read_vendor(std::string_view word,
                                                     const GpuResources& resources = {});

/// Puts it into a request: mode Fraction for a share below the whole, else Whole. The memory
/// already there stays if none is said.
void apply(const GpuRequest& from, Request& to);
[[nodiscard]] GpuRequest gpu_request_of(const Request& request);

/// The names of models as the catalogue writes them. Errors: Usage, for one that is none.
[[nodiscard]] Result<void> read_models(std::vector<std::string>& models);

/// The one form of a request, wherever it was written: vendor and models as the grammar writes
/// them, models and selector sorted and each once, mode and share in agreement. Errors: Usage for a
/// vendor or model that is none.
[[nodiscard]] Result<void> normalise(Request& request);

}  // namespace gflow

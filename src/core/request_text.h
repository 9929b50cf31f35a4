// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/job.h"

namespace gflow {

/// What a request asks for of GPUs, in words: "2 V100 GPUs, 40G free on each", "half of a GPU, 8G
/// of its memory", "1 GPU time-sliced with others, 16G of its memory", "0 GPUs".
[[nodiscard]] std::string gpus_in_words(const Request& request);

/// All of it: the GPUs, CPUs, host memory, nodes and labels.
[[nodiscard]] std::string request_in_words(const Request& request);

/// "key=value,key=value"; "" for none. Without those of kAdmitsPrefix.
[[nodiscard]] std::string selector_text(const std::vector<Label>& selector);

}  // namespace gflow

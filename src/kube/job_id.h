// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/job_id.h"
#include "kube/objects.h"

namespace gflow::kube {

/// The number a pod is listed by, as jobs have one. Nobody keeps it: it follows from what the pod
/// is born with, so that whoever reads the cluster, and whenever, gives the same. Above the second
/// of its creation, since 2014 and for 34 years, so that older pods have smaller numbers; below 23
/// bits of its uid. That is less than 2^53, which every reader of JSON takes.
[[nodiscard]] JobId job_id_of(const Pod& pod);

/// Those of pods beside each other, by uid. Of several with the same number, which of a thousand
/// pods made in one second some six in a hundred times there are, the ones behind the first uid
/// have the next that is free.
[[nodiscard]] std::map<std::string, JobId> job_ids_of(const std::vector<const Pod*>& pods);

}  // namespace gflow::kube

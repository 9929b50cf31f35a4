// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/expected_start.h"
#include "api/refusal.h"
#include "api/types.h"
#include "base/result.h"
#include "base/time.h"
#include "core/job.h"

namespace gflow::api {

/// The body of POST /api/v1/place: where would such a job run now, and what would keep it waiting?
struct PlaceRequest {
  Request request;
  std::string name;  ///< by which how long it runs may be known; "" for none
  int priority = kDefaultPriority;
  std::optional<std::chrono::seconds> time_limit;
  bool hold = false;
  std::optional<WallTime> begin;
  Dependencies dependencies;
  std::string group;       ///< "" for none
  int max_concurrent = 0;  ///< jobs of the group at once; 0: any number
  int most = 10;           ///< nodes in the answer, 1 to 1000
  int jobs = 1;            ///< so many of them, each after the other; 1 to 1000
};
constexpr int kMaxPlaceJobs = 1000;

/// One part of a score: weight * value is what it adds.
struct ScoreTerm {
  std::string name;
  double weight = 1;
  double value = 0;
};
/// GPUs of a node that a job could have.
struct GpuSet {
  std::vector<int> gpus;
  int links_percent = 0;  ///< ring bandwidth, of the best of that many on the node; 0: not known
  std::string because;    ///< why these; "" where there was no choice
};
/// A node the job could start on now.
struct RankedNode {
  std::string node;
  GpuSet best;  ///< what it would get there
  std::int64_t score = 0;
  std::vector<ScoreTerm> terms;
  std::vector<GpuSet> others;  ///< that would do, too, the best first
};
/// What a job would get of one node.
struct StartPlace {
  std::string node;
  std::vector<int> gpus;
};
/// Where a job would start: a place on each of its nodes.
struct JobStart {
  std::vector<StartPlace> places;
};
/// The answer: the best node first.
struct PlacementView {
  std::string request;  ///< as --gpus takes it
  std::string words;    ///< the whole request in a sentence
  std::string policy;   ///< that scores
  int nodes = 1;        ///< it asks for at once
  bool fits = false;    ///< it could start now, if nothing waited ahead of it
  std::vector<RankedNode> ranked;
  /// Of the jobs asked for, those that have room now and may run at once.
  std::vector<JobStart> starts;
  /// What keeps the next of them waiting though there is room: a limit of jobs at once.
  std::optional<BlockerView> limit;
  /// What would keep it waiting whatever is free, as a hold; then what it lacks where it does not
  /// fit.
  std::vector<BlockerView> blockers;
  bool cancelled = false;  ///< at once, as its dependencies can never be met
  /// Of one of them that waits for nothing but room or those ahead of it, by what is known now.
  std::optional<ExpectedStart> expected_start;
  /// Jobs that wait and go before it: that stand in the queue before it, or come to it and should
  /// start before. Empty: not known.
  std::optional<std::uint64_t> jobs_ahead = {};
};

[[nodiscard]] std::string write(const PlaceRequest& request);
[[nodiscard]] Asked<PlaceRequest> read_place_request(std::string_view json);
[[nodiscard]] std::string write(const PlacementView& view);
[[nodiscard]] Result<PlacementView> read_placement(std::string_view json);

}  // namespace gflow::api

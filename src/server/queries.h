// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/defrag.h"
#include "api/json.h"
#include "api/query_table.h"
#include "server/job_statistics.h"

/// What routes read of their queries. Each has a table, beside what else is told of its route in
/// about_*.cpp; those that a client writes, too, are in api/ (JobQuery, EventQuery).
namespace gflow::server {

struct NoQuery {};

struct CancelQuery {
  int signal = 0;  ///< to end it with in place of SIGTERM; 0: that
};

struct NewestQuery {
  std::uint64_t back = 0;  ///< how many newer ones to pass over
};

struct QueueQuery {
  std::size_t most = 100;
};

struct DefragQuery {
  std::size_t most = api::kUsualDefrag;
};

struct LogQuery {
  std::optional<std::uint64_t> tail;
  std::uint64_t from = 0;
  bool follow = false;
};

struct ChangesQuery {
  std::uint64_t revision = 0;
  std::optional<JobId> job;
};

struct GroupsQuery {
  JobQuery jobs;
  std::vector<std::string> names;  ///< * and ? stand for others
  std::string after;               ///< what a page had as next; "": from the first
  std::size_t most = api::kMaxJobsOnPage;
};

struct GroupQuery {
  std::vector<std::string> users;
};

struct StatisticsQuery {
  JobQuery jobs;
  StatisticsWish wish;
};

/// What is not said is any.
struct NodesQuery {
  std::vector<std::string> names;   ///< * and ? stand for others
  std::vector<std::string> labels;  ///< "zone=a": all of these
  std::optional<bool> ready;
  std::optional<bool> drained;
};

struct DevicesQuery {
  std::vector<std::string> nodes;   ///< * and ? stand for others
  std::vector<std::string> models;  ///< as catalogue::read_model() writes them
  std::vector<std::string> vendors;
  std::optional<bool> available;
  std::optional<bool> drained;
};

struct TopologyQuery {
  std::vector<std::string> nodes;  ///< * and ? stand for others
};

struct SnapshotQuery {
  std::uint64_t history = 2000;  ///< ended jobs in it, at most
};

struct TokenQuery {
  std::string user;  ///< whose it is; "" if it is not said
};

struct GpuNodesQuery {
  std::string gpu_type;  ///< as read_gpu_type() takes it
  double min_memory_gb = 0;
};

struct CleanupQuery {
  std::optional<std::uint64_t> gpu_count;  ///< only the newest allocation of so many
};

}  // namespace gflow::server

namespace gflow::api {

template <>
QueryTable<server::NoQuery> query_table<server::NoQuery>();
template <>
QueryTable<server::CancelQuery> query_table<server::CancelQuery>();
template <>
QueryTable<server::NewestQuery> query_table<server::NewestQuery>();
template <>
QueryTable<server::QueueQuery> query_table<server::QueueQuery>();
template <>
QueryTable<server::DefragQuery> query_table<server::DefragQuery>();
template <>
QueryTable<server::LogQuery> query_table<server::LogQuery>();
template <>
QueryTable<server::ChangesQuery> query_table<server::ChangesQuery>();
template <>
QueryTable<server::GroupsQuery> query_table<server::GroupsQuery>();
template <>
QueryTable<server::GroupQuery> query_table<server::GroupQuery>();
template <>
QueryTable<server::StatisticsQuery> query_table<server::StatisticsQuery>();
template <>
QueryTable<server::NodesQuery> query_table<server::NodesQuery>();
template <>
QueryTable<server::DevicesQuery> query_table<server::DevicesQuery>();
template <>
QueryTable<server::TopologyQuery> query_table<server::TopologyQuery>();
template <>
QueryTable<server::SnapshotQuery> query_table<server::SnapshotQuery>();
template <>
QueryTable<server::TokenQuery> query_table<server::TokenQuery>();
template <>
QueryTable<server::GpuNodesQuery> query_table<server::GpuNodesQuery>();
template <>
QueryTable<server::CleanupQuery> query_table<server::CleanupQuery>();

}  // namespace gflow::api

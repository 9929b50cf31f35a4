// SPDX-License-Identifier: Apache-2.0
#include "lab/openb.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <ranges>
#include <utility>

#include "lab/data_file.h"
#include "lab/rng.h"
#include "lab/tar.h"

namespace gflow::lab {
namespace {

using placement::Demand;
using placement::Node;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(text, separator)) {
    parts.emplace_back(part.begin(), part.end());
  }
  return parts;
}

/// The rows of a table below its heading, as fields.
std::vector<std::vector<std::string_view>> rows_of(std::string_view csv) {
  std::vector<std::vector<std::string_view>> rows;
  for (std::string_view line : split(csv, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) rows.push_back(split(line, ','));
  }
  if (!rows.empty()) rows.erase(rows.begin());
  return rows;
}

template <typename Number>
Result<Number> number(std::string_view text, std::size_t row) {
  Number value{};
  const auto read = std::from_chars(text.begin(), text.end(), value);
  if (read.ec == std::errc{} && read.ptr == text.end()) return value;
  return fail(Code::Usage, fmt::format("row {}: not a number: '{}'", row + 1, text));
}

Result<void> check_width(const std::vector<std::string_view>& row,
                         std::size_t at,
                         std::size_t least) {
  if (row.size() >= least) return {};
  return fail(Code::Usage, fmt::format("row {}: {} columns, not {}", at + 1, row.size(), least));
}

/// The name gflow has for a policy of the published tables: "06-FGD", "FGD".
std::string_view policy_of(std::string_view published) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNames = {{
      {"Random", "random"},
      {"DotProd", "dot-prod"},
      {"Clustering", "gpu-clustering"},
      {"Packing", "gpu-packing"},
      {"BestFit", "best-fit"},
      {"FGD", "fgd"},
  }};
  for (const auto& [theirs, ours] : kNames) {
    if (published.ends_with(theirs)) return ours;
  }
  return published;
}

constexpr std::string_view kFolder = "openb";

}  // namespace

std::int64_t parts_of(const Demand& demand) {
  return std::int64_t{demand.gpus} * demand.share.parts;
}

placement::Profile Openb::profile() const {
  std::vector<placement::DemandClass> demands;
  demands.reserve(tasks.size());
  for (const Demand& task : tasks) demands.push_back({.demand = task, .count = 1});
  return placement::profile_of(demands);
}

std::int64_t Openb::capacity() const {
  std::int64_t devices = 0;
  for (const Node& node : nodes) devices += std::ssize(node.devices);
  return devices * Share::kWholeParts;
}

Result<std::vector<Node>> read_openb_nodes(std::string_view csv) {
  // sn,cpu_milli,memory_mib,gpu,model
  std::vector<Node> nodes;
  const auto rows = rows_of(csv);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    GF_CHECK(check_width(rows[i], i, 5));
    Node node;
    node.name = rows[i][0];
    node.milli_cpus = GF_TRY(number<std::int64_t>(rows[i][1], i));
    node.memory = Memory::mib(GF_TRY(number<std::int64_t>(rows[i][2], i)));
    const auto devices = GF_TRY(number<unsigned>(rows[i][3], i));
    node.devices.resize(devices, {.vendor = "openb", .model = std::string(rows[i][4])});
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Result<std::vector<Demand>> read_openb_tasks(std::string_view csv) {
  // name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec,...]
  constexpr int kWholeMilli = 1000;
  std::vector<Demand> tasks;
  const auto rows = rows_of(csv);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    GF_CHECK(check_width(rows[i], i, 5));
    Demand task;
    task.milli_cpus = GF_TRY(number<std::int64_t>(rows[i][1], i));
    task.memory = Memory::mib(GF_TRY(number<std::int64_t>(rows[i][2], i)));
    task.gpus = GF_TRY(number<int>(rows[i][3], i));
    const int milli = GF_TRY(number<int>(rows[i][4], i));
    if (task.gpus == 1 && milli < kWholeMilli) {
      task.mode = GpuMode::Fraction;
      task.share = Share::milli(milli);
    }
    if (rows[i].size() > 5 && !rows[i][5].empty()) {
      for (const std::string_view model : split(rows[i][5], '|')) task.models.emplace_back(model);
      std::ranges::sort(task.models);
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

Result<Openb> load_openb(const std::string& directory, std::string_view trace) {
  const std::string nodes = GF_TRY(read_data(directory, kFolder, "openb_node_list_gpu_node.csv"));
  const std::string tasks =
      GF_TRY(read_data(directory, kFolder, fmt::format("openb_pod_list_{}.csv.gz", trace)));
  Openb openb;
  openb.nodes = GF_TRY(read_openb_nodes(nodes));
  openb.tasks = GF_TRY(read_openb_tasks(tasks));
  return openb;
}

Result<ArrivalOrder> read_arrival_order(std::string_view text) {
  std::vector<std::int32_t> numbers;
  for (const auto word : std::views::split(text, '\n')) {
    for (const std::string_view digits : split(std::string_view(word.begin(), word.end()), ' ')) {
      if (!digits.empty()) numbers.push_back(GF_TRY(number<std::int32_t>(digits, numbers.size())));
    }
  }
  if (numbers.size() < 2 || std::ssize(numbers) != std::int64_t{2} + numbers[0] + numbers[1]) {
    return fail(Code::Usage, "an arrival order is two counts and so many numbers");
  }
  const auto ranks = numbers.begin() + 2 + numbers[0];
  return ArrivalOrder{.tasks = {numbers.begin() + 2, ranks}, .ranks = {ranks, numbers.end()}};
}

Result<ArrivalOrder> load_arrival_order(const std::string& directory,
                                        std::string_view trace,
                                        int seed) {
  const std::string archive = GF_TRY(read_data(directory, kFolder, "sequences_seed42-46.tar.gz"));
  const std::string name = fmt::format("{}.{}", trace, seed);
  const auto text = tar_member(archive, name);
  if (!text) return fail(Code::NotFound, fmt::format("there is no arrival order '{}'", name));
  return read_arrival_order(*text);
}

ArrivalOrder draw_arrival_order(const Openb& openb, std::uint64_t seed) {
  Rng rng(seed);
  const auto shuffled = [&rng](std::size_t size) {
    std::vector<std::int32_t> numbers(size);
    std::iota(numbers.begin(), numbers.end(), 0);
    for (std::size_t left = size; left > 1; --left) {
      std::swap(numbers[left - 1], numbers[rng.below(static_cast<std::uint32_t>(left))]);
    }
    return numbers;
  };
  ArrivalOrder order{.tasks = shuffled(openb.tasks.size()), .ranks = {}};
  std::int64_t arrived = 0;
  for (const Demand& task : openb.tasks) arrived += parts_of(task);
  const std::int64_t most = openb.capacity() / 10 * 13;
  while (!openb.tasks.empty()) {
    const std::uint32_t task = rng.below(static_cast<std::uint32_t>(openb.tasks.size()));
    arrived += parts_of(openb.tasks[task]);
    if (arrived > most) break;
    order.tasks.push_back(static_cast<std::int32_t>(task));
  }
  order.ranks = shuffled(openb.nodes.size());
  return order;
}

Result<std::vector<PublishedRun>> read_published(std::string_view csv) {
  // workload,sc_policy,tune,seed,total_gpus,0,1,...,130
  constexpr std::size_t kFirstPoint = 5;
  constexpr std::string_view kPrefix = "openb_pod_list_";
  std::vector<PublishedRun> runs;
  const auto rows = rows_of(csv);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    PublishedRun run;
    GF_CHECK(check_width(rows[i], i, kFirstPoint + run.curve.size()));
    run.trace = rows[i][0].starts_with(kPrefix) ? rows[i][0].substr(kPrefix.size()) : rows[i][0];
    run.policy = policy_of(rows[i][1]);
    run.seed = GF_TRY(number<int>(rows[i][3], i));
    for (std::size_t point = 0; point < run.curve.size(); ++point) {
      run.curve[point] = GF_TRY(number<double>(rows[i][kFirstPoint + point], i));
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

Result<std::vector<ChurnBaseline>> load_churn_baselines(const std::string& directory) {
  // workload,policy,seeds,alloc_mean,alloc_sd,gpu_demand_accepted,tasks_accepted
  const std::string csv = GF_TRY(read_data(directory, kFolder, "churn_baselines.csv"));
  std::vector<ChurnBaseline> baselines;
  const auto rows = rows_of(csv);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    GF_CHECK(check_width(rows[i], i, 4));
    baselines.push_back({.trace = std::string(rows[i][0]),
                         .policy = std::string(policy_of(rows[i][1])),
                         .allocation = GF_TRY(number<double>(rows[i][3], i))});
  }
  return baselines;
}

Result<std::vector<PublishedRun>> load_published(const std::string& directory) {
  const std::string csv = GF_TRY(read_data(directory, kFolder, "published_allo_discrete.csv.gz"));
  return read_published(csv);
}

}  // namespace gflow::lab

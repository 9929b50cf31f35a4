// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "base/time.h"

/// What Slurm says of its jobs and nodes. Names in it are of others: a job may be called anything,
/// with line ends and with what looks like Slurm's own words.
namespace gflow::slurm {

/// GPUs and parts of them: "gpu:v100:4,shard:40", "gres:gpu:2", "gpu:v100:2(IDX:0-1)".
struct Gres {
  std::string kind;  ///< "gpu", "shard", "mps"
  std::string type;  ///< "" if none is said
  std::int64_t count = 0;
  std::vector<int> indices;  ///< ascending; empty if they are not said
};
[[nodiscard]] std::vector<Gres> read_gres(std::string_view text);

/// "n[1-3,07],gpu1": each name, no more than 10,000.
[[nodiscard]] std::vector<std::string> read_host_list(std::string_view text);

/// What a job has on one node.
struct Part {
  std::string node;
  std::vector<Gres> gres;
};

struct Job {
  std::uint64_t id = 0;
  std::uint64_t array = 0;  ///< the number of its array, which the last task of it has, too
  std::string tasks;        ///< of an array: "3", "2-9%1"; "" of a job that is of none
  std::string name;
  std::string user;
  std::uint32_t uid = 0;
  std::string state;       ///< "PENDING"
  std::string reason;      ///< "Resources"
  std::vector<Gres> gres;  ///< on each node
  int cpus = 0;            ///< of all nodes
  int nodes = 1;
  std::vector<std::string> node_names;
  std::optional<std::chrono::seconds> limit;
  WallTime submitted;
  std::optional<WallTime> started;
  std::optional<WallTime> ended;  ///< or is to end
  std::chrono::milliseconds run_time{0};
  std::int64_t nice = 0;
  std::string work_dir;
  std::string comment;
  std::string command;
  std::string account;
  std::optional<std::pair<int, int>> exit{};  ///< code and signal; nothing before its end
  // Of what only scontrol tells; nothing where that could be of another job.
  std::vector<Part> parts{};
  std::string output{};
};

/// What scancel and scontrol call it, and nothing else: "42", of an array "35_3", what is left to
/// start of one "35_[2-4,9]".
[[nodiscard]] std::string name_of(const Job& job);

struct Node {
  std::string name;
  std::vector<Gres> gres;
  int cpus = 0;
  Memory memory;
  std::string state;   ///< "MIXED+DRAIN"
  std::string reason;  ///< "" if none was given
};

struct Facts {
  std::vector<Job> jobs;
  std::vector<Node> nodes;
};

/// What 'squeue --format' is to be, and the jobs in what it prints then. `mark`: a word that nobody
/// can know before.
[[nodiscard]] std::string squeue_format(const std::string& mark);
[[nodiscard]] std::vector<Job> read_squeue(std::string_view text, const std::string& mark);
/// Of 'scontrol --oneliner --details show node'.
[[nodiscard]] std::vector<Node> read_nodes(std::string_view text);
/// What 'squeue --Format' is to be for how jobs ended, which --format does not have; takes what it
/// prints then.
[[nodiscard]] std::string exit_format(const std::string& mark);
void add_exits(std::vector<Job>& jobs, std::string_view text, const std::string& mark);

/// Takes what 'scontrol --details show job' says more. A job that is described twice, as one whose
/// name pretends to be another's description would have it, gets nothing: the answer is who.
std::vector<std::uint64_t> add_details(std::vector<Job>& jobs, std::string_view text);

}  // namespace gflow::slurm

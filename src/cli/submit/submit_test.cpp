// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/submit/environment.h"
#include "cli/submit/request.h"
#include "cli/submit/script_options.h"
#include "cli/submit/sweep.h"
#include "cli/submit/values.h"
#include "command/context.h"

namespace gflow::cli {
namespace {

Result<JobId> newest_of_six(std::uint64_t back) {
  if (back > 5) return fail(Code::NotFound, "you have no such job");
  return JobId(100 - back);
}

template <typename T>
std::string outcome(const Result<T>& result) {
  return result ? fmt::format("{}", *result) : fmt::format("error: {}", result.error().message);
}

std::string dependency(std::string_view text) {
  const auto wanted = read_dependency(text, DependencyMode::All, newest_of_six);
  if (!wanted) return fmt::format("{}", code_name(wanted.error().code));
  std::string out = wanted->mode == DependencyMode::Any ? "any" : "all";
  for (const JobId id : wanted->jobs) out += fmt::format(" {}", id.value);
  return out;
}

TEST(Values, ReadDependencies) {
  for (const auto& [text, want] : {std::pair{"5", "all 5"},
                                   std::pair{"3,1-2,3", "all 1 2 3"},
                                   std::pair{"@", "all 100"},
                                   std::pair{"@~1", "all 99"},
                                   std::pair{"@~9", "not_found"},
                                   std::pair{"afterok:1:2", "all 1 2"},
                                   std::pair{"afterok:2,afterok:1", "all 1 2"},
                                   std::pair{"afterok:1?afterok:2", "any 1 2"},
                                   std::pair{"afterok:1?afterok:2,afterok:3", "usage"},
                                   std::pair{"afterany:1", "usage"},
                                   std::pair{"afterok", "usage"},
                                   std::pair{"singleton", "usage"},
                                   std::pair{"0", "usage"},
                                   std::pair{"", "usage"}}) {
    EXPECT_EQ(dependency(text), want) << text;
  }
}

TEST(Values, ReadTimesAndNumbers) {
  EXPECT_EQ(**read_time_limit("30"), std::chrono::minutes(30));
  EXPECT_EQ(**read_time_limit("4:00:00"), std::chrono::hours(4));
  EXPECT_EQ(*read_time_limit("UNLIMITED"), std::nullopt);
  EXPECT_EQ(read_time_limit("soon").error().code, Code::Usage);
  EXPECT_EQ(*read_grace("30"), std::chrono::seconds(30));
  EXPECT_EQ(*read_grace("2m"), std::chrono::minutes(2));
  EXPECT_EQ(outcome(lower_priority(10, "3")), "7");
  EXPECT_EQ(outcome(lower_priority(10, "-5")), "15");
  EXPECT_EQ(outcome(lower_priority(10, "100")), "0");
  EXPECT_EQ(outcome(lower_priority(10, "-10000")), "255");
  EXPECT_EQ(lower_priority(10, "x").error().code, Code::Usage);
  EXPECT_EQ(outcome(read_count("--cpus", "8")), "8");
  EXPECT_EQ(read_count("--cpus", "-8").error().code, Code::Usage);
  EXPECT_EQ(read_count("--cpus", "-0").error().code, Code::Usage);
  EXPECT_EQ(outcome(read_count("--nice", "-8", {.least = -8, .most = 8})), "-8");
}

std::string array(std::string_view text) {
  const auto read = read_array(text);
  if (!read) return "error";
  std::string out = fmt::format("{}", fmt::join(read->tasks, " "));
  return read->max_concurrent ? fmt::format("{} max {}", out, *read->max_concurrent) : out;
}

TEST(Values, ReadArrays) {
  for (const auto& [text, want] : {std::pair{"1-3", "1 2 3"},
                                   std::pair{"0-10:5", "0 5 10"},
                                   std::pair{"7,1,3-4,3", "1 3 4 7"},
                                   std::pair{"1-4%2", "1 2 3 4 max 2"},
                                   std::pair{"5", "5"},
                                   std::pair{"3-1", "error"},
                                   std::pair{"1-9:0", "error"},
                                   std::pair{"5:2", "error"},
                                   std::pair{"1-", "error"},
                                   std::pair{"", "error"},
                                   std::pair{"1-2000000", "error"},
                                   std::pair{"0-18446744073709551615", "error"},
                                   std::pair{"1%0", "error"}}) {
    EXPECT_EQ(array(text), want) << text;
  }
}

TEST(Environment, IsWhatExportLeaves) {
  const Environment all = {"HOME=/h",
                           "PATH=/bin",
                           "FOO=1",
                           "GFLOW_JOB_ID=5",
                           "GFLOW_ARRAY_TASK_ID=3",
                           "GFLOW_SOCKET=/s"};
  const auto exports = [&](std::string_view text) {
    return fmt::format("{}", fmt::join(exported(all, *read_export(text)), " "));
  };
  EXPECT_EQ(fmt::format("{}", fmt::join(exported(all, {}), " ")),
            "HOME=/h PATH=/bin FOO=1 GFLOW_SOCKET=/s");
  EXPECT_EQ(exports("NONE"), "HOME=/h PATH=/bin");
  EXPECT_EQ(exports("ALL,FOO=2,BAR=a=b"), "HOME=/h PATH=/bin FOO=2 GFLOW_SOCKET=/s BAR=a=b");
  EXPECT_EQ(exports("FOO"), "HOME=/h PATH=/bin FOO=1");
  EXPECT_EQ(exports("A=1"), "HOME=/h PATH=/bin A=1");
  EXPECT_EQ(read_export("A-B=1").error().code, Code::Usage);
}

TEST(Environment, HasALimitThatNamesTheLargest) {
  EXPECT_TRUE(check_size({"A=1"}));
  const auto size = check_size({"A=1", "BIG=" + std::string(300'000, 'x')});
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code, Code::Exhausted);
  EXPECT_NE(size.error().message.find("BIG with 292 KiB"), std::string::npos)
      << size.error().message;
}

std::string points(std::vector<std::string> params, std::string_view csv = "") {
  const auto all = sweep_points(params, csv);
  if (!all) return fmt::format("{}", code_name(all.error().code));
  std::string out;
  for (const Point& point : *all) {
    if (!out.empty()) out += " | ";
    for (std::size_t i = 0; i < point.size(); ++i) {
      out += fmt::format("{}{}={}", i == 0 ? "" : " ", point[i].first, point[i].second);
    }
  }
  return out;
}

TEST(Sweep, MakesEveryCombination) {
  EXPECT_EQ(points({}), "");
  EXPECT_EQ(points({"lr=0.1,0.01"}), "lr=0.1 | lr=0.01");
  EXPECT_EQ(points({"a=1,2", "b=x,y"}), "a=1 b=x | a=1 b=y | a=2 b=x | a=2 b=y");
  EXPECT_EQ(points({"s=1:3"}), "s=1 | s=2 | s=3");
  EXPECT_EQ(points({"s=3:1:-1"}), "s=3 | s=2 | s=1");
  EXPECT_EQ(points({"x=0:1:0.25"}), "x=0.00 | x=0.25 | x=0.50 | x=0.75 | x=1.00");
  EXPECT_EQ(points({"x=-0.1:0.1:0.1"}), "x=-0.1 | x=0.0 | x=0.1");
  EXPECT_EQ(points({"u=http://x:80"}), "u=http://x:80");
  EXPECT_EQ(points({"s=1,2"}, "lr,name\n0.1,\"a,b\"\r\n0.2,c\n"),
            "lr=0.1 name=a,b s=1 | lr=0.1 name=a,b s=2 | lr=0.2 name=c s=1 | lr=0.2 name=c s=2");
  for (const std::string_view bad :
       {"lr", "=1", "a b=1", "s=1:3:0", "s=1:x", "s=1:100000", "s=3:1"}) {
    EXPECT_EQ(points({std::string(bad)}), "usage") << bad;
  }
  EXPECT_EQ(points({"a=1", "a=2"}), "usage");
  EXPECT_EQ(points({"a=1:200", "b=1:200"}), "usage");
  EXPECT_EQ(points({}, "a,b\n1\n"), "usage");
  EXPECT_EQ(points({}, "a\n\"1\n"), "usage");
}

TEST(Sweep, SubstitutesOnlyWhatWasGiven) {
  const Point point = {{"lr", "0.1"}, {"x", "{lr}"}};
  for (const auto& [text, want] : {std::pair{"--lr {lr}", "--lr 0.1"},
                                   std::pair{"{print $1}", "{print $1}"},
                                   std::pair{"${HOME} {lr}{lr}", "${HOME} 0.10.1"},
                                   std::pair{"{x}", "{lr}"},
                                   std::pair{"{", "{"},
                                   std::pair{"{}", "{}"},
                                   std::pair{"{{lr}}", "{0.1}"}}) {
    EXPECT_EQ(substitute(text, point), want) << text;
  }
}

/// The options of gbatch with those of a script, "cpus=4 gpus=2".
std::string merged(std::string_view line, std::string_view script, std::string* ignored = nullptr) {
  const Command gbatch = gbatch_command();
  Invocation invocation = *parse(gbatch, *shell_split(line));
  const auto said = script_options(gbatch, "train.sh", script, {});
  if (!said) return said.error().message;
  if (ignored != nullptr) *ignored = join(said->ignored, " ");
  take_over(invocation, said->invocation);
  std::string out;
  for (const auto& [name, values] : invocation.options) {
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, fmt::join(values, "+"));
  }
  return out;
}

TEST(Directives, GiveWayToTheCommandLine) {
  constexpr std::string_view kScript =
      "#!/bin/bash\n# GFLOW --gpus 2 --name a\n#GFLOW --time=30\n# GFLOW --param lr=1,2\n"
      "# GFLOW --param s=1\necho\n# GFLOW --gpus 8\n";
  EXPECT_EQ(merged("train.sh", kScript), "gpus=2 name=a param=lr=1,2+s=1 time=30");
  EXPECT_EQ(merged("--gpus 4 --param lr=9 train.sh", kScript), "gpus=4 name=a param=lr=9 time=30");
  EXPECT_EQ(merged("--depends-on-any 1 x.sh", "# GFLOW --depends-on 5\n"), "depends-on-any=1");
}

TEST(Directives, OfSlurmAreUnderstoodOrListed) {
  std::string ignored;
  EXPECT_EQ(merged("x.sh",
                   "#!/bin/bash\n#SBATCH -J train -t 4:00:00\n#SBATCH --gres=gpu:2\n#SBATCH -c4\n"
                   "#SBATCH --ntasks 1 --output=%j.out\n#SBATCH --exclusive\n#SBATCH --hold\n",
                   &ignored),
            "cpus=4 gpus=gpu:2 hold= name=train time=4:00:00");
  EXPECT_EQ(ignored, "--ntasks --output --exclusive");
  EXPECT_EQ(merged("x.sh", "#SBATCH --gres=gpu:1\n# GFLOW --gpus 3\n"), "gpus=3");
  EXPECT_EQ(merged("x.sh",
                   "#SBATCH -N 2 --gpus-per-node=v100:4\n#SBATCH -C fast\n"
                   "#SBATCH --constraint=disk=nvme\n",
                   &ignored),
            "constraint=disk=nvme gpus=v100:4 nodes=2");
  EXPECT_EQ(ignored, "-C");
}

TEST(Directives, OptionsMayStandOnLinesOfTheirOwn) {
  EXPECT_EQ(merged("x.sh", "# GFLOW --shared\n# GFLOW --gpu-memory 8G\n# GFLOW --gpus '1(V100)'\n"),
            "gpu-memory=8G gpus=1(V100) shared=");
  EXPECT_EQ(merged("--preemptible x.sh", "# GFLOW --preempt-signal USR1\n"),
            "preempt-signal=USR1 preemptible=requeue");
}

TEST(Directives, NameFileAndLineOfAMistake) {
  EXPECT_EQ(merged("train.sh", "#!/bin/bash\n\n# GFLOW --gpu 2\n"),
            "train.sh:3: unknown option '--gpu'; did you mean --gpus?");
  EXPECT_EQ(merged("train.sh", "# GFLOW --gpus 2 extra\n"), "train.sh:1: 'extra' is not an option");
  EXPECT_EQ(merged("train.sh", "# GFLOW --dry-run\n"),
            "train.sh:1: --dry-run is not allowed in a script");
  EXPECT_EQ(merged("train.sh", "# GFLOW --name a\n# GFLOW --gpus '1(nvdia)'\n"),
            "train.sh:2: --gpus: '1(nvdia)', column 3: 'nvdia' is neither a vendor nor a model of "
            "GPUs; did you mean nvidia?");
  EXPECT_EQ(merged("train.sh", "# GFLOW --gpus 0.5 --shared\n"),
            "train.sh:1: --shared time-slices whole GPUs; a part such as 0.5 is shared without it");
}

JobSpec spec_of(std::string_view line) {
  const Command gbatch = gbatch_command();
  const auto invocation = parse(gbatch, *shell_split(line));
  EXPECT_TRUE(invocation) << line;
  const auto spec =
      read_spec(*invocation, {"/here", WallTime{}, std::chrono::seconds(0), newest_of_six});
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().message);
  return spec.value_or(JobSpec{});
}

TEST(Spec, CountsOneCpuForAJobWithoutGpus) {
  EXPECT_EQ(spec_of("x").request, Request{.cpus = 1});
  EXPECT_EQ(spec_of("--gpus 2 x").request, Request{.gpus = 2});
  EXPECT_EQ(spec_of("--gpus 2 --cpus 4 -m 1G x").request,
            (Request{.gpus = 2, .cpus = 4, .memory = Memory::gib(1)}));
  EXPECT_EQ(spec_of("--cpus 0 x").request, Request{});
}

std::string refusal_of(std::string_view line) {
  const auto invocation = parse(gbatch_command(), *shell_split(line));
  if (!invocation) return invocation.error().message;
  const auto spec =
      read_spec(*invocation, {"/here", WallTime{}, std::chrono::seconds(0), newest_of_six});
  return spec ? "" : spec.error().message;
}

TEST(Spec, AsksForGpusOfEveryKind) {
  EXPECT_EQ(spec_of("--gpus '8G,0.5(t4)' x").request,
            (Request{.gpus = 1,
                     .share = Share::percent(50),
                     .gpu_memory = Memory::gib(8),
                     .mode = GpuMode::Fraction,
                     .models = {"T4"}}));
  EXPECT_EQ(spec_of("--gres gpu:v100:2 --gpu-memory 16G x").request,
            (Request{.gpus = 2, .gpu_memory = Memory::gib(16), .models = {"V100"}}));
  EXPECT_EQ(spec_of("--gpus 1 --gpu-model 'nvidia,A100|H100' x").request,
            (Request{.gpus = 1, .vendor = "nvidia", .models = {"A100", "H100"}}));
  EXPECT_EQ(spec_of("--gpus 1 --shared --gpu-memory 8G x").request,
            (Request{.gpus = 1, .gpu_memory = Memory::gib(8), .mode = GpuMode::TimeSlice}));
  EXPECT_EQ(spec_of("--gpus 1,8G --shared x").request,
            (Request{.gpus = 1, .gpu_memory = Memory::gib(8), .mode = GpuMode::TimeSlice}));
  EXPECT_EQ(spec_of("--gpus=-1 x").request, (Request{.see_all = true, .cpus = 1}));
  EXPECT_EQ(spec_of("--gpus 8 -N 2 -C zone=b,disk=nvme -C zone=b x").request,
            (Request{.gpus = 8, .nodes = 2, .selector = {{"disk", "nvme"}, {"zone", "b"}}}));
}

TEST(Spec, RefusesWhatDoesNotGoTogether) {
  constexpr std::array kRows = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"--gpus 1.5 x", "--gpus: '1.5', column 1: a job has whole GPUs or a part of one; write 2"},
      {"--gpu-memory 8G x", "--gpu-memory requires --gpus"},
      {"--gpus 8G,0.5 --gpu-memory 4G x",
       "--gpu-memory: --gpus already requests 8G of memory; give it only once"},
      {"--gpus 1 --gpu-memory much x", "--gpu-memory: 'much' is not an amount of memory"},
      {"--gpu-model V100 x", "--gpu-model requires --gpus"},
      {"--gpus '1(T4)' --gpu-model V100 x", "--gpu-model: --gpus already names a model"},
      {"--gpus 1 --gpu-model fast x", "--gpu-model 'fast': 'fast' is neither a vendor nor"},
      {"--gpus 1 --shared x", "--shared requires --gpu-memory"},
      {"--gpus 8G,0.5 --shared x", "--shared time-slices whole GPUs"},
      {"--shared x", "--shared requires --gpus"},
      {"--nodes 0 x", "--nodes: '0' is not a number from 1 to 100000"},
      {"-C fast x", "--constraint: 'fast' is not a node label; write key=value"},
      {"-C a=1,a=2 x", "--constraint: 'a' is given two values; a node has only one"},
      {"-C 'a=b c' x", "--constraint: 'b c' has characters that a label cannot have"},
      {"--preemptible=often x", "--preemptible: 'often' is not one of requeue, suspend, none"},
      {"--preempt-signal USR1 x", "--preempt-signal requires --preemptible=requeue"},
      {"--preemptible --preempt-signal LOUD x", "--preempt-signal: 'LOUD' is not a signal"},
  });
  for (const auto& [line, message] : kRows) {
    EXPECT_TRUE(refusal_of(line).starts_with(message)) << line << ": " << refusal_of(line);
  }
}

TEST(Spec, IsWhatTheOptionsSay) {
  JobSpec want;
  want.name = "exp1";
  want.project = "cv";
  want.request = {.gpus = 1};
  want.preemption = Preemption::Requeue;
  want.preempt_signal = 10;  // SIGUSR1
  want.priority = 100;
  want.time_limit = std::chrono::minutes(30);
  want.grace = std::chrono::seconds(5);
  want.dependencies = {{JobId(7)}, DependencyMode::Any, false};
  want.hold = true;
  want.requeue = true;
  want.max_retries = 2;
  want.max_concurrent = 3;
  want.work_dir = "/here";
  EXPECT_EQ(spec_of("--gpus 1 --name exp1 -P cv --priority 100 --time 30 --grace 5 "
                    "--depends-on-any 7 --no-auto-cancel --hold --requeue --max-retries 2 "
                    "--max-concurrent 3 --preemptible --preempt-signal USR1 x"),
            want);
}

TEST(Spec, RefusesWhatIsNoNameOrNumber) {
  const Command gbatch = gbatch_command();
  for (const std::string_view line : {"--name 'a\x1b'",
                                      "--name '\xff'",
                                      "--project 'a\tb'",
                                      "--project '\xff'",
                                      "--project ' '",
                                      "--priority 300",
                                      "--priority -1",
                                      "--gpus x",
                                      "--memory 0",
                                      "--time 0x",
                                      "--begin never"}) {
    const auto invocation = parse(gbatch, *shell_split(line));
    ASSERT_TRUE(invocation) << line;
    const auto spec =
        read_spec(*invocation, {"/here", WallTime{}, std::chrono::seconds(0), newest_of_six});
    ASSERT_FALSE(spec) << line;
    EXPECT_EQ(spec.error().code, Code::Usage) << line;
  }
}

TEST(DryRun, AnArrayIsALineAndASweepIsListed) {
  const auto shown = [](const std::vector<std::uint64_t>& tasks, int points, std::string name) {
    JobSpec spec;
    spec.name = std::move(name);
    spec.command = "t {lr}";
    Sweep sweep{tasks, {}, ""};
    for (int i = 1; i <= points; ++i) sweep.points.push_back({{"lr", fmt::format("{}", i)}});
    return dry_run_text({.items = expand(spec, {}, sweep, "group-1")});
  };
  EXPECT_EQ(shown({1, 2, 3, 5}, 0, "exp"),
            "Would submit 4 batch jobs:\n"
            "  [1-4] t {lr} (GPUs: 0, task_ids: 1-3,5, time limit: none, name: exp_[1-3,5])\n");
  EXPECT_EQ(shown({7}, 0, ""),
            "Would submit 1 batch job:\n"
            "  [1] t {lr} (GPUs: 0, task_id: 7, time limit: none)\n");
  std::vector<std::uint64_t> odd;
  for (std::uint64_t i = 1; i <= 9'999; i += 2) odd.push_back(i);
  EXPECT_EQ(shown(odd, 0, ""),
            "Would submit 5000 batch jobs:\n"
            "  [1-5000] t {lr} (GPUs: 0, task_ids: 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,..."
            ",9999, time limit: none)\n");
  EXPECT_EQ(shown({}, 2, "s"),
            "Would submit 2 batch jobs:\n"
            "  [1] t 1 (GPUs: 0, time limit: none, name: s_1)\n"
            "  [2] t 2 (GPUs: 0, time limit: none, name: s_2)\n");
  const std::string many = shown({}, 100, "");
  EXPECT_EQ(std::ranges::count(many, '\n'), 22);
  EXPECT_TRUE(many.ends_with("  [20] t 20 (GPUs: 0, time limit: none)\n  ... 80 more\n")) << many;
}

TEST(TasksApart, HaveEachTaskForItself) {
  JobSpec spec;
  spec.name = "exp";
  Payload payload;
  payload.argv = {"train"};
  payload.environment = {"A=1"};
  const auto tasks = tasks_apart(expand(spec, payload, {{3, 5, 6}, {{}}, ""}, "group-1"));
  ASSERT_TRUE(tasks && tasks->size() == 3U);
  EXPECT_EQ(tasks->at(0).spec.name, "exp_3");
  EXPECT_EQ(tasks->at(2).spec.name, "exp_6");
  EXPECT_EQ(tasks->at(2).spec.group, "group-1");
  EXPECT_FALSE(tasks->at(1).tasks);
  EXPECT_EQ(tasks->at(0).payload.argv, payload.argv);
  EXPECT_EQ(join(tasks->at(0).payload.environment, " "),
            "A=1 GFLOW_ARRAY_TASK_COUNT=3 GFLOW_ARRAY_TASK_MIN=3 GFLOW_ARRAY_TASK_MAX=6 "
            "GFLOW_ARRAY_TASK_ID=3");
  EXPECT_EQ(tasks->at(1).like, 0U);
  EXPECT_EQ(join(tasks->at(1).payload.environment, " "), "GFLOW_ARRAY_TASK_ID=5");
  const auto points = expand(spec, payload, {{}, {{{"lr", "1"}}, {{"lr", "2"}}}, ""}, "g");
  EXPECT_EQ(tasks_apart(points)->size(), 2U);
  std::vector<std::uint64_t> many(10'001);
  std::iota(many.begin(), many.end(), 1U);
  EXPECT_FALSE(tasks_apart(expand(spec, payload, {many, {{}}, ""}, "g")));
}

TEST(InParts, EachPartSaysAllOfItsJobs) {
  JobSpec spec;
  Payload payload;
  payload.argv = {"t", "{x}"};
  payload.environment = {"A=1"};
  api::SubmitRequest request;
  request.idempotency_key = "key";
  request.items = expand(
      spec, payload, {{}, {{{"x", "1"}}, {{"x", "2"}}, {{"x", "3"}}, {{"x", "1"}}}, ""}, "g");
  const auto parts = in_parts(request, 2);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].idempotency_key, "key-1");
  EXPECT_EQ(parts[1].idempotency_key, "key-2");
  EXPECT_EQ(parts[0].items[1].like, 0U);
  EXPECT_FALSE(parts[1].items[0].like);
  EXPECT_EQ(join(parts[1].items[0].payload.argv, " "), "t 3");
  EXPECT_EQ(join(parts[1].items[0].payload.environment, " "), "A=1 GFLOW_PARAM_x=3");
  EXPECT_EQ(join(parts[1].items[1].payload.argv, " "), "t 1");
}

TEST(Expand, MakesAJobForEachTaskAndPoint) {
  JobSpec spec;
  spec.name = "exp";
  spec.command = "python t.py {lr}";
  spec.max_concurrent = 2;
  Payload payload;
  payload.argv = {"python", "t.py", "{lr}"};
  payload.environment = {"A=1"};
  const auto tasks = expand(spec, payload, {{3, 5}, {{}}, ""}, "group-1");
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].tasks, (TaskRange{.first = 3, .count = 2, .step = 2}));
  EXPECT_EQ(tasks[0].spec.name, "exp");
  EXPECT_EQ(tasks[0].spec.group, "group-1");
  EXPECT_EQ(tasks[0].spec.max_concurrent, 2);
  EXPECT_EQ(tasks[0].payload.argv[2], "{lr}");
  EXPECT_EQ(join(tasks[0].payload.environment, " "),
            "A=1 GFLOW_ARRAY_TASK_COUNT=2 GFLOW_ARRAY_TASK_MIN=3 GFLOW_ARRAY_TASK_MAX=5");
  const auto several = expand(spec, payload, {{1, 2, 3, 10, 20, 30, 31}, {{}}, ""}, "group-1");
  ASSERT_EQ(several.size(), 3U);
  EXPECT_EQ(several[0].tasks, (TaskRange{.first = 1, .count = 3}));
  EXPECT_EQ(several[1].tasks, (TaskRange{.first = 10, .count = 3, .step = 10}));
  EXPECT_EQ(several[2].tasks, (TaskRange{.first = 31}));
  EXPECT_EQ(several[1].like, 0U);
  EXPECT_EQ(several[1].payload, Payload{});
  const auto only = expand(spec, payload, {{7}, {{}}, ""}, "group-1");
  ASSERT_EQ(only.size(), 1U);
  EXPECT_EQ(only[0].spec.group, "");
  const auto jobs = expand(spec, payload, {{}, {{{"lr", "0.1"}}, {{"lr", "1"}}}, "n-{lr}"}, "g");
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].spec.name, "n-0.1");
  EXPECT_EQ(jobs[0].spec.command, "python t.py 0.1");
  EXPECT_EQ(jobs[0].payload.argv[2], "0.1");
  EXPECT_EQ(jobs[0].payload.environment.back(), "GFLOW_PARAM_lr=0.1");
  EXPECT_EQ(jobs[1].payload.argv[2], "1");
  EXPECT_EQ(jobs[1].payload.environment, std::vector<std::string>{"GFLOW_PARAM_lr=1"});
  const auto single = expand(spec, payload, {{}, {{}}, ""}, "g");
  ASSERT_EQ(single.size(), 1U);
  EXPECT_EQ(single[0].spec.name, "exp");
  EXPECT_EQ(single[0].spec.group, "");
  EXPECT_EQ(single[0].spec.max_concurrent, 0);
}

std::string gates_of(const api::BlockerView& blocker, bool cancelled = false) {
  api::PlacementView view;
  view.blockers = {blocker};
  view.cancelled = cancelled;
  return gates_text(view, Clocks{});
}

TEST(Gates, SayWhatAUserHasTooManyOf) {
  EXPECT_EQ(gates_of(api::view_of(blocker::UserLimit{1000})),
            "It would wait: UserLimit: at most 1000 of its user's jobs that reserve no GPUs and no "
            "CPUs at once.\n");
}

TEST(Gates, SayHowAJobDependedOnEndedWhereThatIsKnown) {
  api::BlockerView blocker{.kind = BlockerKind::Dependency, .jobs = {JobId(3)}, .never = true};
  EXPECT_EQ(gates_of(blocker), "It would never start: job 3 did not finish.\n");
  EXPECT_EQ(gates_of(blocker, true), "It would be cancelled at once: job 3 did not finish.\n");
  blocker.end = Status::Timeout;
  EXPECT_EQ(gates_of(blocker), "It would never start: job 3 (Timeout) did not finish.\n");
}

}  // namespace
}  // namespace gflow::cli

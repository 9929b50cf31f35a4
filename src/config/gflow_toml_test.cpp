// SPDX-License-Identifier: Apache-2.0
#include "config/gflow_toml.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "os/file.h"

namespace gflow::config {
namespace {

using namespace std::chrono_literals;

/// A configuration file that is there for one test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(testing::TempDir() + "/gflow-config-" + std::to_string(::getpid()) + ".toml") {
    EXPECT_TRUE(os::write_file(path_, text));
  }
  ~ConfigFile() { (void)::unlink(path_.c_str()); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

settings::Settings settings_of(const Config& config) { return config; }

TEST(Config, ReadsEveryKey) {
  const ConfigFile file(R"(
[daemon]
devices = "sim:2xH100"
socket = "/tmp/x.sock"
log_level = "debug"
[scheduler]
backfill_patience = "1h"
keep_ended = "10d"
max_ended = 5
max_queued = 6
max_submit = 7
order = "submission"
keep_after = "6h"
preempt = false
guard = "100h"
[access]
administrators = "alice, @gpu-admins"
operators = ["bob", "@gpu-operators"]
others_jobs = "usage"
[priority]
max = 20
projects = "urgent=100"
[priority.users]
carol = 50
dave = 5
[placement]
policy = "fgd"
gpu_weight = 1
memory_weight = 0
cpu_weight = 3
fragmentation_weight = 100
[sharing]
stop_overuse = true
overuse_margin = "512M"
lend_idle_after = "90m"
cut_gpus = ["GPU-1", "GPU-2"]
max_jobs = 5
max_time_sliced = 6
mix_modes = true
with_others = true
allow_see_all = true
[node]
name = "lab1"
labels = "zone = b, disk=nvme"
[runner]
cgroups = false
gpu_isolation = "landlock"
launch_backoff = "5s"
max_launch_failures = 7
[limits]
max_queued_per_user = 11
max_unreserved_per_user = 12
max_gpus_per_user = 4
max_gpus_of = "alice = 8, bob=0"
max_stored_per_user = "64M"
max_keys_per_user = 13
max_dependencies_per_job = 8
max_dependencies_per_user = 9
max_dependencies = 10
allocation_ttl = "2h"
[api]
listen = "[::1]:9000"
max_connections = 100
max_connections_per_user = 50
allowed_origins = "https://board.lab:3000"
tls_listen = "0.0.0.0:8443"
tls_certificate = "/etc/gflow/lab1.pem"
tls_key = "/etc/gflow/lab1.key"
client_ca = "/etc/gflow/ca.pem"
host_names = "lab1.example.org"
[metrics]
dcgm = true
jobs = true
users = true
hpc_job_mapping_dir = "/run/hpc"
[telemetry]
otlp_endpoint = "http://lab:4318"
[store]
ballast = "1G"
backup_interval = "10m"
max_backups = 0
)");
  settings::Settings want;
  want.devices = "sim:2xH100";
  want.socket = "/tmp/x.sock";
  want.log_level = "debug";
  want.policy.backfill_patience = 1h;
  want.policy.keep_ended = 240h;
  want.policy.max_ended = 5;
  want.policy.max_queued = 6;
  want.policy.max_submit = 7;
  want.policy.order.order = engine::Order::Submission;
  want.policy.keep_after = std::chrono::hours(6);
  want.policy.preempt = false;
  want.policy.order.guard = 100h;
  want.roles.administrators = {"alice", "@gpu-admins"};
  want.roles.operators = {"bob", "@gpu-operators"};
  want.others_jobs = OthersJobs::Usage;
  want.policy.priority.max = 20;
  want.policy.priority.users = {{"carol", 50}, {"dave", 5}};
  want.policy.priority.projects = {{"urgent", 100}};
  want.policy.max_launch_failures = 7;
  want.policy.placement = "fgd";
  want.policy.placement_options.gpu_weight = 1;
  want.policy.placement_options.memory_weight = 0;
  want.policy.placement_options.cpu_weight = 3;
  want.policy.placement_options.fragmentation_weight = 100;
  want.policy.sharing = {.max_jobs = 5, .max_time_sliced = 6, .mix_modes = true};
  want.policy.stop_overuse = true;
  want.policy.overuse_margin = Memory::mib(512);
  want.policy.lend_idle_after = 90min;
  want.policy.cut_gpus = {"GPU-1", "GPU-2"};
  want.policy.share_with_others = true;
  want.policy.allow_see_all = true;
  want.node_name = "lab1";
  want.labels = {{"disk", "nvme"}, {"zone", "b"}};
  want.policy.launch_backoff = 5s;
  want.policy.max_queued_per_user = 11;
  want.api_listen = "[::1]:9000";
  want.max_connections = 100;
  want.max_connections_per_user = 50;
  want.allowed_origins = {"https://board.lab:3000"};
  want.tls_listen = "0.0.0.0:8443";
  want.tls_certificate = "/etc/gflow/lab1.pem";
  want.tls_key = "/etc/gflow/lab1.key";
  want.client_ca = "/etc/gflow/ca.pem";
  want.host_names = {"lab1.example.org"};
  want.policy.allocation_ttl = 2h;
  want.metrics = {.dcgm = true, .jobs = true, .users = true, .hpc_job_mapping_dir = "/run/hpc"};
  want.otlp_endpoint = "http://lab:4318";
  want.policy.max_unreserved_per_user = 12;
  want.policy.gpu_quota = {.per_user = 4, .users = {{"alice", 8}, {"bob", 0}}};
  want.policy.max_stored_per_user = Memory::mib(64);
  want.policy.max_keys_per_user = 13;
  want.policy.max_dependencies_per_job = 8;
  want.policy.max_dependencies_per_user = 9;
  want.policy.max_dependencies = 10;
  want.cgroups = false;
  want.gpu_isolation = "landlock";
  want.ballast = Memory::gib(1);
  want.backup_interval = 10min;
  want.max_backups = 0;
  const Config read = read_config(file.path(), true).value();
  EXPECT_EQ(settings_of(read), want);
  for (const settings::Setting& setting : settings::table()) {
    EXPECT_NE(setting.write(read), setting.default_value())
        << "this test forgot " << setting.full_name();
    EXPECT_TRUE(read.origins.contains(setting.full_name())) << setting.full_name();
  }
}

TEST(Config, DocumentsPrintTheDefaults) {
  for (const char* name : {"/docs/configuration.md", "/docs/configuration.zh-CN.md"}) {
    const std::string text = os::read_file(std::string(GFLOW_SOURCE_DIR) + name).value();
    const std::size_t start = text.find("```toml\n") + 8;
    const ConfigFile file(text.substr(start, text.find("```", start) - start));
    const Config read = read_config(file.path(), true).value();
    EXPECT_EQ(settings_of(read), settings::Settings()) << name;
    for (const settings::Setting& setting : settings::table()) {
      EXPECT_TRUE(read.origins.contains(setting.full_name()))
          << name << " lacks " << setting.full_name();
    }
  }
}

struct Bad {
  const char* text;
  const char* said;
};

TEST(Config, SaysWhatIsWrongAndWhere) {
  const Bad rows[] = {
      {"[scheduler]\nbackfil_patience = '1h'",
       ".toml:2: there is no key 'scheduler.backfil_patience'"},
      {"[scheduler]\nbackfil_patience = '1h'", "did you mean 'scheduler.backfill_patience'?"},
      {"[scheduler]\nkeep_ended = 'soon'",
       ".toml:2: scheduler.keep_ended: 'soon' is not a duration"},
      {"[scheduler]\nmax_queued = 0", "'0' is not a number from 1 to"},
      {"[placement]\npolicy = 'best'", "'best' is not one of gflow, "},
      {"[placement]\ngpu_weight = -1", "'-1' is not a number from 0 to"},
      {"[sharing]\nmax_jobs = 0", "'0' is not a number from 1 to"},
      {"[node]\nlabels = 'fast'", "'fast' is not of the form KEY=VALUE"},
      {"[node]\nlabels = 'a=1,b=2,a=3'", "'a' is given twice"},
      {"[runner]\ncgroups = 'yes'", "'yes' is neither true nor false"},
      {"[runner]\ncgroups = [1]", "neither a text"},
      {"[runner]\ngpu_isolation = 'yes'", "'yes' is not one of auto, filter, landlock, none"},
      {"devices = 'auto'", "there is no key 'devices'; did you mean 'daemon.devices'?"},
      {"[scheduler]\nmax_jobs = 3", "did you mean 'sharing.max_jobs'?"},
      {"[scheduler]\npreempt = ['a']", "neither a text"},
      {"[priority]\nmax = 256", "'256' is not a number from 0 to 255"},
      {"[priority]\nusers = 'alice'", "'alice' is not of the form KEY=VALUE"},
      {"[limits.max_gpus_of]\nalice = -1", "'-1' of alice is not a number from 0 to 100000"},
      {"[priority.users]\nalice = 300", "'300' of alice is not a number from 0 to 255"},
      {"[runner]\nlaunch_backoff = '0s'", "'0s' is too short; the minimum is 1s"},
      {"[daemon", ".toml:1: "},
      {"\n[ # x", ".toml:2: not TOML: a name, a value or a bracket is missing"},
      {" [[ =", ".toml:1: not TOML"},
      {"[\n", ".toml:1: "},
      {"[access]\noperators = [\n 'a',\n}}\n[x]", ".toml:4: not TOML"},
      {"[telemetry]\notlp_endpoint = 'lab:4318'", "'lab:4318' is not the address of a collector"},
      {"[telemetry]\notlp_endpoint = 'https://lab'", "is not the address of a collector"},
      {"[metrics]\nhpc_job_mapping_dir = 'jobs'", "metrics.hpc_job_mapping_dir: "},
      {"[daemon]\nlog_level = 'loud'", "'loud' is not one of debug"},
  };
  for (const Bad& row : rows) {
    const ConfigFile file(row.text);
    const auto read = read_config(file.path(), true);
    ASSERT_FALSE(read) << row.text;
    EXPECT_EQ(read.error().code, Code::Usage);
    EXPECT_NE(read.error().message.find(row.said), std::string::npos) << read.error().message;
  }
}

TEST(Config, MissingFileIsTheDefaultsUnlessItWasNamed) {
  const Config read = read_config("/nonexistent/gflow.toml", false).value();
  EXPECT_EQ(settings_of(read), settings::Settings());
  EXPECT_TRUE(read.origins.empty());
  EXPECT_EQ(read_config("/nonexistent/gflow.toml", true).error().code, Code::NotFound);
}

TEST(Config, SaysWhereEachValueComesFrom) {
  const ConfigFile file("[scheduler]\nbackfill_patience = '1h'\n\npreempt = false\n");
  ASSERT_EQ(::setenv("GFLOW_SCHEDULER__PREEMPT", "true", 1), 0);
  const auto read = read_config(file.path(), true, {{"daemon.devices", "sim:1xH100"}});
  ASSERT_EQ(::unsetenv("GFLOW_SCHEDULER__PREEMPT"), 0);
  ASSERT_TRUE(read) << read.error().message;
  const std::map<std::string, std::string, std::less<>> want = {
      {"scheduler.backfill_patience", file.path() + ":2"},
      {"scheduler.preempt", "GFLOW_SCHEDULER__PREEMPT"},
      {"daemon.devices", "--devices"}};
  EXPECT_EQ(read->origins, want);
  EXPECT_EQ(read->devices, "sim:1xH100");
}

TEST(Config, TheEnvironmentWins) {
  const ConfigFile file("[scheduler]\nbackfill_patience = '1h'\n");
  ASSERT_EQ(::setenv("GFLOW_SCHEDULER__BACKFILL_PATIENCE", "5m", 1), 0);
  EXPECT_EQ(read_config(file.path(), true).value().policy.backfill_patience, 5min);
  ASSERT_EQ(::setenv("GFLOW_SCHEDULER__BACKFILL_PATIENCE", "never", 1), 0);
  const auto bad = read_config(file.path(), true);
  ASSERT_EQ(::unsetenv("GFLOW_SCHEDULER__BACKFILL_PATIENCE"), 0);
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().message.starts_with("GFLOW_SCHEDULER__BACKFILL_PATIENCE: "));
}

TEST(Config, EveryLineThatIsWrongIsNamed) {
  const Checked checked = check_gflow_toml(
      "[scheduler]\nbackfil_patience = '1h'\nmax_queued = 0\npreempt = true\n[nowhere]\nx = 1\n"
      "[daemon]\nport = 80\n",
      "f");
  const std::vector<std::string> want = {
      "f:2: there is no key 'scheduler.backfil_patience'; did you mean "
      "'scheduler.backfill_patience'?",
      "f:3: scheduler.max_queued: '0' is not a number from 1 to 100000000",
      "f:6: there is no key 'nowhere.x'; 'gctl config show' lists them"};
  std::vector<std::string> said;
  for (const Problem& problem : checked.problems) said.push_back(problem_text(problem));
  EXPECT_EQ(said, want);
  ASSERT_EQ(checked.notes.size(), 1U);
  EXPECT_TRUE(checked.notes.front().contains("daemon.port")) << checked.notes.front();
  const ConfigFile file("[scheduler]\nmax_queued = 0\nmax_ended = 0\n");
  const auto read = read_config(file.path(), true);
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().message.ends_with(" (1 more: see 'gctl config check')"))
      << read.error().message;
}

}  // namespace
}  // namespace gflow::config

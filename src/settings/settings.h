// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "base/result.h"
#include "core/principal.h"
#include "engine/event.h"

/// The table of settings: every key of gflow.toml, once. From it come the reader of the file and of
/// the environment, `gctl config show`, the policy of a snapshot, `gflow lab replay --set`, and
/// docs/configuration.md, which a test compares. A new setting is its field and its line in
/// table.cpp.
namespace gflow::settings {

/// [metrics]
struct Metrics {
  bool dcgm = false;                ///< GPUs under the names of DCGM, too
  bool jobs = false;                ///< a series for each running job
  bool users = false;               ///< and for each user who has GPUs
  std::string hpc_job_mapping_dir;  ///< "": none is written

  friend bool operator==(const Metrics&, const Metrics&) = default;
};

/// What the settings set. The defaults are here and nowhere else.
struct Settings {
  std::string devices = "auto";
  std::string socket;  ///< "" for the usual place
  std::string log_level = "info";
  bool cgroups = true;
  std::string gpu_isolation = "auto";  ///< [runner]
  Memory ballast = Memory::mib(16);
  std::chrono::seconds backup_interval{3600};
  std::size_t max_backups = 3;
  std::string node_name;      ///< of this machine; "": what the machine file or the host is called
  std::vector<Label> labels;  ///< of this machine, sorted
  RoleNames roles;            ///< [access]
  OthersJobs others_jobs = OthersJobs::All;   ///< [access]
  std::string api_listen = "localhost:8000";  ///< "": only the socket
  std::size_t max_connections = 4096;
  std::size_t max_connections_per_user = 256;
  Metrics metrics;
  std::string otlp_endpoint;                 ///< [telemetry]; "": no traces
  std::vector<std::string> allowed_origins;  ///< web pages that may ask
  std::string tls_listen;                    ///< for other machines; "": none
  std::string tls_certificate;               ///< "": one made by gflowd itself
  std::string tls_key;
  std::string client_ca;                ///< "": no certificates of clients
  std::vector<std::string> host_names;  ///< this machine is called by, besides its own
  engine::Policy policy;

  friend bool operator==(const Settings&, const Settings&) = default;
};

enum class Type {
  Text,
  Choice,    ///< one of Setting::choices
  Boolean,   ///< true, false
  Integer,   ///< within Setting::min and max
  Duration,  ///< as parse_duration(), and "0s"; bounds in seconds
  Size,      ///< as parse_memory()
  Address,   ///< as parse_loopback(), and ""
  List,      ///< "a, b"; in the file an array, too
  Map,       ///< "a=1, b=2"; in the file a table, too
};
[[nodiscard]] std::string_view type_name(Type type);  ///< "integer"

/// When a change of the file is taken up.
enum class Applies {
  Reload,   ///< `gflowd reload`, and at once
  Restart,  ///< `gflowd restart`; jobs keep running
};

/// What a setting is part of.
enum class Part {
  Daemon,  ///< this process and this machine
  Policy,  ///< what the engine decides by: part of a snapshot, and of what-ifs
};

/// Whom a value names.
enum class Naming {
  Unsaid,  ///< nobody, of a single value; a list and a map have to say it
  Nobody,  ///< what is no person: labels, projects
  Users,   ///< users, "alice=8, bob=0": told as far as one who asks may know of them (privacy.md)
  Staff,   ///< who is responsible here: told to everybody, so that it is known whom to ask
};

/// One setting. `write` and `read` are the value as text, as a person would type it; reading what
/// was written changes nothing.
struct Setting {
  std::string_view section;
  std::string_view name;
  Type type = Type::Text;
  Part part = Part::Daemon;
  Naming naming = Naming::Unsaid;
  Applies applies = Applies::Reload;
  std::string_view flag;  ///< of gflowd, without "--"; "" if there is none
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::vector<std::string> choices;
  std::string_view help;  ///< one line
  std::function<std::string(const Settings&)> write;
  /// Errors: Usage saying what the value may be.
  std::function<Result<void>(Settings&, const std::string&)> read;

  [[nodiscard]] std::string full_name() const;    ///< "scheduler.max_queued"
  [[nodiscard]] std::string environment() const;  ///< "GFLOW_SCHEDULER__MAX_QUEUED"
  [[nodiscard]] std::string default_value() const;
  [[nodiscard]] std::string range() const;  ///< "1 to 1000000"; "" if anything goes
};

/// All of them, section by section.
[[nodiscard]] std::span<const Setting> table();

/// By "section.name". Errors: Usage with the nearest there is.
[[nodiscard]] Result<const Setting*> find(std::string_view name);
/// The same, and by the name alone where only one section has it.
[[nodiscard]] Result<const Setting*> find_loosely(std::string_view name);

/// Whether the value of that setting names users, see Naming.
[[nodiscard]] bool names_users(std::string_view full_name);
/// Of such a value, "alice=8, bob=0", what is of those users.
[[nodiscard]] std::string only_of(std::string_view value,
                                  const std::function<bool(std::string_view user)>& is_kept);

/// A setting of the policy as text.
struct Value {
  std::string name;  ///< "section.name"
  std::string value;

  friend bool operator==(const Value&, const Value&) = default;
};
/// Every setting of the policy, in the order of the table.
[[nodiscard]] std::vector<Value> policy_values(const engine::Policy& policy);
/// Sets one, by its name as find_loosely() takes it. Errors: Usage; also for what is no part of the
/// policy.
[[nodiscard]] Result<void> set_policy_value(engine::Policy& policy, const Value& value);

/// The table as a gflow.toml of defaults with a comment on each line: what docs/configuration.md
/// prints.
[[nodiscard]] std::string default_file();

}  // namespace gflow::settings

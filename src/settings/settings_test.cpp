// SPDX-License-Identifier: Apache-2.0
#include "settings/settings.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace gflow::settings {
namespace {

/// A value of the setting that is not its default.
std::string another_value(const Setting& setting) {
  const std::string usual = setting.default_value();
  if (setting.full_name() == "daemon.socket") return "/other";
  const bool is_path = setting.name == "client_ca" || setting.name.starts_with("tls_certificate") ||
                       setting.name == "tls_key";
  if (is_path) return "/other";
  switch (setting.type) {
    case Type::Boolean:
      return usual == "true" ? "false" : "true";
    case Type::Integer:
      return std::to_string(usual == std::to_string(setting.max) ? setting.min : setting.max);
    case Type::Duration:
      return "1h1m1s";
    case Type::Size:
      return "3G";
    case Type::Choice:
      return setting.choices.back();
    case Type::Map:
      return "a=1";
    case Type::Address:
      return "[::1]:0";
    case Type::List:
      if (setting.name == "cut_gpus") return "GPU-other";
      return setting.name == "allowed_origins" ? "https://other" : "other";
    case Type::Text:
      if (setting.name == "hpc_job_mapping_dir") return "/other";
      if (setting.name == "otlp_endpoint") return "http://other";
      return "other";
  }
  return "other";
}

TEST(Settings, ReadWhatTheyWrite) {
  for (const Setting& setting : table()) {
    Settings settings;
    const auto read = setting.read(settings, another_value(setting));
    ASSERT_TRUE(read) << setting.full_name() << ": " << read.error().message;
    EXPECT_NE(settings, Settings()) << setting.full_name() << " sets nothing";
    Settings again;
    ASSERT_TRUE(setting.read(again, setting.write(settings))) << setting.full_name();
    EXPECT_EQ(again, settings) << setting.full_name();
    ASSERT_TRUE(setting.read(again, setting.default_value())) << setting.full_name();
    EXPECT_EQ(again, Settings()) << setting.full_name();
  }
}

TEST(Settings, HaveANameOfTheirOwnAndHelp) {
  std::set<std::string> names;
  std::set<std::string> variables;
  for (const Setting& setting : table()) {
    EXPECT_TRUE(names.insert(setting.full_name()).second) << setting.full_name();
    EXPECT_TRUE(variables.insert(setting.environment()).second) << setting.environment();
    EXPECT_FALSE(setting.help.empty()) << setting.full_name();
    EXPECT_EQ(find(setting.full_name()).value(), &setting);
  }
}

TEST(Settings, AreFoundByTheNearestName) {
  EXPECT_EQ(find("scheduler.preemt").error().message,
            "there is no key 'scheduler.preemt'; did you mean 'scheduler.preempt'?");
  EXPECT_EQ(find("node.max_jobs").error().message,
            "there is no key 'node.max_jobs'; did you mean 'sharing.max_jobs'?");
  EXPECT_EQ(find_loosely("max_jobs").value(), find("sharing.max_jobs").value());
}

TEST(Settings, OfThePolicyGoIntoASnapshotAndBack) {
  engine::Policy policy;
  for (const Setting& setting : table()) {
    if (setting.part != Part::Policy) continue;
    ASSERT_TRUE(set_policy_value(policy, {setting.full_name(), another_value(setting)}));
  }
  engine::Policy again;
  for (const Value& value : policy_values(policy)) ASSERT_TRUE(set_policy_value(again, value));
  EXPECT_EQ(again, policy);
  EXPECT_EQ(again.placement_options.gpu_weight, policy.placement_options.gpu_weight);
}

TEST(Settings, PrioritiesOfUsersAreNoPartOfASnapshot) {
  engine::Policy policy;
  policy.priority.users["alice"] = 100;
  for (const Value& value : policy_values(policy)) {
    EXPECT_EQ(value.value.find("alice"), std::string::npos) << value.name;
  }
  EXPECT_EQ(set_policy_value(policy, {"daemon.socket", "/x"}).error().message,
            "daemon.socket is not part of the policy");
}

/// What has more than one value may be about people: none is added without a thought of them.
TEST(Settings, SayWhomAListNames) {
  for (const Setting& setting : table()) {
    const bool has_many = setting.type == Type::List || setting.type == Type::Map;
    EXPECT_EQ(setting.naming != Naming::Unsaid, has_many)
        << setting.full_name() << ": say whom it names (Naming), or nobody";
    if (setting.naming == Naming::Users) {
      EXPECT_EQ(setting.type, Type::Map) << "see only_of()";
    }
  }
}

TEST(Settings, OfUsersAreToldOfSomeOfThem) {
  EXPECT_TRUE(names_users("limits.max_gpus_of") && names_users("priority.users"));
  EXPECT_FALSE(names_users("access.operators") || names_users("limits.max_gpus_per_user"));
  const auto only_bob = [](std::string_view user) { return user == "bob"; };
  EXPECT_EQ(only_of("alice=8, bob=0,bobby=1", only_bob), "bob=0");
  EXPECT_EQ(only_of("", only_bob), "");
}

TEST(Settings, AreWhatTheDocumentPrints) {
  std::ifstream file(GFLOW_SOURCE_DIR "/docs/configuration.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string wanted = "```toml\n" + default_file() + "```\n";
  EXPECT_NE(text.str().find(wanted), std::string::npos) << "docs/configuration.md should have:\n"
                                                        << wanted;
}

}  // namespace
}  // namespace gflow::settings

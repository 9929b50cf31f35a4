// SPDX-License-Identifier: Apache-2.0
#include "claims/cel.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gflow::claims {
namespace {

CelValue device() {
  CelFields gpu = {{"model", CelValue{std::string("NVIDIA H200")}},
                   {"index", CelValue{std::int64_t{3}}},
                   {"healthy", CelValue{true}},
                   {"driverVersion", CelValue{*read_version("570.86.10")}}};
  CelFields attributes = {{"gpu.example.com", map_of(gpu)}};
  CelFields memory = {{"memory", CelValue{*read_amount("80Gi")}}};
  CelFields capacity = {{"gpu.example.com", map_of(memory)}};
  return map_of({{"driver", CelValue{std::string("gpu.example.com")}},
                 {"attributes", map_of(attributes, true)},
                 {"capacity", map_of(capacity, true)},
                 {"allowMultipleAllocations", CelValue{false}}});
}

/// "true", "false", or what is wrong.
std::string said(const std::string& text) {
  const auto expression = CelExpression::read(text);
  if (!expression) return expression.error().message;
  long steps = 0;
  const auto holds = expression->holds(device(), steps);
  if (!holds) return "error: " + holds.error().message;
  return *holds ? "true" : "false";
}

struct Case {
  std::string text;
  std::string said;
};

void check(const std::vector<Case>& cases) {
  for (const Case& one : cases) EXPECT_EQ(said(one.text), one.said) << one.text;
}

constexpr const char* kGpu = R"(device.attributes["gpu.example.com"])";

TEST(Cel, SaysOfDevicesWhatTheirAttributesDo) {
  const std::string gpu = kGpu;
  check({{R"(device.driver == "gpu.example.com")", "true"},
         {R"(device.driver == 'nic.example.com' || device.driver != "x")", "true"},
         {gpu + R"(.model.startsWith("NVIDIA"))", "true"},
         {gpu + R"(.model.lowerAscii().contains("h200"))", "true"},
         {gpu + R"(.model.upperAscii().endsWith("H200"))", "true"},
         {gpu + ".index >= 2 && " + gpu + ".index < 4", "true"},
         {gpu + ".index % 2 == 1", "true"},
         {gpu + ".index + 1 == 4 && " + gpu + ".index - 4 == -1", "true"},
         {gpu + ".index in [1, 2, 3]", "true"},
         {gpu + ".healthy ? " + gpu + ".index == 3 : false", "true"},
         {"!" + gpu + ".healthy", "false"},
         {"device.allowMultipleAllocations", "false"},
         {R"("gpu.example.com" in device.attributes)", "true"},
         {R"("nic.example.com" in device.attributes)", "false"},
         {R"("index" in )" + gpu, "true"},
         {"has(" + gpu + ".index)", "true"},
         {"has(" + gpu + ".nothing)", "false"},
         {R"(has(device.attributes["nic.example.com"].speed))", "false"},
         {"cel.bind(gpu, " + gpu + R"(, gpu.index == 3 && gpu.healthy))", "true"},
         {gpu + R"(.model == "NVIDIA H200" // a comment)", "true"}});
}

TEST(Cel, HasErrorsWhereKubernetesHasThem) {
  const std::string gpu = kGpu;
  check({{gpu + ".nothing == 3", "error: no such key: nothing"},
         {R"(device.attributes["nic.example.com"].speed > 3)", "error: no such key: speed"},
         // What decides does, whatever is wrong beside it.
         {gpu + ".nothing == 3 && false", "false"},
         {"false && " + gpu + ".nothing == 3", "false"},
         {gpu + ".nothing == 3 || true", "true"},
         {gpu + ".nothing == 3 || false", "error: no such key: nothing"},
         {gpu + ".model > 3", "error: '>' is not for a value of type string"},
         {gpu + ".model == 3", "false"},
         {gpu + ".index / 0 == 1", "error: something is divided by zero"},
         {"9223372036854775807 + 1 > 0", "error: a number is too large"},
         {"-9223372036854775808 < 0", "true"},
         {"[1, 2][2] == 1", "error: a list is not so long"},
         {"device.driver", "error: it is string, not bool"},
         {"nothing == 3", "error: there is no 'nothing'"}});
}

TEST(Cel, ComparesQuantitiesAndVersions) {
  const std::string memory = R"(device.capacity["gpu.example.com"].memory)";
  const std::string version = std::string(kGpu) + ".driverVersion";
  check({{memory + R"(.isGreaterThan(quantity("40Gi")))", "true"},
         {memory + R"(.isLessThan(quantity("81920Mi")))", "false"},
         {memory + R"(.compareTo(quantity("81920Mi")) == 0)", "true"},
         {memory + R"(.compareTo(quantity("80Gi")) >= 0)", "true"},
         {memory + R"( == quantity("81920Mi"))", "true"},
         {memory + R"(.sub(quantity("1Gi")).isLessThan(quantity("80Gi")))", "true"},
         {memory + ".asInteger() == 85899345920", "true"},
         {memory + R"( > quantity("40Gi"))", "error: '>' is not for a value of type quantity"},
         {R"(quantity("8 Gi").isInteger())", "error: '8 Gi' is no quantity"},
         {R"(isQuantity("1.5Gi") && !isQuantity("1Kib"))", "true"},
         {R"(quantity("0.5").isInteger())", "false"},
         {version + R"(.isGreaterThan(semver("570.86.9")))", "true"},
         {version + R"(.compareTo(semver("570.86.10")) == 0)", "true"},
         {version + ".major() == 570", "true"},
         {R"(semver("1.0.0-rc.2").isLessThan(semver("1.0.0-rc.10")))", "true"},
         {R"(semver("1.0.0-rc.2").isLessThan(semver("1.0.0")))", "true"},
         {R"(semver("1.0.0-1").isLessThan(semver("1.0.0-a")))", "true"},
         {R"(isSemver("1.0") || isSemver("01.0.0") || isSemver("v1.0.0"))", "false"}});
}

TEST(Cel, LooksUpWhatMayNotBeThere) {
  const std::string gpu = kGpu;
  check({{gpu + ".?index.orValue(0) == 3", "true"},
         {gpu + ".?nothing.orValue(7) == 7", "true"},
         {gpu + ".?nothing.hasValue()", "false"},
         {gpu + R"([?"index"].value() == 3)", "true"},
         {gpu + ".?nothing.more.hasValue()", "false"},
         {gpu + ".?nothing.value() == 3", "error: an optional value is not there"},
         {"optional.none().orValue(true)", "true"}});
}

TEST(Cel, GoesThroughLists) {
  check({{"[1, 2, 3].exists(x, x == 2)", "true"},
         {"[1, 2, 3].all(x, x > 1)", "false"},
         {"[1, 0].exists(x, 1 / x == 1)", "true"},
         {"[1, 2, 3].filter(x, x > 1).size() == 2", "true"},
         {"[1, 2].map(x, x * 2) == [2, 4]", "true"},
         {"[1, 2, 3].exists_one(x, x > 2)", "true"},
         {"size('h\\u00fcllo') == 5", "true"},
         {"([1] + [2])[1] == 2", "true"},
         {"1 == 1.0 && 2u > 1", "true"}});
}

TEST(Cel, NamesWhatItCannotRead) {
  check({{R"(device.driver.matches("^gpu"))", "gflow-kube cannot read '.matches(...)'"},
         {"cel.block([1], true)", "gflow-kube cannot read 'cel.block(...)'"},
         {"nothing(3)", "gflow-kube cannot read 'nothing(...)'"},
         {"{'a': 1}.a == 1", "gflow-kube cannot read '{'"},
         {"b'12' == b'12'", "gflow-kube cannot read 'b'12' == b'12''"},
         {"true &", "gflow-kube cannot read '&'"},
         {"true &&", "gflow-kube cannot read 'the end'"},
         {"(true", "gflow-kube cannot read the end: ')' is missing"},
         {"true true", "gflow-kube cannot read 'true'"},
         {"'open", "gflow-kube cannot read ''open'"},
         {"", "gflow-kube cannot read 'the end'"},
         {"has(device)", "gflow-kube cannot read 'has(...)'"},
         {"9223372036854775808 > 0", "gflow-kube cannot read '9223372036854775808'"}});
}

std::string times(int n, const std::string& text) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

TEST(Cel, EndsWhateverItIsGiven) {
  const std::string deep = times(3000, "(") + "true" + times(3000, ")");
  EXPECT_EQ(said(deep), "gflow-kube cannot read 'so many parts in parts'");
  EXPECT_EQ(said(times(3000, "-") + "1 == 1"), "true");
  EXPECT_EQ(said(times(1000, "!") + "true"), "true");
  EXPECT_EQ(said("true" + times(1000, "&& true")), "true");
  EXPECT_EQ(said("1" + times(1000, "+1") + " > 0"),
            "gflow-kube cannot read 'so many parts in parts'");
  EXPECT_EQ(said(times(11000, " ")), "gflow-kube cannot read 'so long an expression'");
  const std::string list = "[" + times(99, "1,") + "1]";
  const std::string slow = list + ".all(a, " + list + ".all(b, " + list + ".all(c, true)))";
  EXPECT_EQ(said(slow), "error: the expression takes too long to work out");
  EXPECT_EQ(said(slow + " || true"), "error: the expression takes too long to work out");
  std::string twice = "x + x";
  for (int i = 0; i < 40; ++i) twice = "cel.bind(x, " + std::string("x + x") + ", " + twice + ")";
  EXPECT_EQ(said("cel.bind(x, 'ab', " + twice + ") == ''"),
            "error: the expression takes too long to work out");
}

TEST(ClaimAmount, IsReadAndWrittenAsKubernetesDoes) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"0", "0"},
                                                                  {"8Gi", "8Gi"},
                                                                  {"8192Mi", "8Gi"},
                                                                  {"1.5Gi", "1536Mi"},
                                                                  {"1500m", "1500m"},
                                                                  {"1e3", "1000"},
                                                                  {"-2", "-2"},
                                                                  {"1k", "1000"},
                                                                  {"0.1n", "1n"},
                                                                  {"0.0000015", "1500n"},
                                                                  {"1e60", "9223372036854775807"}};
  for (const auto& [text, again] : cases) {
    const auto amount = read_amount(text);
    ASSERT_TRUE(amount) << text;
    EXPECT_EQ(to_text(*amount), again) << text;
  }
  for (const char* none : {"", "x", "1 Gi", "1Kib", "1.2.3", "--1", " 1", "Gi"}) {
    EXPECT_FALSE(read_amount(none)) << none;
  }
  EXPECT_EQ(rounded(*read_amount("1500m")), 2);
  EXPECT_EQ(rounded(*read_amount("-1500m")), -2);
}

TEST(Cel, CountsTextThatIsCopied) {
  std::string many = "1";
  for (int i = 2; i <= 30; ++i) many += "," + std::to_string(i);
  const auto with = [&many](std::size_t size) {
    return "cel.bind(x, '" + std::string(size, 'x') + "', [" + many + "].all(a, [" + many +
           "].all(b, x != 'y')))";
  };
  EXPECT_EQ(said(with(10)), "true");
  EXPECT_TRUE(said(with(8000)).starts_with("error: ")) << said(with(8000)).substr(0, 200);
}

}  // namespace
}  // namespace gflow::claims

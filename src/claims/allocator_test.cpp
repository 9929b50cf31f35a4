// SPDX-License-Identifier: Apache-2.0
#include "claims/allocator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace gflow::claims {
namespace {

Amount amount(const std::string& text) { return *read_amount(text); }

/// Devices of one driver on node n1, and what claims have of them.
class ClaimAllocator : public testing::Test {
 protected:
  Device gpu(const std::string& name, const std::string& memory) {
    Device made;
    made.name = name;
    made.attributes["model"] = {Attribute::Kind::String, "H200"};
    made.capacity["memory"] = {amount(memory), {}};
    return made;
  }
  Device shared(const std::string& name, const std::string& memory) {
    Device made = gpu(name, memory);
    made.is_shared = true;
    return made;
  }
  void pool(const std::string& name,
            std::vector<Device> devices,
            const std::string& node = "n1",
            std::int64_t slices = 1) {
    Slice made;
    made.name = made.uid = fmt::format("{}-{}", name, slices_.size());
    made.driver = "gpu.example.com";
    made.pool = name;
    made.generation = 1;
    made.slices = slices;
    made.where = Where{.node = node};
    made.devices = std::move(devices);
    made.counters = std::exchange(counters, {});
    for (Device& one : made.devices) {
      one.serial = ++serial_;
      one.value = device_value(made.driver, one);
    }
    slices_.push_back(std::make_shared<const Slice>(std::move(made)));
  }
  static Request request(const std::string& name = "gpus", std::int64_t count = 1) {
    return {.name = name, .device_class = "gpu", .count = count};
  }
  static ClaimSpec claim(std::vector<Request> requests) {
    ClaimSpec made;
    for (Request& one : requests) made.requests.push_back({std::move(one)});
    return made;
  }
  Result<std::vector<Given>> ask(const std::vector<ClaimSpec>& specs) {
    std::vector<Asked> asked;
    for (const ClaimSpec& one : specs) asked.push_back({fmt::format("c{}", asked.size()), &one});
    const std::vector<Pool> pools = gather_pools(slices_);
    std::vector<const Pool*> here;
    for (const Pool& one : pools) here.push_back(&one);
    const auto is_here = [](const Where& where) {
      return where.node == "n1" || where.is_everywhere;
    };
    return allocate({here, usage, classes, matcher, is_here}, asked);
  }
  /// "REQUEST=DEVICE ..." of all claims, or why not; what is given is had from then on.
  std::string had(const std::vector<ClaimSpec>& specs) {
    const auto given = ask(specs);
    if (!given) return given.error().message;
    std::vector<std::string> words;
    for (const Given& one : *given) {
      for (const GivenDevice& device : one.devices) {
        std::string consumed;
        for (const auto& [name, much] : device.consumed) {
          consumed += fmt::format(":{}={}", name, to_text(much));
        }
        words.push_back(fmt::format("{}={}{}", device.request, device.id.device, consumed));
        usage.add(device);
      }
    }
    return fmt::format("{}", fmt::join(words, " "));
  }

  Usage usage;
  std::map<std::string, DeviceClass> classes = {
      {"gpu", {"u", "gpu", {R"(device.driver == "gpu.example.com")"}, {R"({"opaque":"c"})"}}}};
  Matcher matcher;
  std::map<std::string, Amounts> counters;  ///< of the next pool

 private:
  std::vector<SharedSlice> slices_;
  std::uint64_t serial_ = 0;
};

constexpr const char* kFew = "Insufficient devices of class gpu for resourceclaim c0";

TEST_F(ClaimAllocator, GivesEachDeviceOnce) {
  pool("p", {gpu("a", "80Gi"), gpu("b", "80Gi"), gpu("c", "80Gi")});
  EXPECT_EQ(had({claim({request("two", 2)})}), "two=a two=b");
  EXPECT_EQ(had({claim({request("two", 2)})}), kFew);
  EXPECT_EQ(had({claim({request("one")})}), "one=c");
  EXPECT_EQ(had({claim({request("one")})}), kFew);
}

TEST_F(ClaimAllocator, GivesSeveralClaimsAllOrNothing) {
  pool("p", {gpu("a", "80Gi"), gpu("b", "80Gi")});
  EXPECT_EQ(had({claim({request("x", 2)}), claim({request("y")})}),
            "no devices go together for resourceclaim c1");
  EXPECT_EQ(had({claim({request("x")}), claim({request("y")})}), "x=a y=b");
}

TEST_F(ClaimAllocator, ChoosesWhatLeavesLeast) {
  pool("p", {gpu("large", "80Gi"), gpu("small", "20Gi"), gpu("middle", "40Gi")});
  Request wish = request("x");
  wish.selectors = {
      R"(device.capacity["gpu.example.com"].memory.compareTo(quantity("30Gi")) >= 0)"};
  EXPECT_EQ(had({claim({wish})}), "x=middle");
  EXPECT_EQ(had({claim({request("x")})}), "x=small");
}

TEST_F(ClaimAllocator, TellsWhatIsWrongWithASelector) {
  pool("p", {gpu("a", "80Gi")});
  Request wish = request("x");
  wish.selectors = {R"(device.attributes["gpu.example.com"].nothing == 3)"};
  EXPECT_EQ(had({claim({wish})}), "request x: selector 1: no such key: nothing");
  wish.selectors = {"true", R"(device.driver.matches("x"))"};
  EXPECT_EQ(had({claim({wish})}), "request x: selector 2: gflow-kube cannot read '.matches(...)'");
  wish.selectors.clear();
  wish.device_class = "nothing";
  EXPECT_EQ(had({claim({wish})}), "deviceclass nothing not found");
}

TEST_F(ClaimAllocator, GivesPartsOfSharedDevices) {
  pool("p", {shared("a", "80Gi"), shared("b", "80Gi")});
  Request wish = request("x");
  wish.capacity["memory"] = amount("30Gi");
  EXPECT_EQ(had({claim({wish})}), "x=a:memory=30Gi");
  EXPECT_EQ(had({claim({wish})}), "x=a:memory=30Gi");
  EXPECT_EQ(had({claim({wish})}), "x=b:memory=30Gi");
  wish.capacity["memory"] = amount("20Gi");  // the rest of one exactly
  EXPECT_EQ(had({claim({wish})}), "x=a:memory=20Gi");
  wish.capacity["memory"] = amount("51Gi");
  EXPECT_EQ(had({claim({wish})}), kFew);
  EXPECT_EQ(had({claim({request("all")})}), kFew) << "who asks for no part has all of it";
  wish.capacity = {{"cores", amount("1")}};
  EXPECT_EQ(had({claim({wish})}), kFew) << "which it has not";
}

TEST_F(ClaimAllocator, RoundsPartsAsThePolicySays) {
  struct Case {
    std::string asked;
    RequestPolicy policy;
    std::string consumed;
  };
  const RequestPolicy range{
      amount("2Gi"), RequestPolicy::Range{amount("1Gi"), amount("40Gi"), amount("1Gi")}, {}};
  const RequestPolicy values{{}, {}, {amount("10Gi"), amount("20Gi")}};
  const std::vector<Case> cases = {{"1", range, "1Gi"},
                                   {"1536Mi", range, "2Gi"},
                                   {"40Gi", range, "40Gi"},
                                   {"41Gi", range, ""},
                                   {"", range, "2Gi"},
                                   {"3Gi", values, "10Gi"},
                                   {"11Gi", values, "20Gi"},
                                   {"21Gi", values, ""},
                                   {"3Gi", {}, "3Gi"},
                                   {"", {}, "80Gi"}};
  for (const Case& one : cases) {
    const Capacity capacity{amount("80Gi"), one.policy};
    const auto asked = one.asked.empty() ? std::nullopt : std::optional(amount(one.asked));
    const Amount consumed = consumed_of(asked, capacity);
    const bool is_allowed_so = is_allowed(consumed, capacity);
    EXPECT_EQ(is_allowed_so ? to_text(consumed) : "", one.consumed) << one.asked;
  }
}

TEST_F(ClaimAllocator, GivesAllOrNone) {
  pool("p", {gpu("a", "80Gi"), gpu("b", "80Gi")});
  pool("elsewhere", {gpu("z", "80Gi")}, "n2");
  Request wish = request("x");
  wish.is_all = true;
  EXPECT_EQ(had({claim({wish})}), "x=a x=b");
  EXPECT_EQ(had({claim({wish})}), "no devices go together for resourceclaim c0");
  wish.selectors = {"false"};
  EXPECT_EQ(had({claim({wish})}), kFew);
}

TEST_F(ClaimAllocator, TakesNothingOfPoolsThatAreNotWhole) {
  pool("p", {gpu("a", "80Gi")}, "n1", 2);
  EXPECT_EQ(had({claim({request()})}), kFew);
  Request wish = request("x");
  wish.is_all = true;
  EXPECT_EQ(had({claim({wish})}), "pool p had not all of its slices there yet");
  pool("p", {gpu("b", "80Gi")}, "n1", 2);
  EXPECT_EQ(had({claim({wish})}), "x=a x=b");
}

TEST_F(ClaimAllocator, TakesAnotherAlternative) {
  pool("p", {gpu("a", "20Gi"), gpu("b", "20Gi")});
  Request first = request("gpu/large");
  first.selectors = {
      R"(device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0)"};
  ClaimSpec spec;
  spec.requests = {{first, request("gpu/two", 2), request("gpu/one")}};
  spec.config = {{{"gpu/two"}, R"({"opaque":"t"})"}, {{"gpu/one"}, R"({"opaque":"o"})"}};
  const auto given = ask({spec});
  ASSERT_TRUE(given);
  const auto& config = given->front().config;
  ASSERT_EQ(config.size(), 2U);
  EXPECT_TRUE(config[0].is_of_class);
  EXPECT_EQ(config[0].requests, std::vector<std::string>{"gpu/two"});
  EXPECT_EQ(config[1].text, R"({"opaque":"t"})");
  EXPECT_EQ(had({spec}), "gpu/two=a gpu/two=b");
  EXPECT_EQ(had({spec}), kFew);
}

TEST_F(ClaimAllocator, HoldsConstraints) {
  std::vector<Device> devices;
  for (const auto& [name, numa] : {std::pair{"a", "0"}, {"b", "1"}, {"c", "1"}}) {
    devices.push_back(gpu(name, "80Gi"));
    devices.back().attributes["numa"] = {Attribute::Kind::Int, numa};
  }
  devices.push_back(gpu("d", "80Gi"));
  pool("p", devices);
  ClaimSpec same = claim({request("x"), request("y")});
  same.constraints = {{false, "gpu.example.com/numa", {}}};
  const auto given = ask({same});
  ASSERT_TRUE(given);
  EXPECT_EQ(given->front().devices[0].id.device, "b");
  EXPECT_EQ(given->front().devices[1].id.device, "c");
  ClaimSpec other = claim({request("x", 2)});
  other.constraints = {{true, "gpu.example.com/numa", {"x"}}};
  EXPECT_EQ(had({other}), "x=a x=b");
  EXPECT_EQ(had({same}), "no devices go together for resourceclaim c0");
  ClaimSpec of_one = claim({request("x"), request("y")});
  of_one.constraints = {{false, "gpu.example.com/numa", {"x"}}};
  EXPECT_EQ(had({of_one}), "x=c y=d");
}

TEST_F(ClaimAllocator, MindsTaints) {
  Device bad = gpu("bad", "80Gi");
  bad.taints = {{"health", "poor", "NoSchedule"}};
  Device noted = gpu("noted", "80Gi");
  noted.taints = {{"health", "fair", "None"}};
  pool("p", {bad, noted});
  EXPECT_EQ(had({claim({request("x")})}), "x=noted");
  EXPECT_EQ(had({claim({request("x")})}), kFew);
  Request wish = request("x");
  wish.tolerations = {{"health", "Exists", "", ""}};
  EXPECT_EQ(had({claim({wish})}), "x=bad");
}

TEST_F(ClaimAllocator, CountsWhatPartsOfADeviceTake) {
  const auto part = [this](const std::string& name, const std::string& memory) {
    Device made = gpu(name, memory);
    made.counters["gpu0"]["memory"] = amount(memory);
    return made;
  };
  counters["gpu0"]["memory"] = amount("80Gi");
  pool("p", {part("whole", "80Gi"), part("half", "40Gi"), part("other-half", "40Gi")});
  EXPECT_EQ(had({claim({request("x", 3)})}), "no devices go together for resourceclaim c0");
  EXPECT_EQ(had({claim({request("x")})}), "x=half");
  EXPECT_EQ(had({claim({request("x")})}), "x=other-half");
  EXPECT_EQ(had({claim({request("x")})}), kFew);
}

TEST_F(ClaimAllocator, GivesUpInTime) {
  std::vector<Device> devices;
  for (int i = 0; i < 128; ++i) {
    devices.push_back(gpu(fmt::format("d{}", i), "80Gi"));
    devices.back().attributes["x"] = {Attribute::Kind::Int, std::to_string(i / 2)};
  }
  pool("p", devices);
  ClaimSpec spec = claim({request("x", 30)});
  spec.constraints = {{true, "gpu.example.com/x", {}}, {false, "gpu.example.com/model", {}}};
  EXPECT_TRUE(ask({spec}));
  ClaimSpec never = claim({request("x", 16), request("y", 16)});
  never.constraints = {{true, "gpu.example.com/x", {"x"}}, {false, "gpu.example.com/x", {"y"}}};
  EXPECT_EQ(had({never}), "too many ways to combine devices were tried in vain");
}

TEST_F(ClaimAllocator, NamesWhatItDoesNotAllocate) {
  ClaimSpec spec = claim({request()});
  spec.trouble = "it asks for adminAccess";
  EXPECT_EQ(had({spec}), "it asks for adminAccess");
}

TEST_F(ClaimAllocator, MakesNoRoomOfLessThanNothing) {
  pool("p", {shared("a", "80Gi")});
  Request less = request();
  less.capacity["memory"] = amount("-70Gi");
  EXPECT_EQ(had({claim({less})}), "Insufficient devices of class gpu for resourceclaim c0");
  GivenDevice theirs{.request = "r", .id = {"gpu.example.com", "p", "a"}, .is_shared = true};
  theirs.consumed["memory"] = amount("-70Gi");
  usage.add(theirs);
  Request most = request();
  most.capacity["memory"] = amount("80Gi");
  EXPECT_EQ(had({claim({most})}), "gpus=a:memory=80Gi");
  EXPECT_EQ(had({claim({most})}), "Insufficient devices of class gpu for resourceclaim c0");
  usage.remove(theirs);
  EXPECT_EQ(had({claim({most})}), "Insufficient devices of class gpu for resourceclaim c0");
}

TEST_F(ClaimAllocator, KeepsWholeWhatOthersHavePartsOf) {
  pool("p", {gpu("a", "80Gi"), gpu("b", "80Gi")});
  GivenDevice part{.request = "r", .id = {"gpu.example.com", "p", "a"}, .is_shared = true};
  part.consumed["memory"] = amount("10Gi");
  usage.add(part);
  EXPECT_FALSE(usage.is_double(part.id));
  Request some = request();
  some.capacity["memory"] = amount("20Gi");
  EXPECT_EQ(had({claim({some})}), "gpus=b");
  EXPECT_EQ(had({claim({some})}), "Insufficient devices of class gpu for resourceclaim c0");
  part.is_shared = false;
  usage.add(part);
  EXPECT_TRUE(usage.is_double(part.id));
}

TEST_F(ClaimAllocator, TriesTheNextAlternativeAfterOneThatIsTooHard) {
  std::vector<Device> devices;
  for (int i = 0; i < 33; ++i) {
    devices.push_back(gpu(fmt::format("g{:02}", i), "80Gi"));
    devices.back().attributes["model"].text = fmt::format("m{}", i % 3);
  }
  pool("p", std::move(devices));
  ClaimSpec spec;
  spec.requests.push_back({request("gpus/hard", 12), request("gpus/easy", 1)});
  spec.constraints.push_back({false, "gpu.example.com/model", {"gpus"}});
  EXPECT_EQ(had({spec}), "gpus/easy=g00");
  spec.requests[0].pop_back();
  EXPECT_EQ(had({spec}), "too many ways to combine devices were tried in vain");
}

TEST_F(ClaimAllocator, PassesOverWhatItCannotReadWhereItIsNotTakenAnyway) {
  Device unread = gpu("a", "80Gi");
  unread.trouble = "attribute x cannot be read";
  unread.serial = 1;
  unread.value = device_value("nic.example.com", unread);
  const auto by_others = matcher.hold({R"(device.driver == "gpu.example.com")"}, unread);
  ASSERT_TRUE(by_others);
  EXPECT_FALSE(*by_others);
  const auto by_its_own = matcher.hold({R"(device.driver == "nic.example.com")"}, unread);
  ASSERT_FALSE(by_its_own);
  EXPECT_EQ(by_its_own.error().message, "selector 1: attribute x cannot be read");
}

TEST_F(ClaimAllocator, GivesUpSelectorsThatTakeTooLong) {
  std::string many = "1";
  for (int i = 2; i <= 100; ++i) many += "," + std::to_string(i);
  Request slow = request();
  slow.selectors = {fmt::format("[{0}].all(a, [{0}].all(b, true))", many)};
  std::vector<Device> devices;
  for (int i = 0; i < 200; ++i) devices.push_back(gpu(fmt::format("g{:03}", i), "80Gi"));
  pool("p", std::move(devices));
  EXPECT_NE(had({claim({slow})}).find("it takes too long for all devices"), std::string::npos)
      << had({claim({slow})});
}

}  // namespace
}  // namespace gflow::claims

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/json.h"
#include "api/json_value.h"
#include "api/samples_test.h"

namespace gflow::api {
namespace {

struct Refusal {
  std::string json;
  std::string message;  ///< how it begins
};

std::string item(const std::string& spec, const std::string& payload = R"({"argv":["true"]})") {
  return R"({"items":[{"spec":{"work_dir":"/",)" + spec + R"(},"payload":)" + payload + "}]}";
}

TEST(JsonRefuse, SubmissionsWithAPointerToTheField) {
  const std::vector<Refusal> cases = {
      {"{}", "/items: is missing"},
      {R"({"items":[]})", "/items: must have at least one job"},
      {R"({"items":{}})", "/items: must be an array, not an object"},
      {"[]", "must be an object, not an array"},
      {R"({"items":[7]})", "/items/0: must be an object, not 7"},
      {R"({"items":[{"spec":{"work_dir":"/"}}]})", "/items/0/payload: is missing"},
      {item(R"("priority":300)"),
       "/items/0/spec/priority: must be a whole number from 0 to 255, not 300"},
      {item(R"("priority":-1)"), "/items/0/spec/priority: must be a whole number from 0 to 255"},
      {item(R"("priority":1.5)"), "/items/0/spec/priority: must be a whole number"},
      {item(R"("priority":256.0)"), "/items/0/spec/priority: must be a whole number from 0 to 255"},
      {item(R"("priority":1e300)"), "/items/0/spec/priority: must be a whole number"},
      {item(R"("request":{"memory_bytes":18014398509481984.0})"),
       "/items/0/spec/request/memory_bytes: must be a whole number"},
      {item(R"("priority":"9")"),
       "/items/0/spec/priority: must be a whole number from 0 to 255, not '9'"},
      {item(R"("priority":99999999999999999999999)"), "/items/0/spec/priority: must be a whole"},
      {item(R"("prioritty":9)"),
       "/items/0/spec/prioritty: there is no such field; did you mean 'priority'?"},
      {item(R"("user":{"uid":0,"name":"root"})"), "/items/0/spec/user: there is no such field"},
      {item(R"("a~b/c":9)"), "/items/0/spec/a~0b~1c: there is no such field; there are name, "},
      {item(R"("request":{"gpus":-2})"),
       "/items/0/spec/request/gpus: must be a whole number from 0"},
      {item(R"("request":{"memory_bytes":9223372036854775807})"),
       "/items/0/spec/request/memory_bytes: must be a whole number from 0 to 4611686018427387904"},
      {item(R"("time_limit_seconds":0)"), "/items/0/spec/time_limit_seconds: must be a whole"},
      {item(R"("begin":"tomorrow")"), "/items/0/spec/begin: 'tomorrow' is not a time"},
      {item(R"("begin":5)"), "/items/0/spec/begin: must be a time such as"},
      {item(R"("hold":1)"), "/items/0/spec/hold: must be true or false, not 1"},
      {item(R"("dependencies":{"jobs":[1,0]})"), "/items/0/spec/dependencies/jobs/1: must be a"},
      {item(R"("dependencies":{"mode":"some"})"),
       "/items/0/spec/dependencies/mode: must be one of all, any, not 'some'"},
      {item(R"("name":null)"), "/items/0/spec/name: must be a string or"},
      {item(R"("name":"a\u0000b")"), "/items/0/spec/name: must not contain a NUL character"},
      {item(fmt::format(R"("name":"{}")", std::string(16385, 'a'))),
       "/items/0/spec/name: must not be longer than 16384 bytes"},
      {item(fmt::format(R"("name":{{"base64":"{}"}})", std::string(21848, 'a'))),
       "/items/0/spec/name: must not be longer than 16384 bytes"},
      {item(fmt::format(R"("request":{{"gpu_models":["V100","{}"]}})", std::string(16385, 'a'))),
       "/items/0/spec/request/gpu_models/1: must not be longer than 16384 bytes"},
      {item(R"("command":{"base64":"YQBi"})"),
       "/items/0/spec/command: must not contain a NUL character"},
      {item(R"("name":{"base64":"@@@@"})"), "/items/0/spec/name: is not base64"},
      {item(R"("name":{"base64":"QR=="})"), "/items/0/spec/name: is not base64"},
      {item(R"("name":{"base64":"QQ==","x":1})"), "/items/0/spec/name: must be a string or"},
      {R"({"items":[{"spec":{"work_dir":"tmp"},"payload":{"argv":["true"]}}]})",
       "/items/0/spec/work_dir: must be an absolute path"},
      {item(R"("hold":true)", R"({"argv":[]})"), "/items/0/payload/argv: must name a program"},
      {item(R"("hold":true)", R"({"argv":["a",{"base64":"YQBi"}]})"),
       "/items/0/payload/argv/1: must not contain a NUL character"},
      {item(R"("request":{"selector":[{"key":"a","value":{"base64":"YQBi"}}]})"),
       "/items/0/spec/request/selector/0/value: must not contain a NUL character"},
      {item(R"("hold":true)", R"({"argv":["a"],"environment":["=x"]})"),
       "/items/0/payload/environment/0: must be NAME=value"},
      {item(R"("hold":true)", R"({"argv":["a"],"config_name":"../x"})"),
       "/items/0/payload/config_name: must be the name of a file"},
      {item(R"("hold":true)", R"({"argv":["a"],"umask":512})"), "/items/0/payload/umask: must be"},
      {R"({"items":[{"spec":{"work_dir":"/"},"payload":{"argv":["a"]},"depends_on_siblings":[0]}]})",
       "/items/0/depends_on_siblings: must be positions of items before this one, not 0"},
      {R"({"items":[{"spec":{"work_dir":"/"},"payload":{"argv":["a"]},"tasks":{"count":2}},)"
       R"({"like":0,"depends_on_siblings":[0]}]})",
       "/items/1/depends_on_siblings: item 0 has tasks"},
      {R"({"items":[{"spec":{"work_dir":"/"},"payload":{"argv":["a"]}},)"
       R"({"like":0,"environment":["A=1"],"tasks":{"count":2}}]})",
       "/items/1/tasks: tasks of an item that is like another run what that one runs"},
      {R"({"items":[{"spec":{"work_dir":"/"},"payload":{"argv":["a"]},"tasks":{"first":1}}]})",
       "/items/0/tasks/count: is missing"},
      {R"({"items":[{"spec":{"work_dir":"/"},"payload":{"argv":["a"]},"tasks":{"count":0}}]})",
       "/items/0/tasks/count: must be a whole number from 1 to 4000000000, not 0"},
      {R"({"items":[{"spec":{"work_dir":"/"},"payload":{"argv":["a"]},)"
       R"("tasks":{"count":4000000000,"step":2}}]})",
       "/items/0/tasks: a task is numbered 4000000000 at most"},
      {R"({"items":[{"like":0}]})",
       "/items/0/like: must be the position of an item before this one that is like no other, not "
       "0"},
      {R"({"items":[{"spec":{"work_dir":"/"},"payload":{"argv":["a"]}},{"like":0},{"like":1}]})",
       "/items/2/like: must be the position of an item before this one that is like no other, not "
       "1"},
      {R"({"apiVersion":"gflow/v9","items":[]})",
       "/apiVersion: must be 'gflow/v1', not 'gflow/v9'"},
  };
  for (const auto& [json, message] : cases) {
    const auto request = read_submit_request(json);
    ASSERT_FALSE(request) << json;
    EXPECT_EQ(request.error().code, Code::Usage) << json;
    EXPECT_TRUE(request.error().message.starts_with(message)) << request.error().message;
  }
}

TEST(JsonRefuse, FieldsAsData) {
  const auto several = read_jobs_request(R"({"job":[1],"signal":65})");
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().fields,
            (std::vector<FieldError>{{"/jobs", "is missing"},
                                     {"/signal", "must be a whole number from 0 to 64, not 65"},
                                     {"/job", "there is no such field; did you mean 'jobs'?"}}));
  const auto checked = read_jobs_request(R"({"jobs":[]})");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().fields,
            (std::vector<FieldError>{{"/jobs", "must name at least one job"}}));
  // A name is not taken for the end of a pointer, nor a text for one.
  const auto odd = read_jobs_request(R"({"jobs":[1],"a: b":1})");
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().fields.front().pointer, "/a: b");
  const auto whole = read_jobs_request("[]");
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().fields.front(), (FieldError{"", "must be an object, not an array"}));
  EXPECT_TRUE(read_jobs_request("{").error().fields.empty()) << "it has no fields";
}

TEST(JsonRefuse, OtherRequests) {
  EXPECT_EQ(read_jobs_request(R"({"jobs":[]})").error().message,
            "/jobs: must name at least one job");
  EXPECT_EQ(read_jobs_request(R"({"jobs":[1],"signal":65})").error().message,
            "/signal: must be a whole number from 0 to 64, not 65");
  EXPECT_EQ(read_jobs_request(R"({"job":[1]})").error().message,
            "/jobs: is missing\n/job: there is no such field; did you mean 'jobs'?");
  std::string jobs = "1";
  for (std::size_t job = 2; job <= kMaxJobsChangedAtOnce; ++job) jobs += fmt::format(",{}", job);
  EXPECT_TRUE(read_jobs_request("{\"jobs\":[" + jobs + ",7]}")) << "7 twice";
  for (const api::Refusal& error :
       {read_jobs_request("{\"jobs\":[" + jobs + ",10001]}").error(),
        read_update_request("{\"jobs\":[" + jobs + ",10001]}").error()}) {
    EXPECT_EQ(error.message,
              "/jobs: names 10001 jobs; the maximum is 10000: change them by several requests");
  }
  std::string many = R"({"jobs":[1])";
  for (int i = 0; i < 100; ++i) many += ",\"f" + std::to_string(i) + "\":0";
  const std::string all = read_jobs_request(many + "}").error().message;
  EXPECT_EQ(std::ranges::count(all, '\n'), 19) << all;
  EXPECT_TRUE(read_update_request(R"({"jobs":[1],"priority":null})")
                  .error()
                  .message.starts_with("/priority: must be a whole number"));
}

TEST(JsonRefuse, TextThatIsNotJson) {
  for (const std::string_view json : {"",
                                      " ",
                                      "{",
                                      "nul",
                                      "{\"a\":NaN}",
                                      "{\"a\":Infinity}",
                                      "{\"a\":1e999}",
                                      "{\"a\":01}",
                                      "{} {}",
                                      "{'a':1}",
                                      "{\"a\":1,}",
                                      "// c\n{}",
                                      "{\"a\":\"\xff\"}",
                                      "{\"a\":\"\n\"}",
                                      "\xef\xbb"}) {
    const auto value = parse_json(json);
    ASSERT_FALSE(value) << json;
    EXPECT_EQ(value.error().code, Code::Usage);
    EXPECT_TRUE(value.error().message.starts_with("not JSON")) << value.error().message;
  }
  EXPECT_EQ(parse_json(R"({"a":1,"b":{"a":2},"a":3})").error().message,
            "'a' stands twice in one object");
}

TEST(JsonRefuse, DocumentsOverTheLimits) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(kMaxDepth)));
  EXPECT_EQ(parse_json(nested(kMaxDepth + 1)).error().code, Code::Usage);
  EXPECT_EQ(parse_json(std::string(10'000'000, '[')).error().code, Code::Usage);

  const auto array = [](std::size_t size) {
    std::string text = "[0";
    for (std::size_t i = 1; i < size; ++i) text += ",0";
    return text + "]";
  };
  EXPECT_TRUE(parse_json(array(kMaxValues - 1)));  // and the array itself
  EXPECT_EQ(parse_json(array(kMaxValues)).error().code, Code::Usage);

  const auto object = [](std::size_t size) {
    std::string text = "{\"m0\":0";
    for (std::size_t i = 1; i < size; ++i) text += ",\"m" + std::to_string(i) + "\":0";
    return text + "}";
  };
  EXPECT_TRUE(parse_json(object(kMaxMembers)));
  EXPECT_EQ(parse_json(object(kMaxMembers + 1)).error().code, Code::Usage);
}

TEST(JsonRefuse, EveryCutOfADocument) {
  const std::string text = write(sample_submission());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(read_submit_request(text.substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace gflow::api

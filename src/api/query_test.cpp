// SPDX-License-Identifier: Apache-2.0
#include "api/query.h"

#include <gtest/gtest.h>

#include "api/base64.h"
#include "api/json.h"
#include "api/samples_test.h"

namespace gflow::api {
namespace {

TEST(Query, SaysWhatIsWanted) {
  JobQuery query;
  EXPECT_EQ(write_query(query), "");
  query.statuses = {Status::Running, Status::Queued};
  query.users = {"alice", "bob"};
  query.names = {"a,b & c=%", "x*"};
  query.project = "\xe8\xa7\x86";
  query.jobs = {JobId(1), JobId(3), JobId(5), JobId(6), JobId(7)};
  query.submitted_since = sample_time(0);
  query.after = JobId(100);
  query.most = 50;
  const std::string text = write_query(query);
  EXPECT_EQ(text,
            "state=Queued,Running&user=alice,bob&name=a,b%20%26%20c%3D%25&name=x*"
            "&project=%E8%A7%86&job=1,3,5-7&since=2026-03-01T12:00:00.000Z&after=100&limit=50");
  const auto read = read_query(text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->statuses, query.statuses);
  EXPECT_EQ(read->users, query.users);
  EXPECT_EQ(read->names, query.names);
  EXPECT_EQ(read->project, query.project);
  EXPECT_EQ(read->jobs, query.jobs);
  EXPECT_EQ(read->submitted_since, query.submitted_since);
  EXPECT_EQ(read->after, query.after);
  EXPECT_EQ(read->most, query.most);
}

TEST(Query, SaysInWhichOrder) {
  JobQuery query;
  query.order = {JobKey::Priority, true, true};
  EXPECT_EQ(write_query(query), "sort=-priority&reverse=true");
  EXPECT_EQ(read_query("sort=-priority&reverse=true")->order, query.order);
  query.order = {JobKey::Id, true, false};
  EXPECT_EQ(write_query(query), "sort=-id");
  EXPECT_EQ(read_query("sort=NODES")->order.key, JobKey::Gpus);
}

TEST(Query, IsReadAsPeopleTypeIt) {
  const auto read = read_query("&state=r,pd&&name=two+words&");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->statuses, (StatusSet{Status::Running, Status::Queued}));
  EXPECT_EQ(read->names, std::vector<std::string>{"two words"});
  EXPECT_EQ(read->most, 1000U);
}

TEST(Query, ListsMayBeGivenInParts) {
  const auto read = read_query("state=r&state=pd&name=a&name=b&user=u&user=v");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->statuses, (StatusSet{Status::Running, Status::Queued}));
  EXPECT_EQ(read->names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(read->users, (std::vector<std::string>{"u", "v"}));
}

TEST(Query, RefusesWhatItDoesNotKnow) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"stat=Running", "there is no query parameter 'stat'; did you mean 'state'?"},
      {"zzzzzzzzzz=1", "there is no query parameter 'zzzzzzzzzz'; there are state, user"},
      {"sort=color", "sort: 'color' is not one of id, state, time, name, gpus, priority"},
      {"fields=id,colour", "fields: a job has no 'colour'; there are attempt"},
      {"fields=spec.colour", "fields: a job has no 'spec.colour'"},
      {"fields=spec.request.colour", "fields: a job has no 'spec.request.colour'"},
      {"fields=spec.name.first", "fields: a job has no 'spec.name.first'"},
      {"fields=status.colour", "fields: a job has no 'status.colour'"},
      {"reverse=yes", "reverse must be true or false, not 'yes'"},
      {"sort=time&after=3", "after is of another order"},
      {"after=x", "after must be what a page had as 'next', not 'x'"},
      {"after=cOnh5", "after must be what a page had as 'next', not 'cOnh5'"},
      {"sort=name&after=-3", "after must be what a page had as 'next'"},
      {"limit=0", "limit must be 1 to 1000, not 0"},
      {"limit=1001", "limit must be 1 to 1000, not 1001"},
      {"limit=-1", "limit must be a number, not '-1'"},
      {"limit", "limit must be a number, not ''"},
      {"after=18446744073709551615", "after must be a number, not '18446744073709551615'"},
      {"limit=1&limit=2", "query parameter 'limit' is given twice"},
      {"job=1&user=alice&job=2", "query parameter 'job' is given twice"},
      {"name=%", "'%' is not a query"},
      {"name=%4", "'%4' is not a query"},
      {"name=%zz", "'%zz' is not a query"},
      {"name=%00", "'%00' is not a query: it contains a NUL character"},
      {std::string("name=a\0b", 8), "'a\\x00b' is not a query: it contains a NUL character"},
      {"group=", "group is empty; leave it out if it is not wanted"},
      {"project", "project is empty"},
      {"user=", "user is empty"},
      {"user=,", "user is empty"},
      {"name=", "name is empty"},
      {"since=now", "since: 'now' is not a time"},
      {"%1b=1", "there is no query parameter '\\x1b'"},
  };
  for (const auto& [query, message] : cases) {
    const auto read = read_query(query);
    ASSERT_FALSE(read) << query;
    EXPECT_EQ(read.error().code, Code::Usage) << query;
    EXPECT_TRUE(read.error().message.starts_with(message)) << read.error().message;
  }
  EXPECT_FALSE(read_query("state=nonsense"));
  EXPECT_FALSE(read_query("job=1,x"));
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "name=a&";
  EXPECT_FALSE(read_query(many));
}

TEST(Base64, IsThatOfTheRfc) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"", ""},
                                                                  {"f", "Zg=="},
                                                                  {"fo", "Zm8="},
                                                                  {"foo", "Zm9v"},
                                                                  {"foob", "Zm9vYg=="},
                                                                  {"fooba", "Zm9vYmE="},
                                                                  {"foobar", "Zm9vYmFy"},
                                                                  {"\xff\xfe\xfd", "//79"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(base64_decode(text), bytes);
  }
  for (const std::string_view text :
       {"Z", "Zg", "Zg=", "Zh==", "Zg==Zg==", "Z===", "====", "Z g="}) {
    EXPECT_FALSE(base64_decode(text)) << text;
  }
}

}  // namespace
}  // namespace gflow::api

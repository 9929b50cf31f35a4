// SPDX-License-Identifier: Apache-2.0
// What is true of every answer and every target, without connections.
#include "server/conventions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>

#include "server/compression.h"
#include "server/entity_tag.h"
#include "server/media_types.h"
#include "server/request_id.h"
#include "server/request_log.h"
#include "server/target.h"
#include "server/weights.h"

namespace gflow::server {
namespace {

std::string value_of(const Reply& reply, std::string_view name) {
  std::string all;
  for (const auto& [key, value] : reply.headers) {
    if (key == name) all += (all.empty() ? "" : "|") + value;
  }
  return all;
}

std::string unzipped(const std::string& coded) {
  z_stream stream{};
  EXPECT_EQ(::inflateInit2(&stream, 15 + 16), Z_OK);
  std::string in = coded;
  std::string out(std::size_t{1} << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  (void)::inflateEnd(&stream);
  return out;
}

TEST(Weights, AreReadOfAWord) {
  EXPECT_EQ(weight_in("gzip", "gzip"), 1);
  EXPECT_EQ(weight_in("br, GZIP ; q=0.5", "gzip"), 0.5);
  EXPECT_EQ(weight_in("gzip;q=0", "gzip"), 0);
  EXPECT_EQ(weight_in("gzip;q=x", "gzip"), 1);
  EXPECT_EQ(weight_in("gzip;v=1;q=0.2, gzip;q=0.7, gzip;q=0.1", "gzip"), 0.7);
  EXPECT_EQ(weight_in("gzipped", "gzip"), std::nullopt);
  EXPECT_EQ(weight_in("", "gzip"), std::nullopt);
  EXPECT_EQ(weight_in(",,;;", "gzip"), std::nullopt);
  using Words = std::vector<std::string_view>;
  EXPECT_EQ(by_weight("en;q=0.5, zh-CN, *;q=0, zh;q=0.9,;"), (Words{"zh-CN", "zh", "en"}));
  EXPECT_EQ(by_weight(""), Words());
}

TEST(Compression, IsForWhoTakesIt) {
  for (const auto* header : {"gzip", "deflate, gzip;q=1.0, *;q=0.5", "*", "br;q=1, gzip;q=0.2"}) {
    EXPECT_TRUE(takes_gzip(header)) << header;
  }
  for (const auto* header : {"", "identity", "gzip;q=0", "*;q=0", "br", "gzip;q=0, *"}) {
    EXPECT_FALSE(takes_gzip(header)) << header;
  }
  const std::string text(5000, 'x');
  const std::string coded = gzip(text);
  EXPECT_LT(coded.size(), 200U);
  EXPECT_EQ(unzipped(coded), text);
  EXPECT_EQ(unzipped(gzip("")), "");
}

TEST(MediaTypes, AreTakenAsAcceptSays) {
  for (const auto* accept : {"", "*/*", "application/json", "text/html, application/*;q=0.5"}) {
    EXPECT_TRUE(takes_media(accept, "application/json")) << accept;
  }
  for (const auto* accept :
       {"text/html", "application/json;q=0, */*", "application/jsonl", "image/*"}) {
    EXPECT_FALSE(takes_media(accept, "application/json")) << accept;
  }
}

TEST(EntityTag, IsComparedAsItsHeaderWants) {
  EXPECT_TRUE(names_tag("\"a\", \"b\"", "\"b\""));
  EXPECT_TRUE(names_tag("*", "\"b\""));
  EXPECT_TRUE(names_tag("W/\"b\"", "\"b\""));
  EXPECT_TRUE(names_tag("\"b-gzip\"", "\"b\""));
  EXPECT_FALSE(names_tag("\"c\"", "\"b\""));
  EXPECT_FALSE(names_tag("", "\"b\""));
  EXPECT_TRUE(names_version("\"a.1\", \"b.2\"", "\"b\""));
  EXPECT_TRUE(names_version("\"b.2-gzip\"", "\"b\""));
  EXPECT_TRUE(names_version("\"b\"", "\"b\""));
  EXPECT_TRUE(names_version("*", "\"b\""));
  EXPECT_FALSE(names_version("W/\"b.2\"", "\"b\""));
  EXPECT_FALSE(names_version("\"c.2\"", "\"b\""));
  EXPECT_NE(tag_of_text("a"), tag_of_text("b"));
  EXPECT_TRUE(tag_of_text("a").starts_with("W/\""));
}

TEST(RequestId, IsWhatWasGivenIfItIsOne) {
  EXPECT_EQ(request_id_of("Build-42.a_b"), "Build-42.a_b");
  const std::string tooLong(65, 'x');
  for (const std::string_view bad : {std::string_view(""),
                                     std::string_view("a b"),
                                     std::string_view("a\nb"),
                                     std::string_view("\"quoted\""),
                                     std::string_view("u:rn"),
                                     std::string_view(tooLong)}) {
    const std::string made = request_id_of(bad);
    EXPECT_EQ(made.size(), 16U) << bad;
    EXPECT_NE(made, request_id_of(bad));
  }
}

TEST(Target, IsReadOrRefused) {
  struct Row {
    const char* text;
    const char* path;  // null: refused
    const char* query = "";
    const char* authority = "";
  };
  for (const Row& row : {Row{"/api/v1/jobs", "/api/v1/jobs"},
                         {"/a?b=%2F&c", "/a", "b=%2F&c"},
                         {"/cleanup/node%20one", "/cleanup/node one"},
                         {"/%E4%BD%A0", "/\xe4\xbd\xa0"},
                         {"/a+b", "/a+b"},
                         {"http://localhost:8000/x?y", "/x", "y", "localhost:8000"},
                         {"HTTP://host", "/", "", "host"},
                         {"https://host/x", "/x", "", "host"},
                         {"http://host?q", "/", "q", "host"},
                         {"*", "*"},
                         {"/a%2fb/%2F", "/a%2Fb/%2F"},
                         {"/a%252Fb%25", "/a%252Fb%25"},
                         {"/%61%2Fb%20c/", "/a%2Fb c/"},
                         {"/a%00b", nullptr},
                         {"/a%0Ab", nullptr},
                         {"/a%", nullptr},
                         {"/a%zz", nullptr},
                         {"", nullptr},
                         {"host:443", nullptr},
                         {"ftp://host/x", nullptr},
                         {"http:///x", nullptr},
                         {"http://me@host/x", nullptr}}) {
    const auto target = read_target(row.text);
    ASSERT_EQ(target.has_value(), row.path != nullptr) << row.text;
    if (!target) {
      EXPECT_EQ(target.error().code, Code::Usage);
      continue;
    }
    EXPECT_EQ(target->path, row.path);
    EXPECT_EQ(target->query, row.query);
    EXPECT_EQ(target->authority, row.authority);
  }
}

TEST(Target, HasSegmentsThatSayWhatWasEncoded) {
  for (const std::string_view name : {"a/b", "a%2Fb", "100%", "%", "/", "a%252Fb", "plain", ""}) {
    std::string typed = "/groups/";
    for (const char c : name) typed += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    const auto target = read_target(typed);
    ASSERT_TRUE(target) << typed;
    EXPECT_EQ(std::ranges::count(target->path, '/'), 2) << target->path;
    EXPECT_EQ(segment_text(std::string_view(target->path).substr(8)), name);
  }
}

TEST(Conventions, AReadIsKnownAgain) {
  Terms terms{.method = "GET", .request_id = "r1"};
  const Reply first = finished(terms, json_reply("{}"));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(value_of(first, "X-Request-Id"), "r1");
  EXPECT_EQ(value_of(first, "Cache-Control"), "private, no-cache");
  EXPECT_EQ(value_of(first, "Content-Encoding"), "");
  terms.if_none_match = value_of(first, "ETag");
  const Reply again = finished(terms, json_reply("{}"));
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(again.content_type, "");
  EXPECT_EQ(value_of(again, "ETag"), terms.if_none_match);
  EXPECT_EQ(finished(terms, json_reply("{\"a\":1}")).status, 200);
  terms.method = "POST";
  const Reply written = finished(terms, json_reply("{}"));
  EXPECT_EQ(written.status, 200);
  EXPECT_EQ(value_of(written, "ETag"), "");
  EXPECT_EQ(value_of(written, "Cache-Control"), "no-store");
}

TEST(Conventions, ALongAnswerIsCompressedForWhoTakesIt) {
  Terms terms{.method = "GET", .request_id = "r1", .accept_encoding = "gzip"};
  const std::string body = '"' + std::string(2000, 'x') + '"';
  Reply strong = json_reply(body);
  strong.headers.emplace_back("ETag", "\"7\"");
  const Reply coded = finished(terms, strong);
  EXPECT_EQ(value_of(coded, "Content-Encoding"), "gzip");
  const std::string tag = value_of(coded, "ETag");
  EXPECT_TRUE(tag.starts_with("\"7.") && tag.ends_with("-gzip\"")) << tag;
  EXPECT_EQ(unzipped(coded.body), body);
  EXPECT_EQ(value_of(finished(terms, json_reply("{}")), "Content-Encoding"), "");
  terms.if_none_match = tag;
  EXPECT_EQ(finished(terms, strong).status, 304);
  strong.body = "\"the same version in other words\"";
  EXPECT_EQ(finished(terms, strong).status, 200);
}

TEST(Conventions, AProblemHasItsInstanceAndWhenToTryAgain) {
  const Terms terms{.method = "GET", .request_id = "r1"};
  const Reply busy = finished(terms, problem(Error{Code::Exhausted, "too many"}, 429));
  EXPECT_NE(busy.body.find(R"("instance":"r1"})"), std::string::npos) << busy.body;
  EXPECT_NE(busy.body.find(R"("type":"/docs#problem-exhausted")"), std::string::npos);
  EXPECT_EQ(value_of(busy, "Retry-After"), "1");
  EXPECT_EQ(value_of(busy, "ETag"), "");
  EXPECT_EQ(value_of(finished(terms, problem(Error{Code::Unreachable, "no"})), "Retry-After"), "5");
  EXPECT_EQ(value_of(finished(terms, problem(Error{Code::NotFound, "no"})), "Retry-After"), "");
}

TEST(Conventions, AProblemNamesEveryFieldThatIsWrong) {
  const Reply reply = problem(
      api::Refusal({api::FieldError{"/a/0", "must be x"}, api::FieldError{"/b", "is missing"}}));
  EXPECT_NE(reply.body.find(R"("detail":"/a/0: must be x; /b: is missing")"), std::string::npos);
  EXPECT_NE(reply.body.find(R"([{"pointer":"/a/0","detail":"must be x"},)"
                            R"({"pointer":"/b","detail":"is missing"}])"),
            std::string::npos)
      << reply.body;
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(problem(Error{Code::Usage, "/a: is no field"}).body.find(R"("errors":[])"),
            std::string::npos);
}

TEST(RequestLog, TellsNoMoreThanALineASecond) {
  RequestLog log;
  const Guest guest{.peer = {.uid = 1000}, .via = Via::Tcp};
  const Terms terms{.method = "GET", .path = "/x\n", .request_id = "r1"};
  MonoTime now(std::chrono::hours(1));
  const auto first = log.line(now, guest, terms, 404);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->find("request r1: GET /x"), 0U) << *first;
  EXPECT_EQ(first->find('\n'), std::string::npos);
  EXPECT_NE(first->find("uid 1000 over TCP: 404"), std::string::npos) << *first;
  int told = 1;
  for (int i = 0; i < 200; ++i) told += log.line(now, guest, terms, 404) ? 1 : 0;
  EXPECT_EQ(told, 50);
  now += std::chrono::milliseconds(1500);
  const auto later = log.line(now, guest, terms, 404);
  ASSERT_TRUE(later);
  EXPECT_NE(later->find("151 before it are not told"), std::string::npos) << *later;
  EXPECT_FALSE(log.line(now, guest, terms, 404));
  now += std::chrono::milliseconds(500);
  EXPECT_TRUE(log.line(now, guest, terms, 404)) << "halves of seconds count";
}

}  // namespace
}  // namespace gflow::server

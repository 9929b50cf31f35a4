// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "wire.h"

namespace gflow::wire {
namespace {

TEST(Client, DoesEverythingThereIs) {
  Daemon daemon;
  client::Client client = daemon.client();

  const auto first = client.submit(one_job(2));
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ(first->items.size(), 1U);
  EXPECT_EQ(first->items[0].id, JobId(1));
  EXPECT_EQ(first->items[0].status, Status::Running);
  const auto second = client.submit(one_job(1));
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->items[0].reason.starts_with("Resources")) << second->items[0].reason;

  const auto job = client.job(JobId(2));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.user.uid, ::getuid());
  EXPECT_EQ(job->blockers.at(0).holders.at(0).job, JobId(1));
  EXPECT_EQ(client.newest(0), JobId(2));
  EXPECT_EQ(client.newest(1), JobId(1));
  EXPECT_EQ(client.newest(2).error().code, Code::NotFound);

  JobQuery query;
  query.statuses = {Status::Queued};
  const auto page = client.jobs(query);
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->jobs.size(), 1U);
  EXPECT_EQ(page->jobs[0], *job);
  EXPECT_EQ(client.jobs({})->jobs.size(), 2U);

  const auto machine = client.machine();
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->nodes.at(0).devices.at(1).jobs, std::vector{JobId(1)});
  EXPECT_EQ(machine->queued, 1U);

  EXPECT_EQ(client.act("hold", {{JobId(2)}, 0, {}}), std::vector{JobId(2)});
  EXPECT_EQ(client.job(JobId(2))->status, Status::Hold);
  api::UpdateRequest update;
  update.jobs = {JobId(2)};
  update.changes.set(&JobSpec::priority, 99);
  EXPECT_EQ(client.update(update), std::vector{JobId(2)});
  EXPECT_EQ(client.job(JobId(2))->spec.priority, 99);
  EXPECT_EQ(client.act("release", {{JobId(2)}, 0, {}}), std::vector{JobId(2)});
  EXPECT_EQ(client.act("cancel", {{JobId(2)}, 0, {}}), std::vector{JobId(2)});
  EXPECT_EQ(client.job(JobId(2))->status, Status::Cancelled);

  EXPECT_EQ(client.daemon()->version, "0.1.0");
  EXPECT_TRUE(client.reload_daemon());
  EXPECT_TRUE(client.stop_daemon());
  daemon.on_loop([&] { EXPECT_TRUE(daemon.service().stopped); });
}

TEST(Client, GetsTheErrorsOfTheDaemon) {
  Daemon daemon;
  client::Client client = daemon.client();
  EXPECT_EQ(client.job(JobId(7)).error(), (Error{Code::NotFound, "there is no job 7"}));
  EXPECT_EQ(client.submit(one_job(9)).error().code, Code::Infeasible);
  ASSERT_TRUE(client.submit(one_job()));
  ASSERT_TRUE(client.act("cancel", {{JobId(1)}, 0, {}}));
  daemon.on_loop([&] {
    daemon.service().end(JobId(1), Outcome{EndReason::Cancelled, 0, 15, "", {}, {}, {}});
  });
  EXPECT_EQ(client.act("cancel", {{JobId(1)}, 0, {}}).error().code, Code::WrongState);
  daemon.on_loop([&] { daemon.service().reloaded = fail(Code::Usage, "gflow.toml:3"); });
  EXPECT_EQ(client.reload_daemon().error(), (Error{Code::Usage, "gflow.toml:3"}));
  EXPECT_EQ(client.call("GET", "/api/v1/nothing").error().code, Code::NotFound);
  EXPECT_EQ(client.call("GET", "/healthz"), "ok\n");
}

TEST(Client, RefusesWhatWouldNotBeOneRequest) {
  Daemon daemon;
  client::Client client = daemon.client();
  for (const std::string target : {"/healthz HTTP/1.1\r\nOrigin: x", "/a b", "/\n", "/\x7f"}) {
    EXPECT_EQ(client.call("GET", target).error().code, Code::Usage) << target;
  }
  EXPECT_EQ(client.call("GET\r\n", "/healthz").error().code, Code::Usage);
  EXPECT_EQ(client.call("POST", "/api/v1/jobs", "{}", "k\r\nOrigin: x").error().code, Code::Usage);
}

TEST(Client, SaysHowToStartADaemonThatIsNotThere) {
  TempDir directory;
  const std::string socket = directory.file("gflowd.sock");
  const Error expected = {Code::Unreachable,
                          "gflowd does not answer at " + socket + ": start it with 'gflowd up'"};
  EXPECT_EQ(client::Client(socket).machine().error(), expected);
  EXPECT_EQ(client::Client(socket).submit(one_job()).error(), expected);
  // A socket file that a killed daemon left behind.
  ASSERT_TRUE(os::listen_unix(socket, 0600));
  EXPECT_EQ(client::Client(socket).machine().error(), expected);
}

TEST(Client, CarriesCommandLinesOfAnyLength) {
  Daemon daemon;
  client::Client client = daemon.client();
  api::SubmitRequest request = one_job();
  const std::string argument(300'000, 'x');
  request.items[0].spec.command = "run it";
  request.items[0].payload.argv = {"run", argument, std::string(1000, '\xff')};
  ASSERT_TRUE(client.submit(request));
  EXPECT_EQ(client.job(JobId(1))->spec.command, "run it");
  daemon.on_loop(
      [&] { EXPECT_EQ(daemon.service().payloads.at(0).own.argv, request.items[0].payload.argv); });

  request.items[0].payload.script = std::string(std::size_t{17} << 20, 'x');
  const auto refused = client.submit(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{Code::Exhausted, "the body is larger than 16 MiB"}));
}

TEST(Client, ReadsListsPageByPage) {
  Daemon daemon;
  client::Client client = daemon.client();
  api::SubmitRequest request;
  for (int i = 0; i < 2500; ++i) request.items.push_back(one_job(2).items[0]);
  const auto submitted = client.submit(request);
  ASSERT_TRUE(submitted) << submitted.error().message;
  ASSERT_EQ(submitted->items.size(), 2500U);
  std::uint64_t seen = 0;
  JobQuery query;
  for (std::optional<JobId> after = JobId{}; after;) {
    query.after = *after;
    const auto page = client.jobs(query);
    ASSERT_TRUE(page) << page.error().message;
    for (const api::JobView& job : page->jobs) EXPECT_EQ(job.id.value, ++seen);
    after = page->next_after;
  }
  EXPECT_EQ(seen, 2500U);
}

TEST(Client, WaitsForAChange) {
  Daemon daemon;
  client::Client client = daemon.client();
  ASSERT_TRUE(client.submit(one_job(1)));
  const std::uint64_t revision = client.machine()->revision;
  std::promise<void> waits;
  daemon.on_loop([&] { daemon.service().on_wait = [&] { waits.set_value(); }; });
  auto waiting = std::async(std::launch::async,
                            [&] { return daemon.client().wait_change(revision, JobId(1)); });
  waits.get_future().wait();
  ASSERT_TRUE(client.act("cancel", {{JobId(1)}, 0, {}}));
  const auto changed = waiting.get();
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_GT(*changed, revision);
  EXPECT_EQ(client.job(JobId(1))->status, Status::Completing);
}

TEST(Client, ReturnsFromAWaitWithoutChange) {
  Daemon daemon;
  client::Client client = daemon.client();
  const std::uint64_t revision = client.machine()->revision;
  daemon.on_loop([&] { daemon.service().on_wait = [&] { daemon.service().end_waits(); }; });
  EXPECT_EQ(client.wait_change(revision, {}), revision);
  EXPECT_EQ(client.wait_change(revision, JobId(9)).error().code, Code::NotFound);
}

/// Who comes from a daemon that was here before has missed what this one cannot know of.
TEST(Client, DoesNotWaitAtARevisionThatIsAhead) {
  Daemon daemon;
  client::Client client = daemon.client();
  ASSERT_TRUE(client.submit(one_job(1)));
  const std::uint64_t revision = client.machine()->revision;
  bool waited = false;
  daemon.on_loop([&] {
    daemon.service().on_wait = [&] {
      waited = true;
      daemon.service().end_waits();
    };
  });
  EXPECT_EQ(client.wait_change(revision + 1000, {}), revision);
  EXPECT_EQ(client.wait_change(revision + 1000, JobId(1)), revision);
  daemon.on_loop([&] { EXPECT_FALSE(waited); });
}

/// Runs `work` as a user that is neither root nor the daemon's, if this process may become one.
template <typename Work>
bool as_stranger(Work work) {
  constexpr uid_t kNobody = 65534;
  if (::getuid() != 0) return false;
  std::thread([&] {
    // The system call, not the function: it changes this thread alone.
    if (::syscall(SYS_setresuid, kNobody, kNobody, kNobody) == 0) work();
  }).join();
  return true;
}

TEST(Client, IsWhoTheKernelSays) {
  server::HttpServer::Options options;
  options.any_user = true;
  Daemon daemon(options);
  ASSERT_TRUE(daemon.client().submit(one_job()));
  int checks = 0;
  const bool could = as_stranger([&] {
    client::Client client = daemon.client();
    ASSERT_TRUE(client.submit(one_job()));
    EXPECT_EQ(client.job(JobId(2))->spec.user.uid, 65534U);
    EXPECT_EQ(client.job(JobId(1))->spec.command, "");
    EXPECT_EQ(client.act("cancel", {{JobId(1)}, 0, {}}).error().code, Code::Permission);
    EXPECT_EQ(client.stop_daemon().error().code, Code::Permission);
    EXPECT_EQ(client.reload_daemon().error().code, Code::Permission);
    EXPECT_EQ(client.newest(0), JobId(2));
    ++checks;
  });
  if (!could) GTEST_SKIP() << "only root can be two users";
  EXPECT_EQ(checks, 1);
  EXPECT_EQ(daemon.client().job(JobId(2))->spec.command, "python train.py");
}

TEST(Client, OfAnotherUserIsRefusedInUserMode) {
  Daemon daemon;
  struct stat file{};
  ASSERT_EQ(::stat(daemon.socket().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
  int checks = 0;
  const bool could = as_stranger([&] {
    EXPECT_EQ(daemon.client().machine().error().code, Code::Permission);
    ++checks;
  });
  if (!could) GTEST_SKIP() << "only root can be two users";
  // Even where the file would let them.
  ASSERT_EQ(::chmod(daemon.socket().c_str(), 0666), 0);
  as_stranger([&] {
    EXPECT_EQ(daemon.client().machine().error(),
              (Error{Code::Permission, "this gflowd serves only the user it runs as"}));
    ++checks;
  });
  EXPECT_EQ(checks, 2);
}

}  // namespace
}  // namespace gflow::wire

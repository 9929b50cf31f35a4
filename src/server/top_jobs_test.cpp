// SPDX-License-Identifier: Apache-2.0
#include "server/top_jobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace gflow::server {
namespace {

/// Names "a" to "e" and priorities 1 to 3, each several times.
std::vector<Job> some_jobs() {
  std::vector<Job> jobs;
  for (std::uint64_t n = 1; n <= 60; ++n) {
    Job job;
    job.id = JobId(n);
    job.spec.name = std::string(1, static_cast<char>('a' + n * 7 % 5));
    job.spec.priority = static_cast<int>(1 + n * 11 % 3);
    job.spec.request.gpus = static_cast<int>(n % 4);
    job.spec.request.nodes = static_cast<int>(1 + n % 2);
    job.state = n % 2 == 0 ? JobState(Held{}) : JobState(Queued{});
    if (n % 5 == 0) {
      Ended ended;
      ended.outcome.run_time = std::chrono::seconds(n * 13 % 7);
      job.state = std::move(ended);
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<SortPlace> places(const JobOrder& order,
                              std::size_t most,
                              const std::optional<SortPlace>& after = {}) {
  TopJobs top(order, most, after);
  for (const Job& job : some_jobs()) top.add(engine::glance_at(job), Moment{});
  return top.take();
}

std::vector<JobId> selected(const JobOrder& order, std::size_t most) {
  std::vector<JobId> ids;
  for (const SortPlace& place : places(order, most)) ids.push_back(place.id);
  return ids;
}

TEST(TopJobs, CutIsTheBeginOfTheWhole) {
  for (const JobKey key :
       {JobKey::Id, JobKey::State, JobKey::Time, JobKey::Name, JobKey::Gpus, JobKey::Priority}) {
    for (const bool descending : {false, true}) {
      for (const bool reversed : {false, true}) {
        const JobOrder order{key, descending, reversed};
        std::vector<JobId> all = selected(order, 1000);
        ASSERT_EQ(all.size(), 60U);
        for (const std::size_t most : {0U, 1U, 7U, 59U, 60U}) {
          EXPECT_EQ(selected(order, most),
                    std::vector<JobId>(all.begin(), all.begin() + static_cast<long>(most)));
        }
        std::ranges::reverse(all);
        EXPECT_EQ(selected({key, descending, !reversed}, 1000), all);
      }
    }
  }
}

TEST(TopJobs, BehindEachPlaceComesTheRest) {
  for (const JobKey key : {JobKey::State, JobKey::Time, JobKey::Name, JobKey::Gpus}) {
    for (const bool descending : {false, true}) {
      const JobOrder order{key, descending, false};
      const auto all = places(order, 1000);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto rest = places(order, 3, all[i]);
        const std::size_t end = std::min(i + 4, all.size());
        EXPECT_EQ(rest,
                  std::vector<SortPlace>(all.begin() + static_cast<long>(i) + 1,
                                         all.begin() + static_cast<long>(end)));
      }
    }
  }
}

TEST(TopJobs, RunTimesAreThoseOfAMoment) {
  Job running;
  running.id = JobId(1);
  Running state;
  state.attempt.started_mono = MonoTime(std::chrono::seconds(10));
  running.state = state;
  Job ended = running;
  Ended end;
  end.outcome.run_time = std::chrono::seconds(90);
  end.lived = std::chrono::seconds(1100);
  ended.state = end;
  const Moment as_of{MonoTime(std::chrono::seconds(50)), std::chrono::seconds(1050)};
  for (const Job& job : {running, ended}) {
    TopJobs top({.key = JobKey::Time}, 1);
    top.add(engine::glance_at(job), as_of);
    EXPECT_EQ(top.take().front().number, 40);
  }
}

TEST(TopJobs, EqualKeysAreById) {
  const auto first = selected({JobKey::Priority, true, false}, 3);
  EXPECT_EQ(first, (std::vector<JobId>{JobId(1), JobId(4), JobId(7)}));
  EXPECT_EQ(selected({JobKey::Priority, false, true}, 2),
            (std::vector<JobId>{JobId(58), JobId(55)}));
  EXPECT_EQ(selected({JobKey::Id, true, false}, 2), (std::vector<JobId>{JobId(60), JobId(59)}));
}

}  // namespace
}  // namespace gflow::server

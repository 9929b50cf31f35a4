// SPDX-License-Identifier: Apache-2.0
#include "slurm/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/translate.h"
#include "slurm/elsewhere.h"
#include "slurm/look.h"
#include "slurm/programs.h"
#include "slurm/submitter.h"

namespace gflow::slurm {
namespace {

using std::chrono::steady_clock;

/// Sites of Slurm do not like who asks more often.
constexpr std::chrono::seconds kBetween{5};
constexpr int kRestPerWork = 9;
constexpr std::chrono::seconds kUsualJobAge{300};

}  // namespace

Reader::Reader(boost::asio::io_context& io, std::string about)
    : Facade(io, {.mode = "slurm", .source = std::move(about), .elsewhere = elsewhere_of_slurm()}),
      io_(io),
      next_(io),
      facts_(std::make_shared<Facts>()) {}

Reader::~Reader() { commands_.join(); }

void Reader::begin(std::function<void(Result<void>)> then) { read(std::move(then)); }

void Reader::read(std::function<void(Result<void>)> then) {
  boost::asio::post(commands_, [this, then = std::move(then)] {
    const auto begun = steady_clock::now();
    auto facts = read_facts();
    const auto pause = pause_after(steady_clock::now() - begun);
    boost::asio::post(io_, [this, then, pause, facts = std::move(facts)]() mutable {
      trouble("slurm", facts ? "" : facts.error().message);
      Result<void> done;
      if (facts) {
        draw(*std::move(facts));
      } else {
        done = std::unexpected(std::move(facts).error());
      }
      read_later(pause);
      if (then) then(std::move(done));
    });
  });
}

/// Short enough for each job to be seen once it has ended, before Slurm forgets it.
steady_clock::duration Reader::pause_after(steady_clock::duration look) {
  constexpr int kLooks = 4;
  const steady_clock::duration pause = kRestPerWork * look;
  if (pause <= kBetween) return kBetween;
  if (!job_age_) job_age_ = read_job_age().value_or(kUsualJobAge);
  return std::max<steady_clock::duration>(
      kBetween, std::min<steady_clock::duration>(pause, *job_age_ / kLooks));
}

void Reader::read_later(steady_clock::duration pause) {
  next_.expires_after(pause);
  next_.async_wait([this](const boost::system::error_code& error) {
    if (!error) read({});
  });
}

void Reader::draw(Facts facts) {
  facts_ = std::make_shared<const Facts>(std::move(facts));
  Picture fresh = picture_of(*facts_, now(), next_revision());
  outputs_ = std::move(fresh.outputs);
  show(std::move(fresh.state), std::move(fresh.told));
}

std::string Reader::log_path(JobId job) const {
  const auto at = outputs_.find(job);
  return at == outputs_.end() ? "" : at->second;
}

/// What was changed is shown no later than it is told of.
void Reader::change(std::function<Ids()> change, Answer answer) {
  next_.cancel();
  boost::asio::post(commands_, [this, change = std::move(change), answer = std::move(answer)] {
    boost::asio::post(io_, [this, answer, ids = change()] {
      read([ids, answer](const Result<void>&) { answer(ids); });
    });
  });
}

void Reader::submit(api::SubmitRequest request,
                    const Principal& /*by*/,
                    Answer answer,
                    server::SubmitIf /*of allocations alone*/) {
  change([request = std::move(request)] { return submit_all(request); }, std::move(answer));
}

/// A task is one of its array, not the array that may have its number.
std::string Reader::name_of(JobId id) const {
  const auto job = std::ranges::find(facts_->jobs, id.value, &Job::id);
  return job == facts_->jobs.end() ? fmt::format("{}", id.value) : slurm::name_of(*job);
}

void Reader::command(std::vector<std::string> words,
                     std::vector<JobId> jobs,
                     const Answer& answer) {
  change(
      [words = std::move(words), jobs = std::move(jobs)]() -> Ids {
        GF_CHECK(output_of({words}));
        return jobs;
      },
      answer);
}

void Reader::cancel(const engine::event::Cancel& asked, const Answer& answer) {
  std::vector<std::string> words = {"scancel"};
  if (asked.signal != 0) words.push_back(fmt::format("--signal={}", asked.signal));
  for (const JobId id : asked.jobs) {
    const auto job = find(id);
    if (!job) return answer(std::unexpected(job.error()));
    if (is_ended(**job)) return answer(wrong_state(**job, tr("it has already ended")));
    words.push_back(name_of(id));
  }
  command(std::move(words), asked.jobs, answer);
}

void Reader::hold(const engine::event::Hold& asked, const Answer& answer) {
  std::string ids;
  for (const JobId id : asked.jobs) {
    const auto job = find(id);
    if (!job) return answer(std::unexpected(job.error()));
    if (!is_pending(**job)) {
      return answer(wrong_state(**job, tr("only a waiting job can be held")));
    }
    ids += (ids.empty() ? "" : ",") + name_of(id);
  }
  command({"scontrol", "uhold", ids}, asked.jobs, answer);
}

void Reader::release(const engine::event::Release& asked, const Answer& answer) {
  if (asked.at) {
    return answer(
        fail(Code::Usage, tr("Slurm releases jobs at once: leave out --at, or release it then")));
  }
  std::string ids;
  for (const JobId id : asked.jobs) {
    ids += (ids.empty() ? "" : ",") + name_of(id);
  }
  command({"scontrol", "release", ids}, asked.jobs, answer);
}

}  // namespace gflow::slurm

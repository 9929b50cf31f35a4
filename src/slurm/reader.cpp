// SPDX-License-Identifier: Apache-2.0
#include "slurm/reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "base/word_hash.h"
#include "core/task_payload.h"
#include "os/random.h"
#include "slurm/elsewhere.h"
#include "slurm/programs.h"
#include "slurm/submission.h"

namespace gflow::slurm {
namespace {

using std::chrono::steady_clock;

/// Sites of Slurm do not like who asks more often.
constexpr std::chrono::seconds kBetween{5};
constexpr int kRestPerWork = 9;

/// Nobody who names a job can know the mark.
Result<Facts> read_facts() {
  const std::string mark = os::random_hex(8);
  Facts facts;
  facts.jobs = read_squeue(
      GF_TRY(output_of(
          {{"squeue", "--all", "--noheader", "--states=all", "--format=" + squeue_format(mark)}})),
      mark);
  facts.nodes =
      read_nodes(GF_TRY(output_of({{"scontrol", "--oneliner", "--details", "show", "node"}})));
  const Ran details = GF_TRY(run({{"scontrol", "--all", "--details", "show", "job"}}));
  if (details.exit_code == 0) add_details(facts.jobs, details.out);
  return facts;
}

/// As a submission is known again by: of the key, its content and the position in it.
std::string comment_of(const api::SubmitRequest& request, const std::string& key, std::size_t at) {
  return fmt::format("gflow:{}:{}:{}", digest_of(key), digest_of(request.digest), at);
}

/// The job that an earlier try of this made. Errors: KeyReused.
Result<std::optional<JobId>> made_before(const Facts& facts, const std::string& comment) {
  const std::string key = comment.substr(0, comment.find(':', comment.find(':') + 1) + 1);
  const std::string position = comment.substr(comment.rfind(':'));
  for (const Job& job : facts.jobs) {
    if (job.uid != ::geteuid()) continue;
    if (job.comment == comment) return JobId(job.id);
    if (job.comment.starts_with(key) && job.comment.ends_with(position)) {
      return fail(Code::KeyReused,
                  tr("the Idempotency-Key was used for another submission; choose a new one"));
    }
  }
  return std::nullopt;
}

/// "42" or "42;cluster"
Result<JobId> id_in(std::string_view said) {
  const auto id = parse_number(trim(said.substr(0, said.find(';'))));
  if (id) return JobId(*id);
  return fail(Code::Failure,
              tr_format("sbatch gave no number: {}", printable(said.substr(0, 200))));
}

struct Submission {
  Call call;
  std::string comment;
};

Result<std::vector<JobId>> submit_all(const Facts& facts, const std::vector<Submission>& jobs) {
  std::vector<JobId> ids;
  for (const Submission& one : jobs) {
    auto id = GF_TRY(made_before(facts, one.comment));
    if (!id) {
      const std::string said = GF_TRY(output_of(one.call));
      id = GF_TRY(id_in(said));
    }
    ids.push_back(*id);
  }
  return ids;
}

/// All of them before one is submitted.
Result<std::vector<Submission>> calls_of(const api::SubmitRequest& request, const Facts& facts) {
  const std::string key =
      request.idempotency_key.empty() ? os::random_hex(16) : request.idempotency_key;
  std::vector<Submission> jobs;
  for (const api::SubmitRequest::Item& item : request.items) {
    if (item.tasks) {
      return fail(Code::Usage,
                  tr("the ids of Slurm's jobs are not one behind the other: submit each task of an "
                     "array as an item of its own, as gbatch does"));
    }
    if (!item.depends_on_siblings.empty()) {
      return fail(Code::Usage, tr("submit the jobs one after the other, with --depends-on"));
    }
    const Payload payload =
        item.like ? complete(&request.items[*item.like].payload, item.payload) : item.payload;
    const std::string comment = comment_of(request, key, jobs.size());
    jobs.push_back({GF_TRY(sbatch_call(item.spec, payload, facts.nodes, comment)), comment});
  }
  return jobs;
}

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
    const auto took = steady_clock::now() - begun;
    boost::asio::post(io_, [this, then, took, facts = std::move(facts)]() mutable {
      trouble("slurm", facts ? "" : facts.error().message);
      Result<void> done;
      if (facts) {
        draw(*std::move(facts));
      } else {
        done = std::unexpected(std::move(facts).error());
      }
      read_later(std::max<steady_clock::duration>(kBetween, kRestPerWork * took));
      if (then) then(std::move(done));
    });
  });
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
void Reader::change(std::function<Ids(const Facts&)> change, Answer answer) {
  next_.cancel();
  boost::asio::post(commands_,
                    [this, change = std::move(change), answer = std::move(answer), facts = facts_] {
                      boost::asio::post(io_, [this, answer, ids = change(*facts)] {
                        read([ids, answer](const Result<void>&) { answer(ids); });
                      });
                    });
}

void Reader::submit(api::SubmitRequest request, const Principal& /*by*/, Answer answer) {
  change(
      [request = std::move(request)](const Facts& known) -> Ids {
        const std::vector<Submission> jobs = GF_TRY(calls_of(request, known));
        const Facts facts = request.idempotency_key.empty() ? Facts{} : GF_TRY(read_facts());
        return submit_all(facts, jobs);
      },
      std::move(answer));
}

void Reader::command(std::vector<std::string> words,
                     std::vector<JobId> jobs,
                     const Answer& answer) {
  change(
      [words = std::move(words), jobs = std::move(jobs)](const Facts&) -> Ids {
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
    words.push_back(fmt::format("{}", id.value));
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
    ids += fmt::format("{}{}", ids.empty() ? "" : ",", id.value);
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
    ids += fmt::format("{}{}", ids.empty() ? "" : ",", id.value);
  }
  command({"scontrol", "release", ids}, asked.jobs, answer);
}

}  // namespace gflow::slurm

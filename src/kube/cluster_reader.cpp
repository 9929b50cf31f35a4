// SPDX-License-Identifier: Apache-2.0
#include "kube/cluster_reader.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/version.h"
#include "kube/elsewhere.h"
#include "os/clock.h"

namespace gflow::kube {
namespace {

using std::chrono::steady_clock;

/// What comes within this is shown together.
constexpr std::chrono::milliseconds kTogether{200};
constexpr int kRestPerWork = 9;

std::unexpected<Error> reads_only() {
  return fail(Code::Usage, "gflow only reads a cluster");  // no route leads here
}

/// Those of which something is another, new and gone ones, too.
std::set<JobId> changes_between(const engine::State& was, const engine::State& is) {
  std::set<JobId> changed;
  for (const Job* job : was.list({})) {
    if (is.find(job->id) == nullptr) changed.insert(job->id);
  }
  for (const Job* job : is.list({})) {
    const Job* known = was.find(job->id);
    if (known == nullptr || status_of(*known) != status_of(*job) || known->spec != job->spec) {
      changed.insert(job->id);
    }
  }
  return changed;
}

}  // namespace

ClusterReader::ClusterReader(boost::asio::io_context& io, About about)
    : about_(std::move(about)),
      picture_{engine::State({}, ""), {}},
      started_(os::now()),
      next_(io),
      feed_(io) {
  facts_.scheduler = about_.scheduler;
}

Now ClusterReader::now() const { return os::now(); }

void ClusterReader::put(Node node) {
  facts_.nodes.insert_or_assign(node.uid, std::move(node));
  changed();
}

void ClusterReader::node_gone(const std::string& uid) {
  facts_.nodes.erase(uid);
  changed();
}

void ClusterReader::put(Pod pod) {
  facts_.pods.insert_or_assign(pod.uid, std::move(pod));
  changed();
}

void ClusterReader::pod_gone(const std::string& uid) {
  facts_.pods.erase(uid);
  changed();
}

void ClusterReader::limit(engine::GpuQuota quota) {
  facts_.quota = std::move(quota);
  changed();
}

void ClusterReader::trouble(const std::string& kind, const std::string& what) {
  if (what.empty()) {
    troubles_.erase(kind);
  } else {
    troubles_[kind] = what;
  }
}

void ClusterReader::begin() {
  has_begun_ = true;
  draw();
}

void ClusterReader::changed() {
  if (!has_begun_ || std::exchange(is_due_, true)) return;
  next_.expires_at(std::max(not_before_, steady_clock::now() + kTogether));
  next_.async_wait([this](const boost::system::error_code& error) {
    if (!error) draw();
  });
}

void ClusterReader::draw() {
  is_due_ = false;
  const auto begun = steady_clock::now();
  Picture fresh = picture_of(facts_, now(), ++revision_);
  const Picture was = std::exchange(picture_, std::move(fresh));
  feed_.record(revision_, changes_between(was.state, picture_.state));
  const auto ended = steady_clock::now();
  not_before_ = ended + kRestPerWork * (ended - begun);
}

Result<void> ClusterReader::serves(const server::Route& route) const { return only_shows(route); }

std::optional<std::string> ClusterReader::told(const Job& job) const {
  const auto at = picture_.told.find(job.id);
  return at == picture_.told.end() ? std::nullopt : std::optional(at->second);
}

void ClusterReader::submit(api::SubmitRequest /*request*/, const Principal& /*by*/, Answer answer) {
  answer(reads_only());
}

void ClusterReader::request(engine::Event /*event*/, Answer answer, Check /*check*/) {
  answer(reads_only());
}

std::shared_ptr<void> ClusterReader::on_change(std::uint64_t revision,
                                               std::optional<JobId> job,
                                               std::chrono::milliseconds most,
                                               std::function<void()> then) {
  return feed_.wait(revision, job, most, std::move(then));
}

api::DaemonView ClusterReader::daemon(OthersJobs /*shown*/) const {
  api::DaemonView view;
  view.version = std::string(kVersion);
  view.pid = static_cast<int>(::getpid());
  view.started = started_.wall;
  view.up_time = std::chrono::floor<std::chrono::seconds>(now().mono - started_.mono);
  view.mode = "kubernetes";
  view.api_url = api_url_;
  view.devices = about_.cluster;
  for (const auto& [kind, what] : troubles_) view.warnings.push_back(what);
  return view;
}

Result<void> ClusterReader::keep_tokens(std::vector<Token> /*tokens*/) { return reads_only(); }
Result<void> ClusterReader::reload() { return reads_only(); }

}  // namespace gflow::kube

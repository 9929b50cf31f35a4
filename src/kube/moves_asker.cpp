// SPDX-License-Identifier: Apache-2.0
#include "kube/moves_asker.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/translate.h"

namespace gflow::kube {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNoConfigMap = 404;
constexpr int kChangedSince = 409;
constexpr int kItsOwnTrouble = 500;  // it may have been written all the same
constexpr std::chrono::milliseconds kLookAgainAfter{200};
constexpr std::chrono::seconds kPatience{20};  // a scheduler answers within one, and one that takes
                                               // over within the time of a Lease
constexpr std::chrono::seconds kPatienceWithOthers{30};  // together less than a command waits
constexpr const char* kPatch = "application/merge-patch+json";
constexpr std::string_view kMoverRights =
    "; an administrator grants that with the Role gflow-mover of "
    "packaging/kubernetes/rbac-defrag.yaml, where gflow-kube is the scheduler: an extender of "
    "kube-scheduler makes none";

std::string who_does() {
  return tr(
      "moves are made by 'gflow-kube --defrag' as the scheduler of the pods, with "
      "packaging/kubernetes/rbac-defrag.yaml; an extender of kube-scheduler makes none");
}

}  // namespace

void MovesAsker::ask(MovesAsked asked, Done then) {
  Asking asking{std::move(asked), std::move(then)};
  asking.last = Clock::now() + kPatienceWithOthers;
  workers_.urgent([this, asking = std::move(asking)](Api& api) { begin(api, asking); });
}

void MovesAsker::tell(const Asking& asking, Result<void> how) {
  boost::asio::post(io_, [then = asking.then, how = std::move(how)] { then(how); });
}

Error MovesAsker::refused(const Answer& answer) const {
  if (answer.status == kNoConfigMap) {
    return {Code::NotFound, tr_format("there is no ConfigMap {}: {}", path_, who_does())};
  }
  return error_of(answer, "ask for moves", kMoverRights);
}

Result<MovesRecord> MovesAsker::read(Api& api) const {
  const Answer answer = GF_TRY(api.ask({.path = path_}));
  if (!answer.is_ok()) return std::unexpected(refused(answer));
  return moves_record_of(nlohmann::json::parse(answer.body, nullptr, false));
}

/// Whoever else asks at the same time is a conflict: one of both is first. A request without an
/// answer is waited for as long as who asked does; then nobody waits for it.
void MovesAsker::begin(Api& api, Asking asking) {
  const auto record = read(api);
  if (!record) return tell(asking, std::unexpected(record.error()));
  if (record->asked && !record->answer) {
    if (asking.other != record->version) {
      asking.other = record->version;
      asking.until = Clock::now() + kPatience;
    }
    if (Clock::now() < asking.until) {
      if (Clock::now() >= asking.last) {
        return tell(
            asking,
            fail(Code::WrongState, tr("others ask for moves at the same time: ask again later")));
      }
      workers_.urgent_after(kLookAgainAfter,
                            [this, asking = std::move(asking)](Api& one) { begin(one, asking); });
      return;
    }
  } else if (record->is_open()) {
    return tell(asking,
                fail(Code::WrongState,
                     tr_format("room is being made for pod {}: ask again when it has started",
                               record->asked->pods.front().full_name())));
  }
  const auto answer = api.ask({.method = "PATCH",
                               .path = path_,
                               .body = patch_to_ask(asking.asked, record->version),
                               .content_type = kPatch});
  if (answer && answer->status == kChangedSince) {
    return tell(asking,
                fail(Code::WrongState,
                     tr("somebody else asked for moves at the same time: 'gctl defrag' shows the "
                        "moves there are")));
  }
  if (!answer) {
    asking.lost = answer.error();
  } else if (answer->status >= kItsOwnTrouble) {
    asking.lost = refused(*answer);
  } else if (!answer->is_ok()) {
    return tell(asking, std::unexpected(refused(*answer)));
  }
  asking.until = Clock::now() + kPatience;  // where nobody answered, what is there says it
  look(api, std::move(asking));
}

void MovesAsker::look(Api& api, Asking asking) {
  const auto record = read(api);
  if (!record && record.error().code != Code::Unreachable && record.error().code != Code::Timeout) {
    return tell(asking, std::unexpected(record.error()));
  }
  if (record && record->asked != asking.asked && asking.lost) {
    return tell(asking, std::unexpected(*asking.lost));
  }
  if (record) asking.lost.reset();  // it was written
  if (record && record->asked != asking.asked) {
    return tell(asking,
                fail(Code::WrongState,
                     tr("somebody else asked for moves meanwhile, or took these "
                        "back: nothing is moved by them")));
  }
  if (record && record->answer) {
    const MovesAnswer& answer = *record->answer;
    const bool is_made = answer.state == MovesState::Making || answer.state == MovesState::Started;
    if (is_made) return tell(asking, {});
    return tell(asking, fail(Code::WrongState, answer.why));
  }
  const bool is_late = Clock::now() >= asking.until;
  if (is_late && !record) return tell(asking, std::unexpected(record.error()));
  const auto withdrawn = is_late ? withdraw(api, *record) : Result<bool>(false);
  if (!withdrawn) return tell(asking, std::unexpected(withdrawn.error()));
  if (*withdrawn) {
    return tell(asking,
                fail(Code::Timeout,
                     tr_format("no scheduler answered in {} s, and nothing was changed: {}",
                               kPatience.count(),
                               who_does())));
  }
  workers_.urgent_after(kLookAgainAfter,
                        [this, asking = std::move(asking)](Api& other) { look(other, asking); });
}

/// False: it was answered just now.
Result<bool> MovesAsker::withdraw(Api& api, const MovesRecord& record) const {
  const Answer answer = GF_TRY(api.ask({.method = "PATCH",
                                        .path = path_,
                                        .body = patch_to_withdraw(record.version),
                                        .content_type = kPatch}));
  if (answer.is_ok()) return true;
  if (answer.status == kChangedSince) return false;
  return std::unexpected(refused(answer));
}

}  // namespace gflow::kube

// SPDX-License-Identifier: Apache-2.0
#include "server/shared_answers.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "server/entity_tag.h"
#include "server/made_once.h"

namespace gflow::server {
namespace {

constexpr std::size_t kMostAnswers = 8;  // each may be a large page
constexpr std::size_t kShort = 4096;

/// A body and its tag, made when the first of those it is for is answered. From any thread.
class SharedText {
 public:
  explicit SharedText(Reply reply) : reply_(std::move(reply)) {}

  std::shared_ptr<const Made> get() {
    std::call_once(once_, [this] {
      auto made = std::make_shared<Made>();
      made->text = std::move(written(std::move(reply_)).body);
      made->tag = tag_of_text(made->text);
      made_ = std::move(made);
    });
    return made_;
  }

 private:
  std::once_flag once_;
  Reply reply_;
  std::shared_ptr<const Made> made_;
};

/// The same as often as it is wanted.
Reply for_several(Reply reply) {
  const bool is_short = !reply.write && reply.body.size() <= kShort;
  if (reply.make || is_short) return reply;  // made once already, or soon copied
  Reply shared;
  shared.status = reply.status;
  shared.content_type = reply.content_type;
  shared.headers = reply.headers;
  shared.make = [text = std::make_shared<SharedText>(std::move(reply))] { return text->get(); };
  return shared;
}

}  // namespace

struct SharedAnswers::Answer {
  Question question;
  std::uint64_t newest;  ///< it is for those who had arrived then
  std::vector<Respond> waiting{};
  std::optional<Reply> reply{};
};

bool SharedAnswers::join(const Question& question, std::uint64_t number, const Respond& respond) {
  const auto found = std::ranges::find_if(answers_, [&](const auto& answer) {
    return number <= answer->newest && answer->question == question;
  });
  if (found == answers_.end()) return false;
  Answer& answer = **found;
  if (answer.reply) {
    respond(*answer.reply);
  } else {
    answer.waiting.push_back(respond);
  }
  return true;
}

SharedAnswers::Respond SharedAnswers::begin(Question question, Respond respond) {
  std::erase_if(answers_, [&](const auto& answer) { return answer->question == question; });
  if (answers_.size() == kMostAnswers) answers_.erase(answers_.begin());
  const auto answer = std::make_shared<Answer>(Answer{std::move(question), last_});
  answer->waiting.push_back(std::move(respond));
  answers_.push_back(answer);
  return [answer](Reply reply) {
    answer->reply = for_several(std::move(reply));
    for (const Respond& one : std::exchange(answer->waiting, {})) one(*answer->reply);
  };
}

}  // namespace gflow::server

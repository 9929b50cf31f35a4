// SPDX-License-Identifier: Apache-2.0
#include "server/shared_answers.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "server/entity_tag.h"
#include "server/made_once.h"

namespace gflow::server {
namespace {

constexpr std::size_t kMostAnswers = 8;  // each may be a large page
constexpr std::size_t kShort = 4096;

/// The body of a reply and its tag.
class SharedText : public Making {
 public:
  explicit SharedText(Reply reply) : reply_(std::move(reply)) {}

  std::shared_ptr<const Made> get() override {
    std::call_once(once_, [this] {
      auto made = std::make_shared<Made>();
      made->text = std::move(written(std::move(reply_)).body);
      made->tag = tag_of_text(made->text);
      made_ = std::move(made);
      is_made_ = true;
    });
    return made_;
  }
  [[nodiscard]] std::shared_ptr<const Made> if_made() const override {
    return is_made_ ? made_ : nullptr;
  }

 private:
  std::once_flag once_;
  Reply reply_;
  std::shared_ptr<const Made> made_;
  std::atomic<bool> is_made_ = false;
};

/// The same as often as it is wanted.
Reply for_several(Reply reply) {
  const bool is_soon_copied = !reply.write && reply.body.size() <= kShort;
  if (reply.making || is_soon_copied) return reply;
  Reply shared;
  shared.status = reply.status;
  shared.content_type = reply.content_type;
  shared.headers = reply.headers;
  shared.is_short = reply.is_short;
  shared.making = std::make_shared<SharedText>(std::move(reply));
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

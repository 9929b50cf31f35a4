// SPDX-License-Identifier: Apache-2.0
#include "server/event_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/translate.h"
#include "server/shown.h"

namespace gflow::server {
namespace {

/// How many changes of devices and nodes are kept for those who are a little late.
constexpr std::size_t kMaxPassingBlocks = 4096;

std::string as_event(std::string_view type, std::string_view id, const std::string& data) {
  return fmt::format("event: {}\n{}data: {}\n\n", type, id, data);
}

/// For who is not shown what the job is called.
JobEvent unnamed(JobEvent event) {
  event.name.clear();
  return event;
}

}  // namespace

class EventJournal::Block {
 public:
  explicit Block(JobEvents what) : events_(std::move(what)), count_(events_.count()) {}
  /// What is not kept.
  Block(WallTime at, const DeviceChange& change)
      : events_{.at = at},
        type_(api::kDeviceEvent),
        text_(as_event(type_, "", api::write_device_event(at, change))) {}
  Block(WallTime at, NodeChange change)
      : events_{.at = at},
        type_(api::kNodeEvent),
        text_(as_event(type_, "", api::write_node_event(at, change))) {
    if (change.what != NodeChange::What::Unhealthy) return;
    change.reason = in_english(cause_withheld);
    guarded_text_ = as_event(type_, "", api::write_node_event(at, change));
  }

  [[nodiscard]] std::uint64_t first() const { return events_.first; }
  [[nodiscard]] std::uint64_t end() const { return events_.first + count_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] WallTime at() const { return events_.at; }
  [[nodiscard]] bool is_kept() const { return type_.empty(); }

  /// Those the filter takes, of events numbered above `after`; empty if there are none.
  [[nodiscard]] std::shared_ptr<const std::string> text(const api::EventFilter& filter,
                                                        std::uint64_t after) {
    if (!is_kept()) {
      if (!filter.takes(type_)) return std::make_shared<const std::string>();
      const bool is_guarded = filter.sight.others == OthersJobs::None && !guarded_text_.empty();
      return std::make_shared<const std::string>(is_guarded ? guarded_text_ : text_);
    }
    if (filter.takes_all() && after < events_.first) return rendered();
    std::string some;
    each([&](std::uint64_t id, const JobEvent& event) {
      if (id <= after || !filter.takes(event)) return;
      some += filter.sight.names(event.user) ? text_of(id, event) : text_of(id, unnamed(event));
    });
    return std::make_shared<const std::string>(std::move(some));
  }

 private:
  template <typename Show>
  void each(const Show& show) const {
    std::uint64_t id = events_.first;
    for (const JobEvent& event : events_.events) {
      if (event.count == 1) {
        show(id++, event);
        continue;
      }
      for (std::uint64_t i = 0; i < event.count; ++i) show(id++, event.at(i));
    }
  }

  [[nodiscard]] std::string text_of(std::uint64_t id, const JobEvent& event) const {
    return as_event(event_type(event.what),
                    fmt::format("id: {}\n", id),
                    api::write_job_event(id, events_.at, event));
  }

  /// All of them. Kept as long as somebody sends it.
  std::shared_ptr<const std::string> rendered() {
    const std::scoped_lock lock(mutex_);
    if (auto known = rendered_.lock()) return known;
    auto made = std::make_shared<std::string>();
    each([&](std::uint64_t id, const JobEvent& event) { *made += text_of(id, event); });
    rendered_ = made;
    return made;
  }

  JobEvents events_;
  std::size_t count_ = 0;
  std::string_view type_{};     ///< of what is not kept
  std::string text_{};          ///< the same
  std::string guarded_text_{};  ///< for those to whom it would tell of others' jobs; empty: text_
  std::mutex mutex_;
  std::weak_ptr<const std::string> rendered_;  // guarded by the mutex
};

struct EventJournal::Core {
  void trim(WallTime now);
  void push(std::unique_lock<std::mutex> lock, std::shared_ptr<Block> block);

  std::mutex mutex;
  std::deque<std::shared_ptr<Block>> blocks;
  std::uint64_t first_place = 0;  ///< of the first block; places only go up
  std::uint64_t oldest = 1;       ///< events before that are not known any more
  std::uint64_t next = 1;         ///< number of the next event
  std::size_t events = 0;
  std::size_t passing = 0;  ///< blocks that are not kept
  std::map<const Stream*, Body::Then> waiting;
};

void EventJournal::Core::trim(WallTime now) {
  while (!blocks.empty()) {
    const Block& first = *blocks.front();
    const bool is_old = now - first.at() > kEventsKeptFor;
    if (events <= kMaxEventsKept && passing <= kMaxPassingBlocks && !is_old) return;
    events -= first.size();
    if (!first.is_kept()) --passing;
    if (first.is_kept()) oldest = first.end();
    blocks.pop_front();
    ++first_place;
  }
}

/// Each who waits asks again, on a thread of its own.
void EventJournal::Core::push(std::unique_lock<std::mutex> lock, std::shared_ptr<Block> block) {
  const WallTime at = block->at();
  blocks.push_back(std::move(block));
  trim(at);
  const auto told = std::exchange(waiting, {});
  lock.unlock();
  const Piece again = piece_of({});
  for (const auto& [stream, then] : told) then(again);
}

/// One who listens: a place in the journal, and nothing of it.
class EventJournal::Stream : public Body {
 public:
  Stream(std::shared_ptr<Core> core, api::EventQuery query, std::uint64_t place, std::string hello)
      : core_(std::move(core)), query_(std::move(query)), place_(place), hello_(std::move(hello)) {}
  ~Stream() override {
    const std::scoped_lock lock(core_->mutex);
    core_->waiting.erase(this);
  }

  void next(Then then) override {
    if (!hello_.empty()) return then(piece_of(std::exchange(hello_, {})));
    // Of what is not asked for, so much at once.
    constexpr int kMostSkipped = 64;
    for (int i = 0; i < kMostSkipped; ++i) {
      std::shared_ptr<Block> block;
      {
        const std::scoped_lock lock(core_->mutex);
        // Too slow: what it has not seen is not known any more. It comes back, and is told so.
        if (place_ < core_->first_place) return then(last_piece());
        const std::uint64_t at = place_ - core_->first_place;
        if (at >= core_->blocks.size()) {
          if (!query_.follow) return then(last_piece());
          core_->waiting[this] = std::move(then);
          return;
        }
        block = core_->blocks[at];
      }
      ++place_;
      auto text = block->text(query_.filter, query_.after.value_or(0));
      if (!text->empty()) return then({std::move(text)});
    }
    then(piece_of({}));
  }

 private:
  std::shared_ptr<Core> core_;
  api::EventQuery query_;
  std::uint64_t place_;  ///< of the block that is next
  std::string hello_;
};

EventJournal::EventJournal() : core_(std::make_shared<Core>()) {}
EventJournal::~EventJournal() = default;

void EventJournal::add(JobEvents what) {
  JobEvents part{what.first, what.at, {}};
  std::size_t count = 0;
  const auto add_part = [&] {
    auto block = std::make_shared<Block>(std::move(part));
    part = {block->end(), what.at, {}};
    std::unique_lock lock(core_->mutex);
    if (core_->next == 1) core_->oldest = block->first();  // the first of which is known
    core_->events += std::exchange(count, 0);
    core_->next = block->end();
    core_->push(std::move(lock), std::move(block));
  };
  for (JobEvent& event : what.events) {
    for (std::uint64_t at = 0; at < event.count;) {
      const std::uint64_t most =
          std::min<std::uint64_t>(event.count - at, kMaxEventsTogether - count);
      part.events.push_back(event.count == 1 ? std::move(event) : event.part(at, most));
      at += most;
      count += most;
      if (count == kMaxEventsTogether) add_part();
    }
  }
  if (count > 0) add_part();
}

void EventJournal::begin_at(std::uint64_t next) {
  const std::scoped_lock lock(core_->mutex);
  core_->next = std::max(core_->next, next);
  if (core_->events == 0) core_->oldest = core_->next;
}

void EventJournal::add(WallTime at, const DeviceChange& change) {
  pass_on(std::make_shared<Block>(at, change));
}

void EventJournal::add(WallTime at, const NodeChange& change) {
  pass_on(std::make_shared<Block>(at, change));
}

void EventJournal::pass_on(std::shared_ptr<Block> block) {
  std::unique_lock lock(core_->mutex);
  ++core_->passing;
  core_->push(std::move(lock), std::move(block));
}

std::expected<std::shared_ptr<Body>, EventsGone> EventJournal::listen(api::EventQuery query) {
  const std::scoped_lock lock(core_->mutex);
  const std::uint64_t newest = core_->next - 1;
  std::uint64_t place = core_->first_place + core_->blocks.size();
  if (query.after) {
    if (*query.after + 1 < core_->oldest || *query.after > newest) {
      return std::unexpected(EventsGone{
          {Code::NotFound,
           tr_format("what followed event {} is not known any more: read what you need anew, "
                     "then listen from event {} on (after={})",
                     *query.after,
                     newest + 1,
                     newest)},
          newest});
    }
    // From the block with the next one on; of what was not kept, what came after it.
    const auto& blocks = core_->blocks;
    while (place > core_->first_place) {
      const Block& before = *blocks[place - core_->first_place - 1];
      if (before.is_kept() && before.end() <= *query.after + 1) break;
      --place;
      if (before.is_kept() && before.first() <= *query.after) break;
    }
  } else if (!query.follow) {
    place = core_->first_place;
  }
  // By the id somebody who is cut off before the first event knows where to go on.
  const std::uint64_t known = query.after.value_or(query.follow ? newest : core_->oldest - 1);
  std::string hello = fmt::format("retry: 1000\nid: {}\n\n", known);
  return std::make_shared<Stream>(core_, std::move(query), place, std::move(hello));
}

std::size_t EventJournal::listeners() const {
  const std::scoped_lock lock(core_->mutex);
  return core_->waiting.size();
}

}  // namespace gflow::server

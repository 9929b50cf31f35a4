// SPDX-License-Identifier: Apache-2.0
#include "server/event_journal.h"

#include <gtest/gtest.h>

namespace gflow::server {
namespace {

constexpr WallTime kNow{std::chrono::milliseconds(1'772'366'400'000)};

JobEvents events(std::uint64_t first, std::size_t count, WallTime at = kNow) {
  JobEvents made{first, at, {}};
  for (std::size_t i = 0; i < count; ++i) {
    made.events.push_back({.what = Happening::Submitted,
                           .job = JobId(first + i),
                           .user = {1000, i % 2 == 0 ? "alice" : "bob"}});
  }
  return made;
}

/// Reads a body until it waits or ends.
struct Listener {
  explicit Listener(std::shared_ptr<Body> opened) : body(std::move(opened)) { read(); }
  explicit Listener(std::expected<std::shared_ptr<Body>, EventsGone> opened)
      : Listener(std::move(opened).value()) {}
  void read() {
    reading = true;
    do {
      answered = false;
      body->next([this](const Piece& piece) { take(piece); });
    } while (answered && !ended);
    reading = false;
  }
  /// Comes from within next(), or later with what it waited for.
  void take(const Piece& piece) {
    answered = true;
    ended = !piece.bytes;
    if (ended) return;
    text += *piece.bytes;
    last = piece.bytes;
    if (!reading) read();
  }
  [[nodiscard]] std::vector<std::uint64_t> ids() const {
    std::vector<std::uint64_t> found;
    for (std::size_t at = text.find("\nid: "); at != std::string::npos;
         at = text.find("\nid: ", at + 1)) {
      found.push_back(std::stoull(text.substr(at + 5)));
    }
    return found;
  }

  std::shared_ptr<Body> body;
  std::string text;
  std::shared_ptr<const std::string> last;
  bool ended = false;
  bool answered = false;
  bool reading = false;
};

using Ids = std::vector<std::uint64_t>;

TEST(EventJournal, TellsWhatComesToAllWithOneText) {
  EventJournal journal;
  journal.begin_at(10);
  Listener one(journal.listen({}));
  Listener other(journal.listen({}));
  EXPECT_EQ(journal.listeners(), 2U);
  EXPECT_EQ(one.ids(), Ids{9});
  journal.add(events(10, 2));
  EXPECT_EQ(one.ids(), (Ids{9, 10, 11}));
  EXPECT_EQ(other.text, one.text);
  EXPECT_NE(one.text.find("event: job.submitted\nid: 10\ndata: {"), std::string::npos);
}

TEST(EventJournal, GoesOnAfterWhatWasSeenAndTellsWhatIsGone) {
  EventJournal journal;
  journal.begin_at(10);
  journal.add(events(10, 5));
  journal.add(kNow, DeviceChange{.node = "lab1", .gpu = 3});
  journal.add(events(15, 5));
  const auto after = [](std::uint64_t id) {
    return api::EventQuery{.filter = {}, .after = id, .follow = false};
  };
  EXPECT_EQ(Listener(journal.listen(after(12))).ids(), (Ids{12, 13, 14, 15, 16, 17, 18, 19}));
  EXPECT_EQ(Listener(journal.listen(after(14))).ids(), (Ids{14, 15, 16, 17, 18, 19}));
  EXPECT_EQ(Listener(journal.listen(after(9))).ids().size(), 11U);
  EXPECT_EQ(Listener(journal.listen(after(19))).ids(), Ids{19});
  EXPECT_TRUE(Listener(journal.listen(after(14))).text.contains("device.changed"));
  EXPECT_FALSE(Listener(journal.listen(after(15))).text.contains("device.changed"));
  for (const std::uint64_t gone : {std::uint64_t{8}, std::uint64_t{20}, UINT64_MAX}) {
    const auto listened = journal.listen(after(gone));
    ASSERT_FALSE(listened) << gone;
    EXPECT_EQ(listened.error().after, 19U);
  }
  journal.add(events(20, 1, kNow + kEventsKeptFor + std::chrono::hours(1)));
  EXPECT_FALSE(journal.listen(after(18)));
  EXPECT_EQ(Listener(journal.listen(after(19))).ids(), (Ids{19, 20}));
}

TEST(EventJournal, TellsWhatHappenedToManyAtOnceOfEach) {
  EventJournal journal;
  journal.begin_at(10);
  JobEvents many = events(10, 1);
  many.events.push_back({.what = Happening::Submitted,
                         .job = JobId(100),
                         .name = "exp_9",
                         .count = 3 * kMaxEventsTogether,
                         .naming = {.step = 2}});
  journal.add(many);
  journal.add(events(11 + 3 * kMaxEventsTogether, 1));
  const auto after = [](std::uint64_t id) {
    return api::EventQuery{.filter = {}, .after = id, .follow = false};
  };
  const Listener all(journal.listen(after(9)));
  Ids wanted;
  for (std::uint64_t id = 9; id <= 11 + 3 * kMaxEventsTogether; ++id) wanted.push_back(id);
  EXPECT_EQ(all.ids(), wanted);
  EXPECT_TRUE(all.text.contains(R"("job":100,)"));
  EXPECT_TRUE(all.text.contains(R"("exp_9")"));
  EXPECT_TRUE(all.text.contains(R"("exp_11")"));
  EXPECT_TRUE(all.text.contains(R"("exp_3007")"));
  EXPECT_FALSE(all.text.contains(R"("exp_3009")"));
  // From the midst of them on.
  const Listener some(journal.listen(after(1000)));
  EXPECT_EQ(some.ids(), Ids(wanted.begin() + 991, wanted.end()));
  api::EventQuery one = after(9);
  one.filter.jobs = {JobId(1000)};
  EXPECT_EQ(Listener(journal.listen(one)).ids(), (Ids{9, 911}));
}

TEST(EventJournal, TellsOnlyWhatIsAskedFor) {
  EventJournal journal;
  journal.begin_at(10);
  Listener jobs(journal.listen({.filter = {.jobs = {JobId(11), JobId(13)}}}));
  Listener users(journal.listen({.filter = {.users = {"bob"}}}));
  Listener devices(journal.listen({.filter = {.types = {"device.changed"}}}));
  journal.add(events(10, 5));
  journal.add(kNow, DeviceChange{.node = "lab1", .gpu = 3});
  EXPECT_EQ(jobs.ids(), (Ids{9, 11, 13}));
  EXPECT_EQ(users.ids(), (Ids{9, 11, 13}));
  EXPECT_EQ(devices.ids(), Ids{9});
  EXPECT_TRUE(devices.text.contains("\"gpu\":3"));
  Listener nodes(journal.listen({.filter = {.types = {"node.changed"}}}));
  journal.add(kNow, DeviceChange{.node = "lab1", .gpu = 4});
  journal.add(kNow, NodeChange{.node = "lab1", .what = NodeChange::What::Drained, .by = "root"});
  EXPECT_EQ(nodes.ids(), Ids{14}) << "and none of its own";
  EXPECT_TRUE(
      nodes.text.contains(R"("change":"drained","gpu":null,"uuid":"","reason":null,"by":"root")"));
  EXPECT_FALSE(nodes.text.contains("device.changed"));
  EXPECT_FALSE(devices.text.contains("node.changed"));
}

TEST(EventJournal, WhyLaunchesFailIsNotForThoseWhoAreShownNothingOfOthers) {
  EventJournal journal;
  Listener all(journal.listen({}));
  Listener none(journal.listen({.filter = {.sight = {.others = OthersJobs::None}}}));
  journal.add(
      kNow,
      NodeChange{
          .node = "lab1", .what = NodeChange::What::Unhealthy, .reason = "open 'attempts/7.1'"});
  journal.add(kNow,
              NodeChange{.node = "lab1", .what = NodeChange::What::Drained, .reason = "loud fan"});
  (void)all.ids();
  (void)none.ids();
  EXPECT_TRUE(all.text.contains("attempts/7.1")) << all.text;
  EXPECT_FALSE(none.text.contains("attempts/7.1")) << none.text;
  EXPECT_TRUE(none.text.contains("an operator is told the reason")) << none.text;
  EXPECT_TRUE(none.text.contains("loud fan")) << none.text;
}

TEST(EventJournal, DropsWhoIsTooSlow) {
  EventJournal journal;
  journal.begin_at(1);
  const auto slow = journal.listen({}).value();
  std::uint64_t next = 1;
  for (; next < 2 * kMaxEventsKept; next += kMaxEventsTogether) {
    journal.add(events(next, kMaxEventsTogether));
  }
  Listener late(slow);
  EXPECT_TRUE(late.ended);
  EXPECT_EQ(late.ids(), Ids{0});
}

}  // namespace
}  // namespace gflow::server

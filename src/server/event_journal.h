// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "api/event.h"
#include "server/body.h"

namespace gflow::server {

/// What followed an event is not known any more, or there never was such an event.
struct EventsGone : Error {
  std::uint64_t after = 0;  ///< the latest event, behind which one may begin
};

/// What happened lately, for those who listen: as much as the store keeps, and what is not kept.
/// Written on the loop's thread, read on any.
class EventJournal {
 public:
  /// What was told at once; rendered by the first who sends it.
  class Block;

  EventJournal();
  ~EventJournal();
  EventJournal(const EventJournal&) = delete;
  EventJournal& operator=(const EventJournal&) = delete;

  /// What happened, once it is on disk. At the start: what is kept; `next` is the number of the
  /// next event.
  void add(JobEvents what);
  void begin_at(std::uint64_t next);
  /// Of a device or a node: told to those who listen now, and not kept.
  void add(WallTime at, const DeviceChange& change);
  void add(WallTime at, const NodeChange& change);

  /// The events asked for, as text/event-stream; all that come, or all there are now.
  [[nodiscard]] std::expected<std::shared_ptr<Body>, EventsGone> listen(api::EventQuery query);
  /// How many wait for what comes.
  [[nodiscard]] std::size_t listeners() const;

 private:
  class Stream;
  void pass_on(std::shared_ptr<Block> block);
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace gflow::server

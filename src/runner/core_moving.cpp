// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "runner/core.h"

/// Attempts that move to another GPU: gflow-park takes their GPU memory to host memory, as of those
/// that are suspended, and gives it back there. They run on, and their calls of the driver wait. On
/// which of the two it is to come to lie is in the record before the first process is given any,
/// and where it lay at last in a file of its own before the record goes.
namespace gflow::runner {

void Runner::Core::move(Key key, const GpuMove& move, Memory most) {
  const auto found = attempts.find(key);
  if (found == attempts.end()) return;
  ParkingJob& parking = found->second.parking;
  parking.stands = false;
  if (parking.move != move) parking.refused.clear();
  parking.move = move;
  parking.most = most;
  bring_on_parking(found->second);
}

/// A record of one that nobody told to move is of a daemon whose store is lost: the one there is
/// has the job where it was, and it comes back to there.
void Runner::Core::bring_on_move(Watched& watched, const ParkRecord& record) {
  ParkingJob& parking = watched.parking;
  if (!parking.move) {
    parking.move = GpuMove{.from_uuid = record.move->from, .to_uuid = record.move->to};
    parking.refused = "that it was to move is not known any more";
  }
  send(watched, attempt::ResumeJob{});  // it may have been told to stand for want of room
  if (record.how == Parking::None) {
    const auto at = watched.files.moved_to();
    if (!at) return park_again_later(watched, at.error().message);
    if (*at && (*at)->uuid == parking.move->to_uuid) return report_move(watched, "");
    if (!record.refused.empty()) return report_move(watched, record.refused);
    return begin_park(watched, record);
  }
  if (record.how == Parking::Parked) park_is_done(watched);
  // What begins to use a GPU after the move would use the old one, which is another's by then.
  const bool has_none = record.how == Parking::Parked && !record.move && record.by_gpu.empty();
  if (has_none && parking.refused.empty()) {
    parking.refused = "none of its programs uses its GPU yet";
  }
  const bool is_taken = record.how == Parking::Parked || record.move;
  if (is_taken || !parking.refused.empty()) return begin_unpark(watched, record);
  begin_park(watched, record);
}

/// A line that names other GPUs than it was told is damaged.
ParkRecord::Move Runner::Core::direction_of(const ParkingJob& parking, const ParkRecord& record) {
  const GpuMove& told = *parking.move;
  const bool is_its =
      record.move && record.move->from == told.from_uuid && record.move->to == told.to_uuid;
  if (is_its && record.move->is_back) return *record.move;
  const bool is_back = !parking.refused.empty();
  return {.from = told.from_uuid,
          .to = told.to_uuid,
          .is_back = is_back,
          .why = is_back ? parking.refused : ""};
}

/// All of it is in host memory, and cannot come to lie there.
void Runner::Core::turn_back(Watched& watched, std::string why) {
  watched.parking.refused = std::move(why);
  if (const auto noted = watched.files.note_parked(); !noted) {
    return park_again_later(watched, noted.error().message);
  }
  bring_on_parking(watched);
}

/// It has all of its memory on one GPU: on the new one, or still, or again, on the old one. Why it
/// did not move is not remembered: who asks for it again has it tried again.
void Runner::Core::moved(Watched& watched) {
  ParkingJob& parking = watched.parking;
  const auto record = watched.files.park_record();
  if (!record) return park_again_later(watched, record.error().message);
  const bool is_there = record->move && !record->move->is_back;
  const GpuMove& told = *parking.move;
  const bool was_told = told.from != told.to;
  // Also where it came back: it may have been noted to be there before it was told anew.
  if (record->move && was_told) {
    const AttemptFiles::MovedTo there = is_there ? AttemptFiles::MovedTo{told.to, told.to_uuid}
                                                 : AttemptFiles::MovedTo{told.from, told.from_uuid};
    if (const auto noted = watched.files.note_moved_to(there); !noted) {
      return park_again_later(watched, noted.error().message);
    }
  }
  const std::string refused = is_there ? "" : record->move ? record->move->why : parking.refused;
  if (const auto ended = watched.files.end_parking(); !ended) {
    return park_again_later(watched, ended.error().message);
  }
  park_is_done(watched);
  report_move(watched, refused);
  if (!was_told && !parking.stands) report_parking(watched, {});
  if (parking.stands) bring_on_parking(watched);
}

void Runner::Core::report_move(Watched& watched, std::string refused) {
  ParkingJob& parking = watched.parking;
  parking.move.reset();
  parking.refused.clear();
  parking.is_its_own = true;
  parking.most = Memory{};
  report(Moved{watched.job, watched.attempt, std::move(refused)});
}

}  // namespace gflow::runner

// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/screen_stream.h"

#include <memory>
#include <utility>

namespace gflow::cli {

ScreenStream::ScreenStream(const Listing& listing, const Viewer& viewer, const Painter& paint)
    : listing_(listing),
      viewer_(viewer),
      rows_(listing, viewer),
      folder_(listing.folded ? Folding::Waiting : Folding::None),
      table_(viewer.columns, listing.header, paint) {
  rows_.show_users();  // those to come may be of others
}

std::string ScreenStream::add(std::vector<api::JobView> jobs) {
  rows_.look_at(jobs);
  for (api::JobView& job : jobs) {
    counts_.add(job, viewer_.user);
    if (job.status == Status::Queued && !first_waiting_) first_waiting_ = job.id;
    folder_.add(std::make_shared<const api::JobView>(std::move(job)));
  }
  return text_of(folder_.take_complete());
}

std::string ScreenStream::end() {
  std::string out = text_of(folder_.take_all());
  if (listing_.header == Header::Hidden) return out;
  return out + '\n' + counts_text(counts_, {}, viewer_.columns) + '\n';
}

std::string ScreenStream::text_of(const std::vector<FoldedJobs>& jobs) {
  if (jobs.empty()) return "";
  std::vector<Row> rows;
  for (const FoldedJobs& one : jobs) rows.push_back(rows_.row(one));
  return table_.text(rows_.columns(), rows);
}

}  // namespace gflow::cli

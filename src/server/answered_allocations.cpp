// SPDX-License-Identifier: Apache-2.0
#include "server/answered_allocations.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/text.h"
#include "os/file.h"

namespace gflow::server {

AnsweredAllocations::AnsweredAllocations(std::string path, std::string boot_id)
    : path_(std::move(path)), boot_id_(std::move(boot_id)) {
  const auto text = os::read_if_exists(path_, Memory::gib(1)).value_or(std::nullopt);
  if (!text) return;
  const auto lines = split(*text, '\n');
  if (lines.empty() || lines.front() != boot_id_) return;
  known_.emplace();
  for (const std::string_view line : lines) {
    if (const auto number = parse_number(line)) known_->insert(JobId(*number));
  }
}

bool AnsweredAllocations::may_be_known(JobId allocation) const {
  return !known_ || known_->contains(allocation);
}

void AnsweredAllocations::begin(const std::vector<JobId>& allocations) {
  std::string text = boot_id_ + "\n";
  for (const JobId id : allocations) text += fmt::format("{}\n", id.value);
  const std::string fresh = path_ + ".new";
  auto file = os::open_file(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
  if (!file || !os::write_all(file->get(), text) || ::rename(fresh.c_str(), path_.c_str()) != 0) {
    return forget_all();
  }
  file_ = std::move(*file);
}

/// One call, so that a line is there or is not, whenever the process is killed.
void AnsweredAllocations::note(JobId allocation) const {
  const std::string line = fmt::format("{}\n", allocation.value);
  if (::write(file_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    forget_all();  // the disk is full: a file that is removed says that nothing is known
  }
}

void AnsweredAllocations::forget_all() const { (void)::unlink(path_.c_str()); }

}  // namespace gflow::server

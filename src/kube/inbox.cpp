// SPDX-License-Identifier: Apache-2.0
#include "kube/inbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "os/file.h"

namespace gflow::kube {

Result<Inbox> Inbox::open() {
  os::Fd ready(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ready.valid()) return os::errno_error("eventfd");
  return Inbox(std::move(ready));
}

void Inbox::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  const std::uint64_t one = 1;
  (void)!::write(ready_.get(), &one, sizeof(one));  // full: it is readable then
}

std::vector<Inbox::Task> Inbox::take() {
  std::uint64_t count = 0;
  (void)!::read(ready_.get(), &count, sizeof(count));  // before: what comes now is told again
  const std::lock_guard lock(mutex_);
  return std::exchange(tasks_, {});
}

}  // namespace gflow::kube

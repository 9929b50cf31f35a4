// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/memory.h"
#include "base/result.h"
#include "store/store.h"

namespace gflow::daemon {

/// When copies of the database are made, and how many are kept.
struct BackupRules {
  std::chrono::seconds interval{3600};
  std::size_t keep = 3;  ///< 0: none are made
  Memory leave_free{};   ///< on the disk, besides as much as the copy takes
};

/// Copies of the database, made on the loop in slices of a millisecond or two, with pauses for what
/// else is to be done; a thread of its own waits for the disk. None is made when nothing was
/// committed since the last.
class Backups {
 public:
  /// Borrows all for its lifetime.
  Backups(boost::asio::io_context& io, store::Store& store, std::string database);
  ~Backups();
  Backups(const Backups&) = delete;
  Backups& operator=(const Backups&) = delete;

  /// From now on by these rules.
  void set(const BackupRules& rules);
  /// The loop has ended in order: one more, if that is the work of a moment.
  void finish();
  /// Why there is no new copy, for a person; "" if all is well.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  void schedule(std::chrono::milliseconds in);
  void begin();
  void copy_on();
  void publish();
  void done(const Result<void>& published);
  [[nodiscard]] Result<void> start();
  [[nodiscard]] Result<void> check_room() const;
  void give_up(const Error& error);

  boost::asio::io_context& io_;
  store::Store& store_;
  std::string database_;
  BackupRules rules_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<store::Backup> backup_;  ///< while pages are copied
  std::uint64_t commits_ = 0;              ///< in the copy being made
  std::optional<std::uint64_t> saved_;     ///< commits in the newest copy, if it is ours
  std::string trouble_;
  std::jthread disk_;
};

}  // namespace gflow::daemon

// SPDX-License-Identifier: Apache-2.0
#include "daemon/backups.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "os/clock.h"

namespace gflow::daemon {
namespace {

using std::chrono::milliseconds;

constexpr int kSlicePages = 256;  // of 4 KiB
constexpr milliseconds kPause{5};
/// A daemon that is started again and again makes none before it has run so long.
constexpr milliseconds kSoonest{60'000};
/// At the end of the daemon nobody wants to wait.
constexpr std::uintmax_t kMomentBytes = 16U << 20;

std::uintmax_t size_of_file(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

/// How long ago the newest copy was made; empty if there is none.
std::optional<milliseconds> newest_age(const std::string& database) {
  const auto files = store::list_backups(database);
  if (!files || files->empty()) return std::nullopt;
  return os::now().wall - files->back().taken;
}

}  // namespace

Backups::Backups(boost::asio::io_context& io, store::Store& store, std::string database)
    : io_(io), store_(store), database_(std::move(database)), timer_(io) {}

Backups::~Backups() = default;

void Backups::set(const BackupRules& rules) {
  rules_ = rules;
  timer_.cancel();
  if (rules_.keep == 0) {
    backup_.reset();
    trouble_.clear();
    return;
  }
  if (backup_) return copy_on();
  const milliseconds interval = rules_.interval;
  const milliseconds age =
      std::clamp(newest_age(database_).value_or(milliseconds(0)), milliseconds(0), interval);
  schedule(std::max(interval - age, std::min(interval, kSoonest)));
}

void Backups::schedule(milliseconds in) {
  timer_.expires_after(in);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) begin();
  });
}

Result<void> Backups::check_room() const {
  std::error_code error;
  const auto space = std::filesystem::space(std::filesystem::path(database_).parent_path(), error);
  const std::uintmax_t size = size_of_file(database_) + size_of_file(database_ + "-wal");
  const auto leave = static_cast<std::uintmax_t>(rules_.leave_free.bytes);
  if (error || space.available >= size + std::max(size, leave)) return {};
  return fail(Code::Exhausted,
              fmt::format("there is no room for another copy of '{}'", printable(database_)));
}

Result<void> Backups::start() {
  GF_CHECK(check_room());
  backup_ = GF_TRY(store_.back_up());
  commits_ = store_.commits();
  return {};
}

void Backups::begin() {
  if (saved_ == store_.commits()) return schedule(rules_.interval);
  if (auto started = start(); !started) return give_up(started.error());
  copy_on();
}

void Backups::copy_on() {
  const auto copied = backup_->copy(kSlicePages);
  if (!copied) return give_up(copied.error());
  if (*copied) return publish();
  timer_.expires_after(kPause);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) copy_on();
  });
}

void Backups::publish() {
  backup_.reset();
  disk_ = std::jthread([this, database = database_, taken = os::now().wall, keep = rules_.keep] {
    auto published = store::publish_backup(database, taken, keep);
    boost::asio::post(io_, [this, published = std::move(published)] { done(published); });
  });
}

void Backups::done(const Result<void>& published) {
  if (!published) return give_up(published.error());
  saved_ = commits_;
  trouble_.clear();
  spdlog::info("the database is copied, {} of it", commits_);
  schedule(rules_.interval);
}

void Backups::give_up(const Error& error) {
  backup_.reset();
  (void)::unlink(store::backup_part(database_).c_str());  // it may not be there
  trouble_ = fmt::format("no backup of the database: {}", error.message);
  spdlog::warn("{}, ignoring", trouble_);
  schedule(rules_.interval);
}

void Backups::finish() {
  if (disk_.joinable()) disk_.join();
  backup_.reset();
  if (rules_.keep == 0 || saved_ == store_.commits() || store_.commits() == 0) return;
  if (size_of_file(database_) + size_of_file(database_ + "-wal") > kMomentBytes) return;
  // One that is stopped and started all the time would soon keep none that is an hour old.
  const auto age = newest_age(database_);
  if (age && *age < milliseconds(rules_.interval) / 4) return;
  if (auto started = start(); !started) return;
  const auto copied = backup_->copy(-1);
  backup_.reset();
  if (!copied || !*copied) return;
  if (auto done = store::publish_backup(database_, os::now().wall, rules_.keep); !done) {
    spdlog::warn("{}, ignoring", done.error().message);
  }
}

}  // namespace gflow::daemon

// SPDX-License-Identifier: Apache-2.0
#include "runner/attempt_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/text.h"
#include "os/file.h"
#include "runner/spare_files.h"
#include "share/account.h"
#include "share/account_file.h"
#include "share/gang.h"

namespace gflow::runner {
namespace {

/// The last part of a path, if it can be the name of a file.
std::string file_name(std::string_view path, const char* otherwise) {
  const std::string_view name = path.substr(path.find_last_of('/') + 1);
  constexpr std::size_t kMax = 200;
  const bool usable = !name.empty() && name != "." && name != ".." && name.size() <= kMax &&
                      name.find('\0') == std::string_view::npos;
  return std::string(usable ? name : otherwise);
}

/// In the directory of all attempts, where none has this name.
constexpr const char* kPrepared = "/revoked";

std::string parent_of(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

Result<void> make_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0) return os::errno_error("create directory", path);
  return {};
}

mode_t passage_mode(const attempt::Order& order) { return order.uid ? 0711 : 0700; }

/// Makes a directory that users of jobs may pass through to files of theirs, and see nothing else
/// in: it stays the daemon's, so that no user can put anything there, or in the place of what is.
Result<void> make_passage(const std::string& path, const attempt::Order& order) {
  GF_CHECK(make_directory(path, 0700));
  // By chmod: what mkdir sets is less the umask.
  if (order.uid && ::chmod(path.c_str(), passage_mode(order)) != 0) {
    return os::errno_error("open to the users of jobs", path);
  }
  return {};
}

/// Makes a file of its user's in a directory of the daemon's that is there.
Result<void> add_for_user(const std::string& path,
                          const std::string& content,
                          mode_t mode,
                          const attempt::Order& order) {
  const os::Fd file = GF_TRY(os::open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode));
  if (auto written = os::write_all(file.get(), content); !written) {
    return with_context(written.error(), path);
  }
  if (order.uid && ::fchown(file.get(), *order.uid, static_cast<gid_t>(-1)) != 0) {
    return os::errno_error("give to the user of the job", path);
  }
  return {};
}

/// The same, and the directory.
Result<void> write_for_user(const std::string& path,
                            const std::string& content,
                            mode_t mode,
                            const attempt::Order& order) {
  GF_CHECK(make_passage(parent_of(path), order));
  return add_for_user(path, content, mode, order);
}

}  // namespace

std::string attempt_name(JobId job, int attempt) {
  return std::to_string(job.value) + "." + std::to_string(attempt);
}

std::optional<std::pair<JobId, int>> parse_attempt_name(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto job = parse_number(name.substr(0, dot));
  const auto attempt = parse_number(name.substr(dot + 1));
  if (!job || !attempt || *attempt > 1'000'000'000) return std::nullopt;
  return std::pair(JobId(*job), static_cast<int>(*attempt));
}

AttemptFiles::AttemptFiles(const std::string& attempts_dir, JobId job, int attempt)
    : job_(job),
      attempt_(attempt),
      directory_(attempts_dir + "/" + attempt_name(job, attempt)),
      prepared_(attempts_dir + kPrepared) {}

Result<void> AttemptFiles::prepare_to_revoke(const std::string& attempts_dir) {
  const std::string path = attempts_dir + kPrepared;
  const std::string content = attempt::encode_claim(attempt::Revoked{});
  // Not written again if it is there: it has a name in each attempt that was revoked.
  if (os::read_file(path) == content) return {};
  (void)::unlink(path.c_str());
  return os::write_file(path, content);
}

std::string AttemptFiles::config_path(const Payload& payload) const {
  if (!payload.config_name) return {};
  return directory_ + "/config/" + file_name(*payload.config_name, "config");
}

std::string AttemptFiles::script_path(const Payload& payload) const {
  if (!payload.script) return {};
  const std::string_view name = payload.argv.empty() ? std::string_view() : payload.argv.front();
  return directory_ + "/script/" + file_name(name, "script");
}

std::string AttemptFiles::account_path() const {
  return share_directory() + "/" + share::kAccountName;
}

GpuLimits AttemptFiles::gpu_limits() const {
  struct stat facts{};
  if (::lstat(account_path().c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  const bool is_of_this_gflow = facts.st_size == sizeof(share::Account);
  return {.memory = GpuLimit::Interposer,
          .compute = is_of_this_gflow ? GpuLimit::Interposer : GpuLimit::None};
}

/// The account is its user's, who may have made anything of it: it is written to, where this
/// gflow's has the limit, and neither mapped nor believed.
Result<void> AttemptFiles::change_share_limit(Share limit) const {
  const std::string path = account_path();
  if (gpu_limits().compute == GpuLimit::None) return {};
  const os::Fd file = GF_TRY(os::open_file(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK, 0));
  const auto parts = static_cast<std::uint64_t>(limit.parts);
  for (std::size_t device = 0; device < share::kMaxDevices; ++device) {
    const std::size_t at = offsetof(share::Account, devices) +
                           device * sizeof(share::DeviceAccount) +
                           offsetof(share::DeviceAccount, share_limit);
    if (::pwrite(file.get(), &parts, sizeof parts, static_cast<off_t>(at)) != sizeof parts) {
      return os::errno_error("write", path);
    }
  }
  return {};
}

/// One file for all attempts, with a name in the directory of each: their users lock it, and can
/// neither take it away nor put another in its place. It has no content, and nobody maps it.
Result<void> AttemptFiles::link_turn(const TurnFile& turn, const attempt::Order& order) const {
  const std::string path = parent_of(directory_) + "/" + turn.file;
  const mode_t mode = order.uid ? 0666 : 0600;
  const os::Fd file = GF_TRY(os::open_file(path, O_WRONLY | O_CREAT | O_NOFOLLOW, mode));
  // What open() sets is less the umask.
  if (order.uid && ::fchmod(file.get(), mode) != 0) return os::errno_error("open to users", path);
  const std::string own = share_directory() + "/" + turn.name;
  if (::link(path.c_str(), own.c_str()) != 0) return os::errno_error("link", own);
  return {};
}

/// Where there are several, its processes tell each other who has which.
Result<void> AttemptFiles::make_turns(const GpuPart& part, const attempt::Order& order) const {
  for (const TurnFile& turn : part.turns) GF_CHECK(link_turn(turn, order));
  if (part.turns.size() < 2) return {};
  return add_for_user(
      share_directory() + "/" + share::kGangName, share::encode_gang(), 0600, order);
}

std::string AttemptFiles::wanted_path() const {
  return share_directory() + "/" + share::kWantedName;
}

Result<void> AttemptFiles::make_wanted(const attempt::Order& order) const {
  const std::string path = wanted_path();
  if (::mkfifo(path.c_str(), 0600) != 0) return os::errno_error("make", path);
  if (order.uid && ::lchown(path.c_str(), *order.uid, static_cast<gid_t>(-1)) != 0) {
    return os::errno_error("give to the user of the job", path);
  }
  return {};
}

bool AttemptFiles::watches() const {
  struct stat facts{};
  return ::lstat(wanted_path().c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode);
}

/// Open for writing, too, so that it does not end with the first who wrote.
Result<os::Fd> AttemptFiles::open_wanted() const {
  const std::string path = wanted_path();
  os::Fd pipe = GF_TRY(os::open_file(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts{};
  if (::fstat(pipe.get(), &facts) != 0) return os::errno_error("look at", path);
  if (!S_ISFIFO(facts.st_mode)) return fail(Code::WrongState, path + " is no pipe any more");
  return pipe;
}

Result<void> AttemptFiles::tell_lent(bool is_lent) const {
  const std::string path = account_path();
  const os::Fd file = GF_TRY(os::open_file(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK));
  const std::uint32_t word = is_lent ? share::kLent : share::kNotLent;
  constexpr off_t kAt = offsetof(share::Account, lent);
  if (::pwrite(file.get(), &word, sizeof word, kAt) == sizeof word) return {};
  return os::errno_error("write", path);
}

/// What they are told now: that it is their own where there is no account. Empty if it cannot be
/// read.
std::optional<std::uint32_t> AttemptFiles::lent_word() const {
  const auto file = os::open_file(account_path(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file && file.error().code == Code::NotFound) return share::kNotLent;
  std::uint32_t word = 0;
  constexpr off_t kAt = offsetof(share::Account, lent);
  const bool is_read = file && ::pread(file->get(), &word, sizeof word, kAt) == sizeof word;
  return is_read ? std::optional(word) : std::nullopt;
}

bool AttemptFiles::is_told_lent() const { return lent_word() != share::kNotLent; }
bool AttemptFiles::is_wanted() const { return lent_word() == share::kWanted; }

Result<void> AttemptFiles::create(const attempt::Order& order,
                                  const Payload& payload,
                                  const GpuPart& part,
                                  SpareFiles* spare) const {
  const auto text = attempt::encode_order(order);
  if (!text) return fail(Code::Usage, text.error());
  const bool can_be_spare =
      spare != nullptr && !payload.script && !payload.config_name && part.account.empty();
  if (can_be_spare && GF_TRY(spare->use(*this, *text, passage_mode(order)))) return {};
  GF_CHECK(make_passage(directory_, order));
  if (payload.script) {
    GF_CHECK(write_for_user(script_path(payload), *payload.script, 0700, order));
  }
  if (payload.config_name) {
    GF_CHECK(write_for_user(config_path(payload), payload.config, 0600, order));
  }
  if (!part.account.empty()) {
    GF_CHECK(write_for_user(account_path(), part.account, 0600, order));
    GF_CHECK(make_turns(part, order));
    if (part.watches) GF_CHECK(make_wanted(order));
  }
  return os::write_file(directory_ + "/order", *text);
}

Result<ParkRecord> AttemptFiles::park_record() const {
  for (const auto& [path, how] :
       {std::pair(parking_path(), Parking::Begun), std::pair(parked_path(), Parking::Parked)}) {
    const auto text = GF_TRY(os::read_if_exists(path));
    if (!text) continue;
    ParkRecord record = parse_park_record(*text);
    record.how = how;
    return record;
  }
  ParkRecord record;
  record.refused = printable(GF_TRY(os::read_if_exists(unparkable_path())).value_or(""));
  return record;
}

Result<os::Fd> AttemptFiles::begin_parking(Memory most) const {
  const std::string path = parking_path();
  if (::rename(parked_path().c_str(), path.c_str()) != 0 && errno != ENOENT) {
    return os::errno_error("rename", path);
  }
  os::Fd file = GF_TRY(os::open_file(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return os::errno_error("lock", path);
    return fail(Code::WrongState, "gflow-park is still at it, as it was begun before");
  }
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0) return os::errno_error("look at", path);
  if (facts.st_size == 0) GF_CHECK(os::write_all(file.get(), park_record_head(most)));
  return file;
}

Result<void> AttemptFiles::note_parked() const {
  if (::rename(parking_path().c_str(), parked_path().c_str()) == 0) return {};
  return os::errno_error("rename", parking_path());
}

Result<void> AttemptFiles::end_parking(const std::string& refused) const {
  // Where it cannot be written it is found out once more.
  if (!refused.empty()) (void)os::write_file(unparkable_path(), refused);
  for (const std::string& path : {parking_path(), parked_path()}) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return os::errno_error("remove", path);
  }
  return {};
}

/// "2 GPU-6f4c...".
Result<std::optional<AttemptFiles::MovedTo>> AttemptFiles::moved_to() const {
  constexpr std::uint64_t kMost = 1'000'000;
  const std::string text = GF_TRY(os::read_if_exists(moved_to_path())).value_or("");
  const std::size_t space = text.find(' ');
  const auto gpu = parse_number(text.substr(0, space));
  if (space == std::string::npos || !gpu || *gpu > kMost) return std::nullopt;
  return MovedTo{static_cast<int>(*gpu), text.substr(space + 1)};
}

/// Whole or not at all.
Result<void> AttemptFiles::note_moved_to(const MovedTo& there) const {
  const std::string written = moved_to_path() + ".new";
  GF_CHECK(os::write_file(written, fmt::format("{} {}", there.gpu, there.uuid)));
  if (::rename(written.c_str(), moved_to_path().c_str()) == 0) return {};
  return os::errno_error("rename", written);
}

Result<bool> AttemptFiles::exist() const {
  struct stat facts{};
  if (::stat(directory_.c_str(), &facts) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return os::errno_error("look at", directory_);
}

Result<std::optional<attempt::Order>> AttemptFiles::order() const {
  const auto text = GF_TRY(os::read_if_exists(directory_ + "/order", Memory::mib(64)));
  if (!text) return std::nullopt;
  auto order = attempt::decode_order(*text);
  if (!order) return std::nullopt;
  return std::move(*order);
}

Result<std::optional<attempt::ExitRecord>> AttemptFiles::exit_record() const {
  const auto content = GF_TRY(os::read_if_exists(directory_ + "/exit", Memory::mib(1)));
  if (!content) return std::nullopt;
  auto record = attempt::decode_exit_file(*content);
  // After a power failure a file may have what it had in the directory's life before.
  const bool is_its = record && record->job == job_.value &&
                      record->attempt == static_cast<std::uint32_t>(attempt_);
  if (!is_its) return std::nullopt;
  return record;
}

Result<std::optional<attempt::Claim>> AttemptFiles::claim() const {
  const auto text = GF_TRY(os::read_if_exists(directory_ + "/claim", Memory::mib(1)));
  if (!text) return std::nullopt;
  const auto claim = attempt::decode_claim(*text);
  return claim ? claim : attempt::ShimClaim{};
}

Result<void> AttemptFiles::revoke() const {
  const std::string claim = directory_ + "/claim";
  if (::link(prepared_.c_str(), claim.c_str()) == 0 || errno == EEXIST) return {};
  // It was removed, or has as many names as the file system allows (EMLINK).
  const std::string own = directory_ + "/revoked";
  const std::string content = attempt::encode_claim(attempt::Revoked{});
  if (os::read_file(own) != content) GF_CHECK(os::write_file(own, content));
  if (::link(own.c_str(), claim.c_str()) == 0 || errno == EEXIST) return {};
  return os::errno_error("revoke", claim);
}

Result<bool> AttemptFiles::may_have_run() const {
  const auto its = GF_TRY(claim());
  const auto* shim = its ? std::get_if<attempt::ShimClaim>(&*its) : nullptr;
  if (shim == nullptr) return false;
  return shim->protocol < attempt::kNotesBeforeProgram || GF_TRY(started_pid()) > 0;
}

Result<int> AttemptFiles::started_pid() const {
  const auto record = GF_TRY(os::read_if_exists(directory_ + "/exit", Memory::mib(1)));
  if (const int pid = attempt::started_pid_in(record.value_or("")); pid > 0) return pid;
  // A supervisor of gflow before this one noted it in a file of its own.
  const auto text = GF_TRY(os::read_if_exists(directory_ + "/started", Memory::mib(1)));
  const auto pid = text ? parse_number(trim(*text)) : std::nullopt;
  constexpr std::uint64_t kMax = 1U << 30;
  return pid && *pid < kMax ? static_cast<int>(*pid) : 0;
}

Result<bool> AttemptFiles::is_supervised() const {
  const auto lock = os::open_file(directory_ + "/lock", O_RDONLY);
  if (!lock && lock.error().code == Code::NotFound) return false;
  if (!lock) return std::unexpected(lock.error());
  if (::flock(lock->get(), LOCK_SH | LOCK_NB) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return os::errno_error("look at the lock", directory_);
}

}  // namespace gflow::runner

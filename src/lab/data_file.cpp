// SPDX-License-Identifier: Apache-2.0
#include "lab/data_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "os/file.h"

namespace gflow::lab {
namespace {

constexpr Memory kMaxPacked = Memory::mib(512);
constexpr std::size_t kMaxText = std::size_t{1} << 30;

constexpr std::array<DataSet, 3> kDataSets = {{
    {"openb",
     "the production trace of Weng et al., \"Beware of Fragmentation\", USENIX ATC 2023",
     "https://github.com/hkust-adsl/kubernetes-scheduler-simulator, folders data/csv and "
     "experiments/analysis/expected_results, or https://github.com/alibaba/clusterdata, folder "
     "cluster-trace-gpu-v2023/csv"},
    {"traces",
     "the Philly trace of Jeon et al., USENIX ATC 2019, and the Helios trace of Hu et al., SC 2021",
     "https://github.com/msr-fiddle/philly-traces, as CSV in "
     "https://github.com/siasosp23/artifacts, sia-simulator/traces/philly.csv; of Helios, Venus as "
     "CSV in https://github.com/mystous/gpu_scheduler, sim/helios_trace.csv"},
    {"topology",
     "the links of real machines",
     "the output of 'nvidia-smi topo -m' on each; docs/format/machine.md"},
}};

/// Frees what zlib holds, however reading ends.
class Inflater {
 public:
  Inflater() { ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK; }  // 16: a gzip header
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Result<std::string> unpack(const std::string& packed, const std::string& path) {
    std::string text;
    std::array<char, 1 << 16> part{};
    // zlib takes a pointer to what it never writes.
    stream_.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // NOLINT: zlib's own type
    stream_.avail_in = static_cast<uInt>(packed.size());
    int status = ready_ ? Z_OK : Z_MEM_ERROR;
    while (status == Z_OK) {
      stream_.next_out = reinterpret_cast<Bytef*>(part.data());
      stream_.avail_out = static_cast<uInt>(part.size());
      status = inflate(&stream_, Z_NO_FLUSH);
      text.append(part.data(), part.size() - stream_.avail_out);
      if (text.size() > kMaxText) {
        return fail(Code::Exhausted, fmt::format("'{}' holds more than 1 GiB", printable(path)));
      }
      // One file may be several, one behind the other (RFC 1952, section 2.2).
      if (status == Z_STREAM_END && stream_.avail_in > 0) status = inflateReset(&stream_);
    }
    if (status == Z_STREAM_END) return text;
    return fail(Code::Failure,
                fmt::format("'{}' is not what gzip packed, or not all of it", printable(path)));
  }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

}  // namespace

const DataSet* data_set(std::string_view folder) {
  const auto at = std::ranges::find(kDataSets, folder, &DataSet::folder);
  return at == kDataSets.end() ? nullptr : at;
}

Result<std::string> read_data(const std::string& path) {
  auto bytes = os::read_file(path, kMaxPacked);
  if (!bytes || !bytes->starts_with("\x1f\x8b")) return bytes;
  return Inflater().unpack(*bytes, path);
}

Result<std::string> read_data(const std::string& directory,
                              std::string_view folder,
                              const std::string& name) {
  const std::string inside = fmt::format("{}/{}/{}", directory, folder, name);
  const std::string beside = fmt::format("{}/{}", directory, name);
  for (const std::string& path : {inside, inside + ".gz", beside, beside + ".gz"}) {
    if (os::is_file(path)) return read_data(path);
  }
  const DataSet* set = data_set(folder);
  const std::string what =
      set == nullptr ? "" : fmt::format(": {}; to be had from {}", set->what, set->from);
  const std::string missing =
      directory.empty()
          ? fmt::format("'{}' is needed; say where it is with --data DIR", name)
          : fmt::format(
                "there is no '{}' (or .gz), and no '{}'", printable(inside), printable(beside));
  return fail(Code::NotFound, missing + what);
}

}  // namespace gflow::lab

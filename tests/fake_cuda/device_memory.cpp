// SPDX-License-Identifier: Apache-2.0
#include "device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

// A file in memory, with holes where nothing was written: gigabytes that nobody writes take none.
namespace fake_cuda {
namespace {

int content_file() {
  static const int file = ::memfd_create("fake device memory", MFD_CLOEXEC);
  if (file < 0) std::abort();
  return file;
}

off_t place_of(std::uint64_t address) { return static_cast<off_t>(address - kFirstAddress); }

}  // namespace

void write_device(std::uint64_t address, const void* from, std::size_t bytes) {
  if (address < kFirstAddress) return;
  const auto* next = static_cast<const char*>(from);
  for (off_t at = place_of(address); bytes > 0;) {
    const ssize_t put = ::pwrite(content_file(), next, bytes, at);
    if (put <= 0) std::abort();
    next += put;
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
}

void read_device(std::uint64_t address, void* to, std::size_t bytes) {
  std::memset(to, 0, bytes);
  if (address < kFirstAddress) return;
  auto* next = static_cast<char*>(to);
  for (off_t at = place_of(address); bytes > 0;) {
    const ssize_t got = ::pread(content_file(), next, bytes, at);
    if (got <= 0) return;  // behind the last that was written
    next += got;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

DeviceContent take_device_content() {
  DeviceContent content;
  const int file = content_file();
  for (off_t from = ::lseek(file, 0, SEEK_DATA); from >= 0;) {
    const off_t end = ::lseek(file, from, SEEK_HOLE);
    const std::uint64_t address = kFirstAddress + static_cast<std::uint64_t>(from);
    std::string bytes(static_cast<std::size_t>(end - from), '\0');
    read_device(address, bytes.data(), bytes.size());
    content[address] = std::move(bytes);
    from = ::lseek(file, end, SEEK_DATA);
  }
  if (::ftruncate(file, 0) != 0) std::abort();
  return content;
}

}  // namespace fake_cuda

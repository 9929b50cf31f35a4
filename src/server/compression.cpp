// SPDX-License-Identifier: Apache-2.0
#include "server/compression.h"

#include <zlib.h>

#include <algorithm>

#include "server/weights.h"

namespace gflow::server {

bool takes_gzip(std::string_view accept_encoding) {
  if (const auto weight = weight_in(accept_encoding, "gzip")) return *weight > 0;
  return weight_in(accept_encoding, "*").value_or(0) > 0;
}

std::string gzip(std::string_view text) {
  constexpr int kGzipWindow = 15 + 16;  // 16: with the frame of gzip
  constexpr int kMemory = 8;            // the usual
  z_stream stream{};
  if (::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return {};
  }
  std::string out(::deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  std::string in(text);  // zlib takes what it does not write to without const
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool done = ::deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(done ? stream.total_out : 0);
  (void)::deflateEnd(&stream);
  return out;
}

}  // namespace gflow::server

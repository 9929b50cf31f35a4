// SPDX-License-Identifier: Apache-2.0
#include "server/compression.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "server/weights.h"

namespace gflow::server {

struct Gzip::Stream : z_stream {};

void Gzip::End::operator()(Stream* stream) const {
  (void)::deflateEnd(stream);
  delete stream;  // NOLINT(cppcoreguidelines-owning-memory): the unique_ptr's
}

bool takes_gzip(std::string_view accept_encoding) {
  if (const auto weight = weight_in(accept_encoding, "gzip")) return *weight > 0;
  return weight_in(accept_encoding, "*").value_or(0) > 0;
}

Gzip::Gzip() : stream_(new Stream{}) {  // NOLINT(modernize-make-unique): its deleter ends it
  constexpr int kGzipWindow = 15 + 16;  // 16: with the frame of gzip
  constexpr int kMemory = 8;            // the usual
  const int done = ::deflateInit2(
      stream_.get(), Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY);
  if (done != Z_OK) stream_.reset();
}

void Gzip::put(std::string_view piece, bool is_last) {
  if (!stream_) return;
  std::string in(piece);  // zlib takes what it does not write to without const
  stream_->next_in = reinterpret_cast<Bytef*>(in.data());
  stream_->avail_in = static_cast<uInt>(in.size());
  std::array<Bytef, 16 * 1024> buffer;  // NOLINT: filled by zlib
  do {
    stream_->next_out = buffer.data();
    stream_->avail_out = static_cast<uInt>(buffer.size());
    (void)::deflate(stream_.get(), is_last ? Z_FINISH : Z_NO_FLUSH);  // fails without a stream only
    out_.append(buffer.begin(), buffer.end() - stream_->avail_out);
  } while (stream_->avail_out == 0);
}

std::string Gzip::take() { return stream_ ? std::move(out_) : std::string(); }

std::string gzip(std::string_view text) {
  Gzip all;
  all.put(text, true);
  return all.take();
}

}  // namespace gflow::server

// SPDX-License-Identifier: Apache-2.0
#include "server/body_writer.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <string_view>
#include <utility>

namespace gflow::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kLastChunk = "0\r\n\r\n";

asio::const_buffer buffer_of(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

Framing framing_of(const Streamed& streamed, bool is_http10) {
  if (streamed.length) return Framing::Length;
  return is_http10 ? Framing::Close : Framing::Chunked;
}

BodyWriter::BodyWriter(Stream& stream, std::weak_ptr<void> owner, Streamed what, Framing framing)
    : stream_(stream),
      owner_(std::move(owner)),
      what_(std::move(what)),
      framing_(framing),
      timer_(stream.get_executor()) {}

void BodyWriter::start(std::string head, Limits limits, std::function<void(End)> done) {
  limits_ = limits;
  done_ = std::move(done);
  head_ = std::move(head);
  send(std::array{buffer_of(head_)}, [](BodyWriter& self) { self.ask(); });
}

void BodyWriter::stop() {
  stopping_ = true;
  if (!writing_ && done_) finish(what_.is_endless);
}

void BodyWriter::abandon() {
  done_ = nullptr;
  what_.body.reset();
  timer_.cancel();
}

void BodyWriter::ask() {
  if (stopping_) return finish(what_.is_endless);
  if (waiting_) return take(*std::exchange(waiting_, {}));
  if (!asked_) {
    asked_ = true;
    what_.body->next([self = weak_from_this(), executor = stream_.get_executor()](Piece piece) {
      asio::post(executor, [self, piece = std::move(piece)]() mutable {
        const auto known = self.lock();
        if (!known || !known->done_) return;
        known->asked_ = false;
        known->take(std::move(piece));
      });
    });
  }
  beat_later();
}

void BodyWriter::take(Piece piece) {
  if (writing_) {
    waiting_ = std::move(piece);
    return;
  }
  timer_.cancel();
  if (!piece.bytes) return finish(piece.is_whole);
  if (piece.bytes->empty()) return ask();
  write(std::move(piece.bytes));
}

/// While nothing comes nobody may know that the other end has gone.
void BodyWriter::beat_later() {
  stream_.expires_never();
  if (what_.heartbeat.empty()) return;
  timer_.expires_after(limits_.heartbeat);
  timer_.async_wait([self = weak_from_this()](const error_code& error) {
    const auto known = self.lock();
    if (error || !known || !known->done_ || known->writing_) return;
    known->write(std::make_shared<const std::string>(known->what_.heartbeat));
  });
}

void BodyWriter::write(std::shared_ptr<const std::string> bytes) {
  bytes_ = std::move(bytes);
  const auto go_on = [](BodyWriter& self) {
    self.bytes_.reset();
    self.ask();
  };
  if (framing_ != Framing::Chunked) return send(std::array{buffer_of(*bytes_)}, go_on);
  head_ = fmt::format("{:x}\r\n", bytes_->size());
  send(std::array{buffer_of(head_), buffer_of(*bytes_), buffer_of(kLineEnd)}, go_on);
}

void BodyWriter::finish(bool is_whole) {
  if (!is_whole) return end(End::Broken);
  if (framing_ != Framing::Chunked) return end(End::Sent);
  send(std::array{buffer_of(kLastChunk)}, [](BodyWriter& self) { self.end(End::Sent); });
}

template <typename Buffers, typename Then>
void BodyWriter::send(const Buffers& buffers, Then then) {
  writing_ = true;
  stream_.expires_after(limits_.write);
  asio::async_write(stream_,
                    buffers,
                    [self = shared_from_this(), owner = owner_.lock(), then](
                        const error_code& error, std::size_t) {
                      self->writing_ = false;
                      if (!self->done_) return;
                      if (error) return self->end(End::Broken);
                      then(*self);
                    });
}

void BodyWriter::end(End how) {
  const auto done = std::exchange(done_, nullptr);
  what_.body.reset();
  timer_.cancel();
  if (done) done(how);
}

}  // namespace gflow::server

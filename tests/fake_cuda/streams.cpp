// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "process.h"

// Streams and events. What is put into the streams of a process is done in that order, all streams
// together.
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C interface is global

namespace fake_cuda {
namespace {

abi::Result wait_for(std::size_t device, Work place) {
  machine()->wait_for(device, place);
  release_free_pools();
  return abi::kSuccess;
}

abi::Result wait_for_stream(abi::Stream stream) {
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  if (its->captures != nullptr || !may_ask()) return end_captures();
  return wait_for(its->device, its->place);
}

abi::Result wait_for_context(abi::Context context) {
  if (context == nullptr) return abi::kInvalidContext;
  if (is_capturing()) return end_captures();
  return wait_for(context->device, machine()->add(context->device, 0));
}

abi::Result record(abi::Event event, abi::Stream stream) {
  const Guard guard(Process::get().lock);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  if (its->captures != nullptr) return abi::kSuccess;
  *event = {.device = its->device, .place = its->place, .done_at = 0};
  return abi::kSuccess;
}

bool is_done(abi::Event event) {
  if (event->done_at == 0 && machine()->has_done(event->device, event->place)) {
    event->done_at = now();
  }
  return event->done_at != 0;
}

}  // namespace

abi::Stream stream_of(abi::Stream stream) {
  const Guard guard(Process::get().lock);
  constexpr std::uintptr_t kLastSpecial = 2;  // the legacy stream, the thread's
  if (reinterpret_cast<std::uintptr_t>(stream) > kLastSpecial) {
    return Process::get().streams.contains(stream) ? stream : nullptr;
  }
  const abi::Context context = current();
  if (context == nullptr) return nullptr;
  abi::StreamOf& its = Process::get().default_streams[context->device];
  its.device = context->device;
  return &its;
}

}  // namespace fake_cuda

extern "C" {

#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name
FAKE_DECLARE(cuStreamCreate);
FAKE_DECLARE(cuStreamDestroy_v2);
FAKE_DECLARE(cuStreamSynchronize);
FAKE_DECLARE(cuStreamQuery);
FAKE_DECLARE(cuStreamGetDevice);
FAKE_DECLARE(cuCtxSynchronize);
FAKE_DECLARE(cuCtxSynchronize_v2);
FAKE_DECLARE(cuEventCreate);
FAKE_DECLARE(cuEventDestroy_v2);
FAKE_DECLARE(cuEventRecord);
FAKE_DECLARE(cuEventQuery);
FAKE_DECLARE(cuEventSynchronize);
FAKE_DECLARE(cuEventElapsedTime);
#undef FAKE_DECLARE
#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name##_ptsz
FAKE_DECLARE(cuStreamSynchronize);
FAKE_DECLARE(cuEventRecord);

abi::Result cuStreamCreate(abi::Stream* stream, unsigned int) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  if (current() == nullptr) return abi::kInvalidContext;
  *stream = new abi::StreamOf{.device = current()->device};
  Process::get().streams.insert(*stream);
  return abi::kSuccess;
}

abi::Result cuStreamDestroy_v2(abi::Stream stream) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  if (Process::get().streams.erase(stream) == 0) return abi::kInvalidHandle;
  delete stream;
  return abi::kSuccess;
}

abi::Result cuStreamSynchronize(abi::Stream stream) {
  const Call call(__func__);
  return wait_for_stream(stream);
}
abi::Result cuStreamSynchronize_ptsz(abi::Stream stream) {
  const Call call(__func__);
  return wait_for_stream(stream);
}

abi::Result cuStreamQuery(abi::Stream stream) {
  const Call call(__func__);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  if (its->captures != nullptr || !may_ask()) return end_captures();
  return machine()->has_done(its->device, its->place) ? abi::kSuccess : abi::kNotReady;
}

abi::Result cuStreamGetDevice(abi::Stream stream, abi::Device* device) {
  const Call call(__func__);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  *device = static_cast<abi::Device>(its->device);
  return abi::kSuccess;
}

abi::Result cuCtxSynchronize() {
  const Call call(__func__);
  return wait_for_context(current());
}

abi::Result cuCtxSynchronize_v2(abi::Context context) {
  const Call call(__func__);
  return wait_for_context(context == nullptr ? current() : context);
}

abi::Result cuEventCreate(abi::Event* event, unsigned int) {
  const Call call(__func__);
  if (!may_ask()) return end_captures();
  *event = new abi::EventOf;
  return abi::kSuccess;
}

abi::Result cuEventDestroy_v2(abi::Event event) {
  const Call call(__func__);
  delete event;
  return abi::kSuccess;
}

abi::Result cuEventRecord(abi::Event event, abi::Stream stream) {
  const Call call(__func__);
  return record(event, stream);
}
abi::Result cuEventRecord_ptsz(abi::Event event, abi::Stream stream) {
  const Call call(__func__);
  return record(event, stream);
}

abi::Result cuEventQuery(abi::Event event) {
  const Call call(__func__);
  if (!may_ask()) return end_captures();
  const Guard guard(Process::get().lock);
  return is_done(event) ? abi::kSuccess : abi::kNotReady;
}

abi::Result cuEventSynchronize(abi::Event event) {
  const Call call(__func__);
  if (!may_ask()) return end_captures();
  return wait_for(event->device, event->place);
}

/// Between the times at which it was first seen that they are done.
abi::Result cuEventElapsedTime(float* milliseconds, abi::Event start, abi::Event end) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  if (!is_done(start) || !is_done(end)) return abi::kNotReady;
  *milliseconds = static_cast<float>(end->done_at - start->done_at) / 1e6F;
  return abi::kSuccess;
}

}  // extern "C"

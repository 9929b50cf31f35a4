// SPDX-License-Identifier: Apache-2.0
#include "process.h"

// Graphs: what was put into a stream while it captured, done at once when it is launched. While a
// stream captures, a thread that has not said otherwise must not ask whether something is done.
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C interface is global

namespace fake_cuda {
namespace {

thread_local int capture_mode = abi::kCaptureGlobal;

abi::Result begin(abi::Stream stream, int mode) {
  const Guard guard(Process::get().lock);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  if (its == &Process::get().default_streams[its->device]) return abi::kCaptureUnsupported;
  its->captures = new abi::GraphOf;
  its->capture_mode = mode;
  return abi::kSuccess;
}

abi::Result end(abi::Stream stream, abi::Graph* graph) {
  const Guard guard(Process::get().lock);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr || its->captures == nullptr) return abi::kInvalidValue;
  *graph = its->captures;
  its->captures = nullptr;
  if ((*graph)->is_valid) return abi::kSuccess;
  delete *graph;
  return abi::kCaptureInvalidated;
}

/// The stream of the device waits for all others, so it cannot be asked about while one captures.
abi::Result capture_status(abi::Stream stream, int* status) {
  const Guard guard(Process::get().lock);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  const bool is_default = its == &Process::get().default_streams[its->device];
  if (is_default && is_capturing()) return abi::kCaptureImplicit;
  *status = its->captures == nullptr ? abi::kCaptureNone : abi::kCaptureActive;
  return abi::kSuccess;
}

abi::Result launch(abi::GraphExec executable, abi::Stream stream) {
  return put(stream, executable->length);
}

}  // namespace

bool is_capturing() {
  const Guard guard(Process::get().lock);
  for (const abi::Stream stream : Process::get().streams) {
    if (stream->captures != nullptr) return true;
  }
  return false;
}

bool may_ask() {
  if (capture_mode == abi::kCaptureRelaxed) return true;
  const Guard guard(Process::get().lock);
  for (const abi::Stream stream : Process::get().streams) {
    if (stream->captures != nullptr && stream->capture_mode == abi::kCaptureGlobal) return false;
  }
  return true;
}

abi::Result end_captures() {
  const Guard guard(Process::get().lock);
  for (const abi::Stream stream : Process::get().streams) {
    if (stream->captures != nullptr) stream->captures->is_valid = false;
  }
  return abi::kCaptureUnsupported;
}

}  // namespace fake_cuda

extern "C" {

#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name
FAKE_DECLARE(cuThreadExchangeStreamCaptureMode);
FAKE_DECLARE(cuStreamBeginCapture_v2);
FAKE_DECLARE(cuStreamEndCapture);
FAKE_DECLARE(cuStreamIsCapturing);
FAKE_DECLARE(cuGraphInstantiateWithFlags);
FAKE_DECLARE(cuGraphLaunch);
FAKE_DECLARE(cuGraphExecDestroy);
FAKE_DECLARE(cuGraphDestroy);
#undef FAKE_DECLARE
#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name##_ptsz
FAKE_DECLARE(cuStreamBeginCapture_v2);
FAKE_DECLARE(cuStreamEndCapture);
FAKE_DECLARE(cuStreamIsCapturing);
FAKE_DECLARE(cuGraphLaunch);

abi::Result cuThreadExchangeStreamCaptureMode(int* mode) {
  const Call call(__func__);
  std::swap(*mode, capture_mode);
  return abi::kSuccess;
}

abi::Result cuStreamBeginCapture_v2(abi::Stream stream, int mode) {
  const Call call(__func__);
  return begin(stream, mode);
}
abi::Result cuStreamBeginCapture_v2_ptsz(abi::Stream stream, int mode) {
  const Call call(__func__);
  return begin(stream, mode);
}
abi::Result cuStreamEndCapture(abi::Stream stream, abi::Graph* graph) {
  const Call call(__func__);
  return end(stream, graph);
}
abi::Result cuStreamEndCapture_ptsz(abi::Stream stream, abi::Graph* graph) {
  const Call call(__func__);
  return end(stream, graph);
}
abi::Result cuStreamIsCapturing(abi::Stream stream, int* status) {
  const Call call(__func__);
  return capture_status(stream, status);
}
abi::Result cuStreamIsCapturing_ptsz(abi::Stream stream, int* status) {
  const Call call(__func__);
  return capture_status(stream, status);
}

abi::Result cuGraphInstantiateWithFlags(abi::GraphExec* executable,
                                        abi::Graph graph,
                                        unsigned long long) {
  const Call call(__func__);
  *executable = new abi::GraphExecOf{.length = graph->length};
  return abi::kSuccess;
}

abi::Result cuGraphLaunch(abi::GraphExec executable, abi::Stream stream) {
  const Call call(__func__);
  return launch(executable, stream);
}
abi::Result cuGraphLaunch_ptsz(abi::GraphExec executable, abi::Stream stream) {
  const Call call(__func__);
  return launch(executable, stream);
}

abi::Result cuGraphExecDestroy(abi::GraphExec executable) {
  const Call call(__func__);
  delete executable;
  return abi::kSuccess;
}

abi::Result cuGraphDestroy(abi::Graph graph) {
  const Call call(__func__);
  delete graph;
  return abi::kSuccess;
}

}  // extern "C"

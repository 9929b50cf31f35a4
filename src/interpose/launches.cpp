// SPDX-License-Identifier: Apache-2.0
#include "interpose/gate.h"
#include "interpose/holdings.h"
#include "interpose/outstanding.h"
#include "interpose/real.h"
#include "interpose/session.h"

// What a device is given to compute. Where nothing limits it, a launch is the driver's own.
using namespace gflow::interpose;  // NOLINT(google-build-using-namespace): the C interface is
                                   // global

namespace {

LaunchCalls of_legacy_stream() {
  return {driver().cuStreamIsCapturing, driver().cuEventRecord, false};
}
LaunchCalls of_thread_stream() {
  return {driver().cuStreamIsCapturing_ptsz, driver().cuEventRecord_ptsz, true};
}

/// What is captured is not launched yet, and the stream must not be asked about.
bool is_captured(abi::Stream stream, const LaunchCalls& calls) {
  int status = abi::kCaptureNone;
  const abi::Result result = call(calls.is_capturing, stream, &status);
  return result == abi::kCaptureImplicit ||
         (result == abi::kSuccess && status != abi::kCaptureNone);
}

template <typename Launch>
abi::Result launch_gated(abi::Stream stream, const LaunchCalls& calls, Launch launch) {
  const auto device = InDriver::is_inside() ? std::nullopt : Session::get().current_device();
  Gate* const gate = device ? gate_of(*device) : nullptr;
  if (gate == nullptr || is_captured(stream, calls)) return launch();
  gate->enter();
  const abi::Result result = launch();
  if (result == abi::kSuccess) note_launch(*device, stream, calls);
  gate->leave();
  return result;
}

template <typename... Parameters, typename... Arguments>
abi::Result launch(abi::Result (*function)(Parameters...),
                   LaunchCalls (*calls)(),
                   abi::Stream stream,
                   Arguments... arguments) {
  if (function == nullptr) return abi::kNotFound;
  if (!has_gates()) return function(arguments...);
  return launch_gated(stream, calls(), [&] { return call(function, arguments...); });
}

}  // namespace

// NOLINTBEGIN(readability-function-size,cppcoreguidelines-macro-usage): the driver's interface
#define GFLOW_KERNEL_PARAMETERS                                                                    \
  abi::Function function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,           \
      unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, \
      abi::Stream stream, void **parameters
#define GFLOW_KERNEL_ARGUMENTS \
  function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters

GFLOW_EXPORT abi::Result cuLaunchKernel(GFLOW_KERNEL_PARAMETERS, void** extra) {
  return launch(driver().cuLaunchKernel, of_legacy_stream, stream, GFLOW_KERNEL_ARGUMENTS, extra);
}

GFLOW_EXPORT abi::Result cuLaunchKernel_ptsz(GFLOW_KERNEL_PARAMETERS, void** extra) {
  return launch(
      driver().cuLaunchKernel_ptsz, of_thread_stream, stream, GFLOW_KERNEL_ARGUMENTS, extra);
}

GFLOW_EXPORT abi::Result cuLaunchCooperativeKernel(GFLOW_KERNEL_PARAMETERS) {
  return launch(
      driver().cuLaunchCooperativeKernel, of_legacy_stream, stream, GFLOW_KERNEL_ARGUMENTS);
}

GFLOW_EXPORT abi::Result cuLaunchCooperativeKernel_ptsz(GFLOW_KERNEL_PARAMETERS) {
  return launch(
      driver().cuLaunchCooperativeKernel_ptsz, of_thread_stream, stream, GFLOW_KERNEL_ARGUMENTS);
}

#undef GFLOW_KERNEL_ARGUMENTS
#undef GFLOW_KERNEL_PARAMETERS
// NOLINTEND(readability-function-size,cppcoreguidelines-macro-usage)

GFLOW_EXPORT abi::Result cuLaunchKernelEx(const abi::LaunchConfig* config,
                                          abi::Function function,
                                          void** parameters,
                                          void** extra) {
  abi::Stream const stream = config == nullptr ? nullptr : config->stream;
  return launch(
      driver().cuLaunchKernelEx, of_legacy_stream, stream, config, function, parameters, extra);
}

GFLOW_EXPORT abi::Result cuLaunchKernelEx_ptsz(const abi::LaunchConfig* config,
                                               abi::Function function,
                                               void** parameters,
                                               void** extra) {
  abi::Stream const stream = config == nullptr ? nullptr : config->stream;
  return launch(driver().cuLaunchKernelEx_ptsz,
                of_thread_stream,
                stream,
                config,
                function,
                parameters,
                extra);
}

GFLOW_EXPORT abi::Result cuLaunch(abi::Function function) {
  return launch(driver().cuLaunch, of_legacy_stream, nullptr, function);
}

GFLOW_EXPORT abi::Result cuLaunchGrid(abi::Function function, int width, int height) {
  return launch(driver().cuLaunchGrid, of_legacy_stream, nullptr, function, width, height);
}

GFLOW_EXPORT abi::Result cuLaunchGridAsync(abi::Function function,
                                           int width,
                                           int height,
                                           abi::Stream stream) {
  return launch(
      driver().cuLaunchGridAsync, of_legacy_stream, stream, function, width, height, stream);
}

GFLOW_EXPORT abi::Result cuGraphLaunch(abi::GraphExec executable, abi::Stream stream) {
  return launch(driver().cuGraphLaunch, of_legacy_stream, stream, executable, stream);
}

GFLOW_EXPORT abi::Result cuGraphLaunch_ptsz(abi::GraphExec executable, abi::Stream stream) {
  return launch(driver().cuGraphLaunch_ptsz, of_thread_stream, stream, executable, stream);
}

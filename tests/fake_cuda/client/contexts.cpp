// SPDX-License-Identifier: Apache-2.0
#include "client/commands.h"

namespace client {

void add_contexts(Commands& commands, const Functions& cu) {
  commands["init"] = [&](const Request&) { return said(cu.cuInit(0)); };
  commands["context"] = [&](const Request& asked) {
    return made<abi::Context>(
        [&](auto* out) { return cu.cuCtxCreate(out, 0, static_cast<int>(asked.number(0))); });
  };
  commands["destroy"] = [&](const Request& asked) {
    return said(cu.cuCtxDestroy(asked.handle<abi::Context>(0)));
  };
  commands["primary"] = [&](const Request& asked) {
    abi::Context context = nullptr;
    const auto device = static_cast<int>(asked.number(0));
    const abi::Result result = cu.cuDevicePrimaryCtxRetain(&context, device);
    return said(result == abi::kSuccess ? cu.cuCtxSetCurrent(context) : result);
  };
  commands["reset"] = [&](const Request& asked) {
    return said(cu.cuDevicePrimaryCtxReset(static_cast<int>(asked.number(0))));
  };
  commands["unretain"] = [&](const Request& asked) {
    return said(cu.cuDevicePrimaryCtxRelease(static_cast<int>(asked.number(0))));
  };
}

}  // namespace client

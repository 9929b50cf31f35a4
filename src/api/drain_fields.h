// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/json_reader.h"
#include "api/json_writer.h"
#include "core/machine.h"

namespace gflow::api {

template <class Io, Like<Drain> T>
void fields(Io& io, T& drain) {
  io.field("node", drain.node);
  io.field("gpu", drain.gpu);
  io.field("reason", drain.reason);
  io.field("by", drain.by);
}

}  // namespace gflow::api

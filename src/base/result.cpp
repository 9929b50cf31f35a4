// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

namespace gflow {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::Failure:
      return "failure";
    case Code::Usage:
      return "usage";
    case Code::NotFound:
      return "not_found";
    case Code::Unreachable:
      return "unreachable";
    case Code::Permission:
      return "permission";
    case Code::WrongState:
      return "wrong_state";
    case Code::Infeasible:
      return "infeasible";
    case Code::Timeout:
      return "timeout";
    case Code::Exhausted:
      return "exhausted";
    case Code::Damaged:
      return "damaged";
    case Code::KeyReused:
      return "key_reused";
  }
  return "failure";
}

}  // namespace gflow

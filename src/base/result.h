// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace gflow {

/// What kind of failure: the value to branch on. exit_code() gives what the command line exits
/// with.
enum class Code {
  Failure = 1,      ///< something went wrong that no other code says better
  Usage = 2,        ///< the input is not understood: flag, time, memory, directive, JSON
  NotFound = 3,     ///< no such job, file, field
  Unreachable = 4,  ///< the daemon does not answer
  Permission = 5,   ///< not yours
  WrongState = 6,   ///< the thing is there, but not in a state that allows this
  Infeasible = 7,   ///< can never be satisfied on this machine, or is refused by policy
  Timeout = 8,      ///< it did not happen in the time given
  Exhausted = 9,    ///< a limit is reached: disk, queue length, message size
  Damaged = 10,     ///< what gflow keeps lost something: gflow doctor --recover
  KeyReused = 11,   ///< the Idempotency-Key stands for another request
};

/// A failure: a code to branch on and one sentence for a person that names the input and a way out.
struct Error {
  Code code = Code::Failure;
  std::string message;
  int number = 0;  ///< errno of the system call that failed; 0 if it was none

  friend bool operator==(const Error&, const Error&) = default;
};

template <typename T>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> fail(Code code, std::string message) {
  return std::unexpected<Error>(Error{code, std::move(message)});
}

/// The same failure with where it happened put before it: `with_context(e, "script.sh:3")`.
[[nodiscard]] inline std::unexpected<Error> with_context(Error error, std::string_view where) {
  error.message.insert(0, std::string(where) + ": ");
  return std::unexpected<Error>(std::move(error));
}

/// What a command exits with: the number of the code, 1 for one that scripts need not tell apart.
[[nodiscard]] constexpr int exit_code(Code code) {
  return code >= Code::Exhausted ? 1 : static_cast<int>(code);
}

/// Stable name of a code, as JSON carries it ("not_found").
[[nodiscard]] std::string_view code_name(Code code);

}  // namespace gflow

/// The value of a Result, or return its error from the enclosing function.
#define GF_TRY(expression)                                                                \
  __extension__({                                                                         \
    auto gf_result = (expression);                                                        \
    if (!gf_result) return std::unexpected<::gflow::Error>(std::move(gf_result).error()); \
    std::move(gf_result).value();                                                         \
  })

/// As GF_TRY for a Result<void>, or where the value is not wanted.
#define GF_CHECK(expression)                                                \
  do {                                                                      \
    if (auto gf_result = (expression); !gf_result)                          \
      return std::unexpected<::gflow::Error>(std::move(gf_result).error()); \
  } while (false)

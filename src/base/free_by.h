// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gflow {

/// Has a std::unique_ptr give back what a library of C made: std::unique_ptr<X509,
/// FreeBy<X509_free>>.
template <auto kFree>
struct FreeBy {
  template <typename T>
  void operator()(T* what) const {
    kFree(what);
  }
};

}  // namespace gflow

// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Memory made and mapped in two steps: it is charged once, from its making until the last of its
/// handles and of its mappings is gone.
namespace gflow::interpose {

/// In the child of a fork.
void forget_mappings();

}  // namespace gflow::interpose

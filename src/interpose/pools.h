// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Memory that is allocated in the order of a stream. A pool is charged what it has of the device,
/// not what is given out of it, as that is what others cannot have.
namespace gflow::interpose {

/// Takes back what the driver has taken back from the pools since, as it does when a stream is
/// waited for.
void settle_pools();

/// In the child of a fork.
void forget_pools();

}  // namespace gflow::interpose

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// What an array takes, by the format of its elements (CUarray_format of NVIDIA's cuda.h).
namespace gflow::cuda {

struct ArrayElement {
  std::uint64_t bits = 0;       ///< of an element with all its channels
  std::uint64_t in_blocks = 1;  ///< width and height are whole multiples of it
};

/// One that is not known is taken to have a byte in each channel.
[[nodiscard]] constexpr ArrayElement array_element(int format, std::uint64_t channels) {
  switch (format) {
    case 0x02:  // 16 bits, of integers and halves
    case 0x09:
    case 0x10:
    case 0xc3:
    case 0xc4:
    case 0xc5:
    case 0xc9:
    case 0xca:
    case 0xcb:
      return {.bits = 16 * channels};
    case 0x03:  // 32 bits
    case 0x0a:
    case 0x20:
      return {.bits = 32 * channels};
    case 0x91:  // BC1, BC4: 8 bytes for 4 x 4
    case 0x92:
    case 0x97:
    case 0x98:
      return {.bits = 4, .in_blocks = 4};
    case 0x93:  // BC2, BC3, BC5, BC6H, BC7: 16 bytes
    case 0x94:
    case 0x95:
    case 0x96:
    case 0x99:
    case 0x9a:
    case 0x9b:
    case 0x9c:
    case 0x9d:
    case 0x9e:
      return {.bits = 8, .in_blocks = 4};
    case 0xb0:  // NV12: a quarter of the colours
      return {.bits = 12};
    case 0x9f:  // P010, P016
    case 0xa1:
    case 0xb2:  // three planes of bytes
    case 0xb4:
      return {.bits = 24};
    case 0xa2:  // NV16, YUY2: half of the colours
    case 0xa5:
      return {.bits = 16};
    case 0xa3:  // P210, P216, Y210, Y216
    case 0xa4:
    case 0xa6:
    case 0xa7:
    case 0xa8:  // AYUV, Y410
    case 0xa9:
    case 0x50:  // 10, 10, 10 and 2 bits
      return {.bits = 32};
    case 0xb3:  // three planes of 16 bits
    case 0xb5:
      return {.bits = 48};
    case 0xb1:  // Y416
      return {.bits = 64};
    default:
      return {.bits = 8 * channels};
  }
}

}  // namespace gflow::cuda

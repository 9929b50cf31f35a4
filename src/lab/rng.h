// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace gflow::lab {

/// The same numbers for the same seed on every machine and with every library: PCG-XSH-RR 64/32,
/// the generator of M. E. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good
/// Algorithms for Random Number Generation", Harvey Mudd College HMC-CS-2014-0905, seeded as its
/// reference code does.
class Rng {
 public:
  using result_type = std::uint32_t;

  /// Generators of one seed and different streams have nothing to do with each other.
  explicit constexpr Rng(std::uint64_t seed, std::uint64_t stream = 0) : step_(stream << 1 | 1) {
    (void)next();
    state_ += seed;
    (void)next();
  }

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return UINT32_MAX; }
  constexpr result_type operator()() { return next(); }

  constexpr std::uint32_t next() {
    const std::uint64_t old = state_;
    state_ = old * kMultiplier + step_;
    const auto mixed = static_cast<std::uint32_t>(((old >> 18) ^ old) >> 27);
    return std::rotr(mixed, static_cast<int>(old >> 59));
  }

  /// A whole number from 0 to n - 1, each as likely; n is at least 1. After D. Lemire, "Fast Random
  /// Integer Generation in an Interval", ACM TOMACS 29(1), 2019.
  constexpr std::uint32_t below(std::uint32_t n) {
    std::uint64_t product = std::uint64_t{next()} * n;
    if (static_cast<std::uint32_t>(product) < n) {
      const std::uint32_t least = (0U - n) % n;
      while (static_cast<std::uint32_t>(product) < least) product = std::uint64_t{next()} * n;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

  /// From 0 up to, never including, 1: 53 bits.
  constexpr double unit() {
    const std::uint64_t high = next() >> 5;
    const std::uint64_t low = next() >> 6;
    return static_cast<double>(high << 26 | low) * 0x1p-53;
  }

  /// Waiting time of a Poisson process with this mean.
  double exponential(double mean) { return -mean * std::log1p(-unit()); }

 private:
  static constexpr std::uint64_t kMultiplier = 6364136223846793005;
  std::uint64_t state_ = 0;
  std::uint64_t step_;
};

}  // namespace gflow::lab

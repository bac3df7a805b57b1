// Vectors of what every machine of its kind has.
#pragma once

#include <stdint.h>

namespace braid::ops::BRAID_ISA {
namespace {

constexpr int kLanes = 4, kTileRows = 4;

typedef float Floats __attribute__((vector_size(16), may_alias));
typedef int32_t Ints __attribute__((vector_size(16)));

// Of each lane the larger; b's where one is not a number.
inline Floats larger(Floats a, Floats b) { return a > b ? a : b; }

// Of each lane, two numbers of 16 bits: the sum of the products of both.
inline Ints pair_products(Ints a, Ints b) {
  return ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA

// Powers of two on vectors of any length.
#pragma once

#include <cstdint>

namespace braid::ops::BRAID_ISA {
namespace {

// 2^f, |f| <= 1/2: the polynomial of least relative error (Remez), 9e-8, or 1.6e-7 in float32.
template <class Vector>
inline Vector power_of_fraction(Vector f) {
  Vector e = Vector{} + 0.001326472731f;
  e = e * f + 0.009671512991f;
  e = e * f + 0.055507335812f;
  e = e * f + 0.240222424269f;
  e = e * f + 0.693147003651f;
  return e * f + 1;
}

}  // namespace
}  // namespace braid::ops::BRAID_ISA

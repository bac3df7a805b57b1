// Maps a launch to a kernel's template arguments.
#pragma once

#include "ops/gpu/launch.h"
#include "ops/gpu/numbers.h"

namespace braid::ops::gpu {

template <class T, int N>
struct KernelTypes {
  using Element = T;
  static constexpr int kVector = N;
};

template <class Work, class T, class Visit>
void visit_vectors(const Launch& how, Visit visit) {
  if constexpr (kMovesVectors<Work>) {
    constexpr int kFull = kVectorBytes / int(sizeof(T));
    if (how.vector == kFull) return visit(KernelTypes<T, kFull>());
  }
  visit(KernelTypes<T, kNarrowVector<Work>>());
}

// Calls visit(KernelTypes<T, N>()) with the launch's T and N.
template <class Work, class Visit>
void visit_types(const Launch& how, Visit visit) {
  switch (how.number) {
    case Number::kFloat32:
      return visit_vectors<Work, float>(how, visit);
    case Number::kBfloat16:
      return visit_vectors<Work, Bfloat16>(how, visit);
    case Number::kFloat16:
      return visit_vectors<Work, Float16>(how, visit);
  }
}

}  // namespace braid::ops::gpu

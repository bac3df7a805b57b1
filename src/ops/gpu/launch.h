// How GPU kernels are launched. C++17, like work.h.
#pragma once

#include "ops/gpu/stored.h"
#include "ops/gpu/work.h"

namespace braid::ops::gpu {

enum class Number { kFloat32, kBfloat16, kFloat16 };

// A kernel launch: blocks [rows parts] of `threads`, each thread moving `vector` numbers at once,
// on a native stream.
struct Launch {
  Number number;
  int vector;  // full_vector(number), or kNarrowVector of the work
  std::int64_t rows, parts;
  int threads;
  void* stream;
};

// A warp, or half an AMD wave: shuffles stay within it.
constexpr int kLanes = 32;
constexpr std::int64_t kMostRows = (1LL << 31) - 1, kMostParts = 65'535;  // of CUDA's grids
constexpr std::int64_t kMostThreadsOfRows = (1LL << 32) - 1;  // rows * threads, of HIP's grids

// Bytes a thread moves at once if everything is aligned to them.
constexpr int kVectorBytes = 16;
constexpr int full_vector(Number number) {
  return kVectorBytes / (number == Number::kFloat32 ? 4 : 2);
}

// The widest row, or head, that fits in the registers of the threads sharing it.
constexpr std::int64_t kWidestRow = 16'384, kWidestHead = 512;
template <int N>
constexpr int kVectorsOfRow = N == 1 ? 16 : 4;
template <int N>
constexpr int kVectorsOfHead = N == 2 ? 8 : 1;

// Numbers a thread moves at once if not everything is aligned to kVectorBytes.
template <class Work>
constexpr int kNarrowVector = 1;
template <>
inline constexpr int kNarrowVector<NormRotate> = 2;  // a pair

template <class Work>
constexpr bool kMovesVectors = true;
template <>
inline constexpr bool kMovesVectors<DecodeRows> = false;  // one number, whatever the alignment

// The threads that decode one block of a file: the largest count that divides every run of numbers
// with a common scale.
constexpr int kLanesOfBlock = 16;

// The most threads per block. Kernels whose threads share a row need more of them for wider rows.
template <class Work>
constexpr int kMostThreads = 256;
template <>
inline constexpr int kMostThreads<NormRotate> = 128;
template <>
inline constexpr int kMostThreads<ModulatedNorm> = 1024;
template <>
inline constexpr int kMostThreads<GatedResidualNorm> = 1024;
template <>
inline constexpr int kMostThreads<QuantizeRows> = 1024;
template <>
inline constexpr int kMostThreads<JoinedGeluCodes> = 1024;

void launch(const ModulatedNorm& work, const Launch& how);
void launch(const GatedResidual& work, const Launch& how);
void launch(const GatedResidualNorm& work, const Launch& how);
void launch(const AddParts& work, const Launch& how);
void launch(const JoinedGelu& work, const Launch& how);
void launch(const JoinedGeluCodes& work, const Launch& how);
void launch(const NormRotate& work, const Launch& how);
void launch(const QuantizeRows& work, const Launch& how);
void launch(const Widen& work, const Launch& how);
void launch(const ScaleSums& work, const Launch& how);
void launch(const DecodeRows& work, const Launch& how);
void launch(const EulerStep& work, const Launch& how);

}  // namespace braid::ops::gpu

#include "instruction_peaks.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>
#include <thread>

#include "base/cpu.h"
#include "ops/kernels/products.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace braid {
namespace {

// Runs a set of independent instructions `count` times; the result keeps them from being optimised
// away.
using Loop = float (*)(int count);

struct Instruction {
  const char* name;
  at::ScalarType numbers;
  double work;  // products and sums in one round of the loop
  Loop loop;
  bool is_there;
};

#ifdef __x86_64__

// More than the longest latency needs on two ports; AVX2 has only 16 registers.
constexpr int kSums = 16, kFewSums = 12, kTileSums = 6;

__attribute__((target("avx2,fma"))) float fma_avx2(int count) {
  const __m256 x = _mm256_set1_ps(0.5f);
  __m256 sums[kFewSums];
  for (auto& sum : sums) sum = x;
  for (int i = 0; i < count; ++i)
#pragma GCC unroll 16
    for (auto& sum : sums) sum = _mm256_fmadd_ps(sum, x, x);
  float total = 0;
  for (const auto& sum : sums) total += _mm256_cvtss_f32(sum);
  return total;
}

__attribute__((target("avx512f"))) float fma_avx512(int count) {
  const __m512 x = _mm512_set1_ps(0.5f);
  __m512 sums[kSums];
  for (auto& sum : sums) sum = x;
  for (int i = 0; i < count; ++i)
#pragma GCC unroll 16
    for (auto& sum : sums) sum = _mm512_fmadd_ps(sum, x, x);
  float total = 0;
  for (const auto& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}

__attribute__((target("avx512f,avx512bf16"))) float vdpbf16ps(int count) {
  const __m512 ones = _mm512_set1_ps(0.5f);
  const auto x = (__m512bh)ones;
  __m512 sums[kSums];
  for (auto& sum : sums) sum = ones;
  for (int i = 0; i < count; ++i)
#pragma GCC unroll 16
    for (auto& sum : sums) sum = _mm512_dpbf16_ps(sum, x, x);
  float total = 0;
  for (const auto& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}

__attribute__((target("avx512f,avx512vnni"))) float vpdpbusd(int count) {
  const __m512i x = _mm512_set1_epi8(1);
  __m512i sums[kSums];
  for (auto& sum : sums) sum = x;
  for (int i = 0; i < count; ++i)
#pragma GCC unroll 16
    for (auto& sum : sums) sum = _mm512_dpbusd_epi32(sum, x, x);
  int total = 0;
  for (const auto& sum : sums) total += _mm512_cvtsi512_si32(sum);
  return float(total);
}

struct alignas(64) Shapes {
  std::uint8_t palette = 1, first_row = 0, unused[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
const Shapes kShapes;

#define BRAID_TILE_LOOP(multiply)   \
  _tile_loadconfig(&kShapes);       \
  _tile_zero(0);                    \
  _tile_zero(1);                    \
  _tile_zero(2);                    \
  _tile_zero(3);                    \
  _tile_zero(4);                    \
  _tile_zero(5);                    \
  _tile_zero(6);                    \
  _tile_zero(7);                    \
  for (int i = 0; i < count; ++i) { \
    multiply(0, 6, 7);              \
    multiply(1, 6, 7);              \
    multiply(2, 6, 7);              \
    multiply(3, 6, 7);              \
    multiply(4, 6, 7);              \
    multiply(5, 6, 7);              \
  }                                 \
  _tile_release();                  \
  return 0

__attribute__((target("amx-tile,amx-bf16"))) float tdpbf16ps(int count) {
  BRAID_TILE_LOOP(_tile_dpbf16ps);
}
__attribute__((target("amx-tile,amx-int8"))) float tdpbssd(int count) {
  BRAID_TILE_LOOP(_tile_dpbssd);
}
#undef BRAID_TILE_LOOP

std::vector<Instruction> instructions() {
  const auto& cpu = read_cpu();
  const bool has_tiles = ops::has_tiles();  // granted by the system on request
  return {
      {"avx2 fma", at::kFloat, kFewSums * 2 * 8.0, fma_avx2, cpu.has("avx2") && cpu.has("fma")},
      {"avx512 fma", at::kFloat, kSums * 2 * 16.0, fma_avx512, cpu.has("avx512f")},
      {"vdpbf16ps", at::kBFloat16, kSums * 2 * 32.0, vdpbf16ps, cpu.has("avx512_bf16")},
      {"vpdpbusd", at::kChar, kSums * 2 * 64.0, vpdpbusd, cpu.has("avx512_vnni")},
      {"tdpbf16ps", at::kBFloat16, kTileSums * 2 * 16 * 16 * 32.0, tdpbf16ps, has_tiles},
      {"tdpbssd", at::kChar, kTileSums * 2 * 16 * 16 * 64.0, tdpbssd, has_tiles},
  };
}

#else

std::vector<Instruction> instructions() { return {}; }

#endif

using Clock = std::chrono::steady_clock;

double seconds_of(Loop loop, int count) {
  const auto begin = Clock::now();
  volatile float kept = loop(count);
  (void)kept;
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Takes about a millisecond.
int count_of(Loop loop) {
  int count = 100;
  while (seconds_of(loop, count) < 5e-4 && count < 100'000'000) count *= 2;
  return count;
}

double best_rate(const Instruction& instruction, int count) {
  constexpr int kTimes = 30;
  double least = INFINITY;
  for (int i = 0; i < kTimes; ++i) least = std::min(least, seconds_of(instruction.loop, count));
  return instruction.work * count / least;
}

// All threads at once: a core's clock may depend on what the others do.
double rate_of(const Instruction& instruction, int threads) {
  const auto count = count_of(instruction.loop);
  std::vector<double> rates(std::size_t(threads), 0.0);
  std::barrier together(threads);
  std::vector<std::jthread> running;
  for (auto& rate : rates)
    running.emplace_back([&] {
      together.arrive_and_wait();
      rate = best_rate(instruction, count);
    });
  running.clear();
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

// The best of some rounds with new threads: a system may run two of them on one core for a while.
double best_rate_of(const Instruction& instruction, int threads) {
  constexpr int kRounds = 5;
  double best = 0;
  for (int i = 0; i < kRounds; ++i) best = std::max(best, rate_of(instruction, threads));
  return best;
}

}  // namespace

std::vector<InstructionPeak> instruction_peaks(int threads) {
  std::vector<InstructionPeak> peaks;
  for (const auto& instruction : instructions())
    if (instruction.is_there)
      peaks.push_back({instruction.name, instruction.numbers, best_rate_of(instruction, threads)});
  return peaks;
}

const InstructionPeak* peak_of(const std::vector<InstructionPeak>& peaks, at::ScalarType numbers) {
  const InstructionPeak* best = nullptr;
  for (const auto& peak : peaks) {
    const bool serves =
        peak.numbers == numbers || (numbers == at::kBFloat16 && peak.numbers == at::kFloat);
    if (serves && (!best || peak.per_second > best->per_second)) best = &peak;
  }
  return best;
}

}  // namespace braid

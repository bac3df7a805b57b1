// Thread counts of kernel launches, for pictures of up to 4096x4096.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#define BRAID_DEVICE

#include "base/error.h"
#include "ops/gpu/launch_shape.h"
#include "ops/gpu/rows.h"

namespace braid::ops::gpu_launch_test {

using namespace gpu;

constexpr std::int64_t kTokens = 256 * 256 + 512;  // of the picture and of the text
constexpr std::int64_t kMostBatch = 16;

using at::Tensor;

const std::vector<Number> kNumbers = {Number::kFloat32, Number::kBfloat16, Number::kFloat16};

// A launch is within CUDA's and HIP's limits, with enough threads for `items` per row but no
// superfluous block.
void expect_launch(const Launch& how, std::int64_t rows, std::int64_t items, int most_threads) {
  EXPECT_EQ(how.rows, rows);
  EXPECT_LE(how.rows, kMostRows);
  EXPECT_LE(how.rows * how.threads, kMostThreadsOfRows);
  EXPECT_LE(how.parts, kMostParts);
  EXPECT_EQ(how.threads % kLanes, 0);
  EXPECT_LE(how.threads, most_threads);
  EXPECT_GE(how.parts * how.threads, items);
  EXPECT_LT((how.parts - 1) * how.threads, items);
}

// Hidden widths of FLUX and larger models, of its feed-forward, and of its single blocks' joined
// tensors.
TEST(LaunchShape, OfRowsCoversPicturesOf4K) {
  for (const auto number : kNumbers)
    for (const std::int64_t hidden : {3072, 3584, 4096, 5120, 6144})
      for (const std::int64_t times : {1, 3, 4, 5, 7})
        for (const int vector : {1, full_vector(number)}) {
          const Shape shape{.rows = kMostBatch * kTokens, .width = times * hidden};
          const auto vectors = shape.width / vector;
          expect_launch(launch_over_vectors(number, vector, shape, at::kCPU), shape.rows, vectors,
                        kMostThreads<GatedResidual>);
          if (shape.width > kWidestRow) continue;
          const auto rows = launch_over_rows(number, vector, shape, at::kCPU);
          EXPECT_EQ(rows.rows, shape.rows);
          EXPECT_EQ(rows.parts, 1);
          const std::int64_t kept = vector == 1 ? kVectorsOfRow<1> : kVectorsOfRow<8>;
          EXPECT_GE(rows.threads * kept, vectors);
          EXPECT_LE(rows.threads, kMostThreads<ModulatedNorm>);
        }
}

TEST(LaunchShape, OfHeadsCoversPicturesOf4K) {
  for (const auto number : kNumbers)
    for (const std::int64_t width : {64, 128, 256})
      for (const int vector : {2, full_vector(number)}) {
        const auto count = kMostBatch * kTokens * (6144 / width);
        NormRotate work{};
        work.lanes = lanes_for(width, vector);
        work.num_blocks = blocks_of_heads(count, work.lanes);
        const auto how = launch_over_heads(number, vector, work, at::kCPU);
        const auto heads_per_block = how.threads / work.lanes;
        EXPECT_GE(how.rows * heads_per_block, count);
        EXPECT_LT((how.rows - 1) * heads_per_block, count);
        EXPECT_LE(how.threads, kMostThreads<NormRotate>);
      }
}

// Misaligned float32 latents of many pictures at once: more blocks than a grid has in its second
// dim.
TEST(LaunchShape, OfNumbersHasNoLimitThatLatentsReach) {
  for (const auto number : kNumbers)
    for (const int vector : {1, full_vector(number)}) {
      const auto count = 64 * kMostBatch * kTokens;
      const auto how = launch_over_numbers(number, vector, count, at::kCPU);
      EXPECT_LE(how.rows, kMostRows);
      EXPECT_EQ(how.parts, 1);
      EXPECT_GE(how.rows * how.threads, count / vector);
      EXPECT_LT((how.rows - 1) * how.threads, count / vector);
    }
}

TEST(LaunchShape, RefusesWhatAGridDoesNotHave) {
  const auto start = [](Shape shape) {
    (void)launch_over_vectors(Number::kFloat32, 1, shape, at::kCPU);
  };
  // HIP counts the threads of all rows in 32 bits, whereas CUDA counts rows in 31
  for (const auto& [width, threads] : {std::pair(1, 32), std::pair(33, 64), std::pair(256, 256)}) {
    const auto rows = (std::int64_t(1) << 32) / threads;
    EXPECT_NO_THROW(start({.rows = rows - 1, .width = width}));
    EXPECT_THROW(start({.rows = rows, .width = width}), Error);
  }
  EXPECT_NO_THROW(start({.rows = 1, .width = kMostParts * 256}));
  EXPECT_THROW(start({.rows = 1, .width = kMostParts * 256 + 1}), Error);
}

// Rows are numbered in 32 bits.
TEST(TokenIndex, IsRightForTheLastRowOfAGrid) {
  for (const std::int64_t tokens : {std::int64_t(1), kTokens, kMostRows}) {
    const auto at = token_at(std::uint32_t(kMostRows - 1), tokens);
    EXPECT_EQ(at.batch * tokens + at.token, kMostRows - 1);
    EXPECT_LT(at.token, tokens);
  }
}

// ------------------------------------------------------------------------- vectors

// A dense tensor that begins `bytes` after a multiple of 512.
Tensor shifted(at::ScalarType dtype, std::int64_t bytes) {
  const auto size = std::int64_t(c10::elementSize(dtype));
  const auto memory = at::empty({4096}, at::kByte);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data_ptr());
  const auto begin = std::int64_t((512 - address % 512) % 512) + bytes;
  return memory.narrow(0, begin, 2 * 3 * 64 * size).view(dtype).view({2, 3, 64});
}

TEST(VectorFor, IsFullOnlyWhereEveryOperandLiesOnMultiplesOf16Bytes) {
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const auto number = number_of(at::empty({1}, dtype));
    const auto size = std::int64_t(c10::elementSize(dtype));
    for (std::size_t operand = 0; operand < 3; ++operand)
      for (const std::int64_t bytes : {0, 2, 4, 8, 16}) {
        if (bytes % size != 0) continue;
        std::vector<Tensor> x(3, shifted(dtype, 0));
        x[operand] = shifted(dtype, bytes);
        const int want = bytes % 16 == 0 ? full_vector(number) : 1;
        EXPECT_EQ(vector_for(number, 1, {x[0], x[1], x[2]}), want)
            << dtype << ", operand " << operand << " off by " << bytes;
      }
  }
}

TEST(VectorFor, LooksAtStridesAndWidths) {
  const auto x = at::empty({2, 3, 72}, at::kBFloat16);
  const auto fits = [](const Tensor& t) { return vector_for(Number::kBfloat16, 1, {t}) == 8; };
  EXPECT_TRUE(fits(x));
  EXPECT_TRUE(fits(x.narrow(2, 8, 64)));
  EXPECT_FALSE(fits(x.narrow(2, 4, 64)));
  EXPECT_FALSE(fits(x.narrow(2, 0, 60)));
  EXPECT_FALSE(fits(at::empty({2, 3, 68}, at::kBFloat16).narrow(2, 0, 64)));
  EXPECT_TRUE(fits(at::empty({1, 1, 68}, at::kBFloat16).narrow(2, 0, 64)));
  EXPECT_TRUE(fits(at::empty({1, 1, 64}, at::kBFloat16).expand({5, 7, 64})));
}

// Codes of 8 numbers are 8 bytes, scales of 8 numbers two vectors.
TEST(VectorFor, KnowsHowManyBytesAnOperandMoves) {
  const auto x = at::empty({4, 64}, at::kBFloat16), codes = at::empty({65, 4}, at::kChar);
  const auto from = [&](std::int64_t begin) {
    return codes.flatten().narrow(0, begin, 256).view({4, 64});
  };
  EXPECT_EQ(vector_for(Number::kBfloat16, 1, {x, from(0)}), 8);
  EXPECT_EQ(vector_for(Number::kBfloat16, 1, {x, from(4)}), 1);
}

}  // namespace braid::ops::gpu_launch_test

// Sums over devices against the definition in float64, and kernels against it bit for bit. Built
// for a GPU and for the host, as gpu_kernels_test.cc is.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "kernel_device.h"
#include "ops/gpu/gpu.h"
#include "ops/reference.h"
#include "ops/sums.h"

namespace braid::gpu_sums_test {

struct Size {
  std::int64_t batch, tokens, width;
};
struct Case {
  at::ScalarType dtype;
  int num_parts;
  Size size;
  std::int64_t begin, count;  // the run
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.num_parts << " parts of " << c.dtype << " " << c.size.batch << "x"
             << c.size.tokens << "x" << c.size.width << " [" << c.begin << ", +" << c.count << ")";
}

// What is summed, on the host.
struct Given {
  std::vector<Tensor> parts;  // [B L C]
  Tensor bias_C, residual_BLC, gate_B1C;
};

Given draw(const Case& c) {
  const auto generator = at::detail::createCPUGenerator(23);
  const auto some = [&](at::IntArrayRef shape, double scale = 1) {
    return (at::randn(shape, generator, at::kFloat) * scale).to(c.dtype);
  };
  const auto [batch, tokens, width] = c.size;
  Given given{.parts = {},
              .bias_C = some({width}),
              .residual_BLC =
                  some({batch, tokens + 1, width + 8}, 3).narrow(1, 1, tokens).narrow(2, 8, width),
              .gate_B1C = some({batch, 1, 3 * width}).narrow(2, width, width)};
  for (int p = 0; p < c.num_parts; ++p) given.parts.push_back(some({batch, tokens, width}));
  return given;
}

std::vector<ops::SumEnd> ends_of(const Given& given) {
  const auto one_gate = given.gate_B1C.narrow(0, 0, 1);
  return {{},
          {given.bias_C},
          {given.bias_C, given.residual_BLC, given.gate_B1C},
          {std::nullopt, given.residual_BLC, one_gate}};
}

// Computes the whole in float64.
Tensor exact(const Given& given, const ops::SumEnd& end) {
  const auto wide = [](const Tensor& x) { return x.to(at::kDouble); };
  auto sum = at::zeros_like(wide(given.parts.front()));
  for (const auto& part : given.parts) sum = sum + wide(part);
  if (end.bias_C) sum = sum + wide(*end.bias_C);
  if (!end.residual_BLC.defined()) return sum;
  return wide(end.residual_BLC) + wide(end.gate_B1C) * sum;
}

class Sums : public testing::TestWithParam<Case> {
 protected:
  using Add = decltype(&ops::add_parts);
  static Tensor sum_of(Add add, const Given& given, const ops::SumEnd& end) {
    const auto& c = GetParam();
    std::vector<Tensor> parts;
    for (const auto& part : given.parts)
      parts.push_back(part.flatten().narrow(0, c.begin, c.count).clone());
    const auto out = at::full({c.count}, NAN, parts.front().options());
    add(parts, end, {.tokens = c.size.tokens, .width = c.size.width, .begin = c.begin}, out);
    return out;
  }
};

TEST_P(Sums, AreRoundedOnce) {
  const auto given = draw(GetParam());
  const auto dtype = GetParam().dtype;
  const double half_unit = dtype == at::kFloat ? 0 : dtype == at::kHalf ? 0x1p-11 : 0x1p-8;
  for (const auto& end : ends_of(given)) {
    const auto want = exact(given, end).flatten().narrow(0, GetParam().begin, GetParam().count);
    const auto allowed = want.abs() * half_unit + want.abs().max() * 2e-6;
    for (const auto add : {&ops::reference::add_parts, &ops::add_parts}) {
      const auto off = (sum_of(add, given, end).to(at::kDouble) - want).abs();
      EXPECT_TRUE(off.le(allowed).all().item<bool>());
    }
  }
}

TEST_P(Sums, AreTheSameBitsOnCpusAndGpus) {
  const auto given = draw(GetParam());
  for (const auto& end : ends_of(given)) {
    const auto want = sum_of(&ops::reference::add_parts, given, end);
    EXPECT_TRUE(at::equal(sum_of(&ops::add_parts, given, end), want));
    if (!kernel_device()) continue;
    const auto there = [](const Tensor& x) { return x.defined() ? x.to(*kernel_device()) : x; };
    const ops::SumEnd end_there{
        .bias_C = end.bias_C ? std::optional(there(*end.bias_C)) : std::nullopt,
        .residual_BLC = there(end.residual_BLC),
        .gate_B1C = there(end.gate_B1C)};
    auto given_there = given;
    for (auto& part : given_there.parts) part = there(part);
    EXPECT_TRUE(at::equal(sum_of(&ops::gpu::add_parts, given_there, end_there).cpu(), want));
  }
}

// Runs that begin and end within rows, are aligned or not, and span pictures.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const int parts : {1, 2, 3, 8, 16}) all.push_back({dtype, parts, {2, 5, 48}, 0, 480});
    all.push_back({dtype, 2, {2, 5, 48}, 16, 336});
    all.push_back({dtype, 2, {2, 5, 48}, 240, 240});
    all.push_back({dtype, 3, {3, 2, 7}, 5, 31});
    all.push_back({dtype, 2, {1, 3, 1040}, 1000, 1500});
    all.push_back({dtype, 2, {1, 1, 8}, 7, 1});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Runs, Sums, testing::ValuesIn(cases()));

// What overflows float16 behind a gate is clipped.
TEST(SumEnds, ClipFloat16BehindAGate) {
  const auto large = at::full({1, 1, 8}, 60000., at::kHalf);
  const std::vector parts = {large.flatten()};
  const auto out = at::empty({8}, at::kHalf);
  ops::add_parts(parts, {std::nullopt, large, at::ones({1, 1, 8}, at::kHalf)},
                 {.tokens = 1, .width = 8, .begin = 0}, out);
  EXPECT_TRUE(out.eq(65504).all().item<bool>());
}

// More parts than the kernel takes are added by the definition.
TEST(SumEnds, TakeAnyNumberOfParts) {
  const std::vector parts(40, at::ones({6}, at::kBFloat16));
  const auto out = at::empty({6}, at::kBFloat16);
  ops::add_parts(parts, {}, {.tokens = 2, .width = 3, .begin = 0}, out);
  EXPECT_TRUE(out.eq(40).all().item<bool>());
  EXPECT_FALSE(ops::gpu::adds(40));
}

}  // namespace braid::gpu_sums_test

// Dense layers on a GPU, in all forms of their weight, against their definition on the CPU.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>

#include "base/gpu_runtime.h"
#include "on_gpu.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "weights/codes/int8.h"

namespace braid::linear_test {

struct Case {
  Quantize form;
  at::ScalarType dtype;
  std::int64_t tokens, in, out;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << int(c.form) << " " << c.dtype << " " << c.tokens << "x" << c.in << "x" << c.out;
}

class LinearOnGpu : public OnGpu, public testing::WithParamInterface<Case> {
 protected:
  Tensor draw(at::IntArrayRef shape) {
    return at::randn(shape, generator_, at::kFloat).to(GetParam().dtype);
  }
  Matrix weight() {
    const auto& c = GetParam();
    const auto rows = draw({c.out, c.in});
    return c.form == Quantize::kNone ? Matrix{.values_NC = rows} : quantize_rows(rows, c.form);
  }
  static Matrix on_gpu(const Matrix& matrix) {
    return map_tensors(matrix, [](const Tensor& tensor) { return tensor.to(gpu()); });
  }

  // A GPU that multiplies float8 rounds tokens, too.
  static Tensor definition(const Tensor& x, const Matrix& w, const std::optional<Tensor>& bias) {
    const auto& c = GetParam();
    const bool rounds_tokens = w.form == Quantize::kFloat8 && c.dtype == at::kBFloat16 &&
                               w.inputs() % 16 == 0 && w.values_NC.size(0) % 16 == 0 &&
                               gpu_runtime::compute_capability(0) >= 89;
    if (!rounds_tokens) return ops::reference::linear(x, w, bias).to(at::kDouble);
    const auto tokens = quantize_rows(x.flatten(0, 1), Quantize::kFloat8);
    const auto y = at::linear(dequantize(tokens, at::kFloat), dequantize(w, at::kFloat));
    return (bias ? y + *bias : y).view({x.size(0), x.size(1), -1}).to(at::kDouble);
  }

  // The largest one, as a fraction of the largest number.
  static double error_of(const Tensor& got, const Tensor& want) {
    const auto numbers = want.cpu().to(at::kDouble);
    const auto error = (got.cpu().to(at::kDouble) - numbers).abs().max() / numbers.abs().max();
    return error.item<double>();
  }
  static double most_error() { return GetParam().dtype == at::kFloat ? 1e-5 : 1.0 / 64; }

  at::Generator generator_ = at::detail::createCPUGenerator(5);
};

// The dynamic form sums integers, exactly; other sums are taken in another order and rounded to the
// dtype, float32 by tensor cores in no build of LibTorch unless asked for.
TEST_P(LinearOnGpu, EqualsItsDefinition) {
  const auto& c = GetParam();
  const auto x = draw({2, c.tokens, c.in}), bias = draw({c.out});
  const auto w = weight();
  Scratch scratch;
  for (const bool has_bias : {true, false}) {
    const auto b = has_bias ? std::optional(bias) : std::nullopt;
    const auto there = has_bias ? std::optional(bias.to(gpu())) : std::nullopt;
    const auto want = definition(x, w, b);
    const auto got = ops::linear(x.to(gpu()), on_gpu(w), there, scratch);
    ASSERT_EQ(got.sizes(), want.sizes());
    ASSERT_EQ(got.scalar_type(), c.dtype);
    EXPECT_LE(error_of(got, want), most_error());
  }
}

// The same bits as without it, where the room begins as memory of its own does: libraries choose
// another kernel, which may sum in another order, for a result at an odd address.
TEST_P(LinearOnGpu, PutsItsResultIntoTheRoomItIsGiven) {
  const auto& c = GetParam();
  const auto x = draw({1, c.tokens, c.in}).to(gpu()), bias = draw({c.out}).to(gpu());
  const auto w = on_gpu(weight());
  Scratch scratch;
  for (const auto& b : {std::optional(bias), std::optional<Tensor>()}) {
    const auto wide = at::zeros({1, c.tokens + 3, c.out}, x.options());
    const auto room = wide.narrow(1, 2, c.tokens);
    const auto got = ops::linear(x, w, b, scratch, room);
    EXPECT_TRUE(got.is_alias_of(wide));
    const auto want = ops::linear(x, w, b, scratch);
    if (reinterpret_cast<std::uintptr_t>(room.const_data_ptr()) % 16 == 0) {
      EXPECT_TRUE(at::equal(room.cpu(), want.cpu()));
    } else {
      EXPECT_LE(error_of(room, want), most_error());
    }
    EXPECT_TRUE(wide.narrow(1, 0, 2).eq(0).all().cpu().item<bool>());
    EXPECT_TRUE(wide.narrow(1, c.tokens + 2, 1).eq(0).all().cpu().item<bool>());
  }
}

TEST_P(LinearOnGpu, TakesSharesOfAWeight) {
  const auto& c = GetParam();
  if (c.in < 17 || c.out < 6) return;
  auto share = rows_of(weight(), 2, c.out - 3);
  share.values_NC = share.values_NC.narrow(1, 1, c.in - 1);
  const auto x = draw({1, c.tokens, c.in - 1});
  Scratch scratch;
  const auto want = definition(x, share, {});
  const auto got = ops::linear(x.to(gpu()), on_gpu(share), {}, scratch);
  EXPECT_LE(error_of(got, want), most_error());
}

// Where GELU is small the tanh approximation and the exact one differ by up to a tenth, in 16 bits
// a hundred times what rounding does.
TEST_P(LinearOnGpu, GeluIsTheTanhApproximation) {
  const auto& c = GetParam();
  if (c.form != Quantize::kNone || c.in != 64) return;
  const auto x = at::linspace(-3.5, 3, 40 * c.in, at::kFloat).to(c.dtype).view({2, 20, c.in});
  const Matrix w{.values_NC = at::eye(c.out, c.in, at::kFloat).to(c.dtype)};
  const auto bias = at::zeros({c.out}, c.dtype);
  Scratch scratch;
  const auto got = ops::linear_gelu(x.to(gpu()), on_gpu(w), bias.to(gpu()), scratch).cpu();
  const auto want = at::gelu(x.to(at::kDouble), "tanh");
  const auto error = (got.narrow(-1, 0, c.in).to(at::kDouble) - want).abs() / want.abs();
  EXPECT_LE(error.nan_to_num(0).max().item<double>(), c.dtype == at::kFloat ? 1e-3 : 1.0 / 64);
  EXPECT_EQ(got.narrow(-1, c.in, c.out - c.in).abs().max().item<double>(), 0);
}

// Two products, of which the first is rounded before the second is added.
TEST_P(LinearOnGpu, TakesTokensInParts) {
  const auto& c = GetParam();
  const auto w = weight(), there = on_gpu(w);
  const auto x = draw({2, c.tokens, c.in}), bias = draw({c.out});
  ASSERT_EQ(ops::takes_parts(x.to(gpu()), there), c.form == Quantize::kNone);
  EXPECT_FALSE(ops::takes_parts(x, w));
  if (c.form != Quantize::kNone) return;
  const auto first = c.in / 3;
  const auto in = ops::LayerInput::in_parts(x.narrow(-1, 0, first).to(gpu()),
                                            x.narrow(-1, first, c.in - first).to(gpu()));
  Scratch scratch;
  const auto want = definition(x, w, bias);
  const auto got = ops::linear(in, there, bias.to(gpu()), scratch).cpu();
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LE(error_of(got, want), most_error());
}

TEST_P(LinearOnGpu, EndsInGeluForSomeOutputs) {
  const auto& c = GetParam();
  const auto w = on_gpu(weight());
  const auto x = draw({2, c.tokens, c.in}).to(gpu()), bias = draw({c.out}).to(gpu());
  const bool is_apart =
      c.form == Quantize::kNone && c.dtype != at::kFloat && gpu_runtime::compute_capability(0) > 0;
  ASSERT_EQ(ops::ends_in_gelu(x, w, bias), is_apart);
  if (!is_apart) return;
  const auto plain = c.out / 3;
  Scratch scratch;
  const auto whole = ops::linear(x, w, bias, scratch).cpu();
  const auto [left, right] = ops::linear_then_gelu(x, w, bias, plain);
  const auto error_of = [](const Tensor& got, const Tensor& want) {
    return (got.cpu().to(at::kDouble) - want).abs().max().item<double>();
  };
  const auto numbers = whole.to(at::kDouble);
  const auto unit = numbers.abs().max().item<double>() / 64;
  EXPECT_LE(error_of(left, numbers.narrow(-1, 0, plain)), unit);
  EXPECT_LE(error_of(right, at::gelu(numbers.narrow(-1, plain, c.out - plain), "tanh")), unit);
}

// FLUX's widths would take a while on made GPUs; a token alone, few, and widths that an int8
// product of a GPU does not take as they are.
std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const auto form : {Quantize::kNone, Quantize::kInt8, Quantize::kInt8V1,
                          Quantize::kInt8Dynamic, Quantize::kFloat8})
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
      for (const auto& [tokens, in, out] :
           {std::tuple(1, 64, 128), std::tuple(3, 128, 64), std::tuple(40, 72, 48),
            std::tuple(33, 100, 30), std::tuple(1, 17, 5)})
        cases.push_back({form, dtype, tokens, in, out});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Forms, LinearOnGpu, testing::ValuesIn(cases()));

// Rows, inputs and outputs of the products that this thread is told of.
thread_local std::vector<std::vector<std::int64_t>> told;

std::unique_ptr<at::ObserverContext> tell(const at::RecordFunction& op) {
  if (std::string_view(op.name()) != "braid::linear") return nullptr;
  told.emplace_back();
  for (const auto& size : op.inputs()) told.back().push_back(size.toInt());
  return nullptr;
}

class ToldOnGpu : public OnGpu {};

// Rates are counted with them.
TEST_F(ToldOnGpu, ProductsAreThoseOfBothParts) {
  const auto x = at::randn({2, 3, 48}).to(gpu());
  const Matrix w{.values_NC = at::randn({24, 48}).to(gpu())};
  Scratch scratch;
  told.clear();
  const auto listener = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&tell).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  (void)ops::linear(x, w, {}, scratch);
  (void)ops::linear(ops::LayerInput::in_parts(x.narrow(-1, 0, 16), x.narrow(-1, 16, 32)), w, {},
                    scratch);
  at::removeCallback(listener);
  EXPECT_THAT(told, testing::ElementsAre(std::vector<std::int64_t>{6, 48, 24},
                                         std::vector<std::int64_t>{6, 48, 24}));
}

class RotatedOnGpu : public OnGpu {};

// Groups that a warp rotates in registers and others, with some of their columns wanted or all;
// and the numbers that the codes stand for.
TEST_F(RotatedOnGpu, CodesMultiplyAsDefined) {
  Scratch scratch;
  for (const std::int64_t together : {4, 64, 256, 1024})
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
      for (const auto form : {Quantize::kInt8Dynamic, Quantize::kInt8})
        for (const auto& columns : {std::vector<Share>(), {{3, 400}, {700, 24}}}) {
          QuantFormat coding{.type = ElementType::kInt8,
                             .inputs = columns.empty() ? 1024 : 424,
                             .columns = columns,
                             .rotated_together = together};
          const Matrix w{.form = form,
                         .values_NC = at::randint(0, 256, {24, 1024}, at::kByte),
                         .scales_N1 = at::rand({24, 1}) * 0.01,
                         .coding = std::make_shared<const QuantFormat>(coding)};
          const auto there = map_tensors(w, [](const Tensor& t) { return t.to(gpu()); });
          const auto x = at::randn({2, 5, coding.inputs}).to(dtype);
          const auto want = ops::reference::linear(x, w, {}).to(at::kDouble);
          const auto got = ops::linear(x.to(gpu()), there, {}, scratch);
          ASSERT_EQ(got.scalar_type(), dtype);
          const auto error = (got.cpu().to(at::kDouble) - want).abs().max() / want.abs().max();
          EXPECT_LE(error.item<double>(), dtype == at::kFloat ? 1e-5 : 1.0 / 64)
              << together << " " << dtype << " " << int(form) << " " << columns.size();
        }
}

}  // namespace braid::linear_test

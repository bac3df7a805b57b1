// Layers with more inputs than a checkpoint stores: the further ones count nothing.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/thread.h"
#include "files.h"
#include "weights/codes/int8.h"
#include "weights/files/safetensors_writer.h"
#include "weights/paging/cpu_device.h"
#include "weights/sources/widened.h"
#include "weights/weights.h"

namespace braid::widened_test {

using testing::HasSubstr;
using namespace testing_files;

constexpr std::int64_t kRows = 6, kStored = 8, kInputs = 12;

class Widened : public testing::Test {
 protected:
  // A checkpoint with layers `in` and `other` of kStored inputs.
  std::shared_ptr<TensorSource> source(const Tensor& weight, const Tensor& scales = {}) {
    std::map<std::string, Tensor> tensors = {
        {"in.weight", weight}, {"in.bias", bias_}, {"other.weight", other_}};
    if (scales.defined()) tensors["in.weight_scale"] = scales;
    write_file(folder_ / "m.safetensors", write_safetensors(tensors));
    return widened_tensors(stored_tensors(Checkpoint::open_file(folder_ / "m.safetensors"), {}),
                           {.layer = "in", .stored_inputs = kStored});
  }
  // Loads all of it, and expects the layers that are not widened as stored.
  Matrix loaded(const std::shared_ptr<TensorSource>& source, const LoadOptions& options) const {
    const Weights w(source, options);
    const auto made = (w / "in").matrix("weight", {kRows, kInputs});
    EXPECT_TRUE(at::equal((w / "in").tensor("bias", {kRows}), bias_));
    EXPECT_TRUE(at::equal((w / "other").as(at::kFloat).tensor("weight", {kRows, kStored}), other_));
    w.finish();
    return made;
  }
  static Tensor with_zeros(const Tensor& numbers) {
    return at::constant_pad_nd(numbers, {0, kInputs - kStored});
  }

  TemporaryFolder folder_;
  Tensor numbers_ = at::randn({kRows, kStored}), bias_ = at::randn({kRows}),
         other_ = at::randn({kRows, kStored});
};

TEST_F(Widened, HaveZerosBehindTheStoredNumbers) {
  const auto got = loaded(source(numbers_), {});
  EXPECT_TRUE(at::equal(got.values_NC, with_zeros(numbers_)));
}

// Codes and scales are those of the stored inputs.
TEST_F(Widened, AreQuantizedAsTheStoredInputsAre) {
  for (const auto form :
       {Quantize::kInt8, Quantize::kInt8V1, Quantize::kInt8Dynamic, Quantize::kFloat8}) {
    const auto got = loaded(source(numbers_), {.quantize = form});
    EXPECT_EQ(got.form, form);
    EXPECT_TRUE(at::equal(dequantize(got, at::kFloat),
                          with_zeros(dequantize(quantize_rows(numbers_, form), at::kFloat))))
        << int(form);
  }
}

TEST_F(Widened, KeepStoredCodesAndTheirScales) {
  const auto codes = quantize_rows(numbers_, Quantize::kInt8);
  const auto got = loaded(source(codes.values_NC, codes.scales_N1), {.quantize = Quantize::kInt8});
  EXPECT_TRUE(at::equal(got.values_NC, with_zeros(codes.values_NC)));
  EXPECT_TRUE(at::equal(got.scales_N1, codes.scales_N1));
}

// Bytes of a file's coding have no room for further inputs.
TEST_F(Widened, AreDecodedEvenIfOthersStayAsStored) {
  const auto float8 = numbers_.to(at::kFloat8_e4m3fn);
  const auto got = loaded(source(float8), {.stored_codes = StoredCodes::kKept});
  EXPECT_EQ(got.coding, nullptr);
  EXPECT_TRUE(at::equal(got.values_NC, with_zeros(float8.to(at::kFloat))));
}

TEST_F(Widened, LieInPages) {
  for (const auto form : {Quantize::kNone, Quantize::kInt8}) {
    const auto pages = std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU,
                                               PageOptions{.resident = -1});
    const Weights w(source(numbers_),
                    {.quantize = form, .paging = {.pages = pages, .level = PageLevel::kModel}});
    const auto made = (w / "in").matrix("weight", {kRows, kInputs});
    (w / "in").skip();
    (w / "other").skip();
    pages->finish();
    const auto whole =
        form == Quantize::kNone ? numbers_ : dequantize(quantize_rows(numbers_, form), at::kFloat);
    EXPECT_TRUE(at::equal(dequantize(made, at::kFloat), with_zeros(whole))) << int(form);
  }
}

TEST_F(Widened, AreDescribedByTheirWidth) {
  const auto identity = [&](std::int64_t inputs) {
    const TensorRequest request{.layer = "in",
                                .name = "weight",
                                .shape = {kRows, inputs},
                                .dtype = at::kFloat,
                                .kind = TensorRequest::Kind::kMatrix,
                                .shard = {.rows = {{0, kRows}}}};
    return identity_of(*source(numbers_)->find(request));
  };
  EXPECT_EQ(identity(12), identity(12));
  EXPECT_NE(identity(12), identity(13));
}

TEST_F(Widened, AreDividedByOutputsAlone) {
  const auto from = source(numbers_);
  run_ranks({.size = 2}, [&](const Group& ranks) {
    const LoadOptions options{.tensor_parallel = ranks};
    const Weights by_rows(from, options, {{"in", row_parallel()}});
    EXPECT_THAT(message_of<Error>([&] {
                  (void)(by_rows / "in").matrix("weight", {kRows, kInputs});
                }),
                HasSubstr("in is widened and cannot share its inputs"));
  });
  run_ranks({.size = 2}, [&](const Group& ranks) {
    auto own = widened_tensors(stored_tensors(Checkpoint::open_file(folder_ / "m.safetensors"), {}),
                               {.layer = "in", .stored_inputs = kStored});
    const Weights w(own, {.tensor_parallel = ranks}, {{"in", column_parallel()}});
    EXPECT_TRUE(at::equal((w / "in").matrix("weight", {kRows, kInputs}).values_NC,
                          take_share(with_zeros(numbers_), 0, ranks)));
  });
}

TEST_F(Widened, AreRefusedIfTheFileHasOtherInputs) {
  EXPECT_THAT(message_of([&] {
                (void)loaded(source(at::ones({kRows, kStored + 1})), {});
              }),
              HasSubstr("should have the shape [6, 8], it has [6, 9]"));
}

// ---------------------------------------------------------------------------------- scalars

TEST(StoredScalars, AreReadInEveryDtypeAndAtAnyPlace) {
  const TemporaryFolder folder;
  for (const int pad : {0, 1, 3})
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
      write_file(folder / "m.safetensors", float_file({{"s", {}, {1.5f}}}, pad));
      const Weights w(Checkpoint::open_file(folder / "m.safetensors"), {}, {.dtype = dtype});
      const auto got = w.tensor("s", {});
      EXPECT_EQ(got.dim(), 0) << pad;
      EXPECT_EQ(got.scalar_type(), dtype);
      EXPECT_EQ(got.item<double>(), 1.5);
    }
}

}  // namespace braid::widened_test

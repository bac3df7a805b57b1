// A checkpoint's numbers on their way to a GPU, and codes made there.
#include "weights/upload.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/thread.h"
#include "on_gpu.h"
#include "weights/files.h"
#include "weights/files/safetensors_writer.h"
#include "weights/weights.h"

namespace braid::upload_test {

using namespace testing_files;

class UploadOnGpu : public OnGpu {
 protected:
  Tensor draw(at::IntArrayRef shape) { return at::randn(shape, generator_, at::kFloat); }

  TemporaryFolder folder_;
  at::Generator generator_ = at::detail::createCPUGenerator(11);
};

// Sizes below, at and beyond both halves, and what is refilled while it may still travel.
TEST_F(UploadOnGpu, BringsEveryByteThroughItsHalves) {
  constexpr std::int64_t kHalf = 4096;
  Upload upload(gpu(), kHalf);
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kChar})
    for (const std::int64_t numbers : {0, 1, 1023, 4096, 4097, 12'288, 100'003}) {
      auto host = (draw({numbers}) * 50).to(dtype);
      const auto want = host.clone();
      const auto got = upload(host);
      host.zero_();
      EXPECT_EQ(got.device(), gpu());
      EXPECT_TRUE(at::equal(got.cpu(), want)) << dtype << " " << numbers;
    }
  const auto rows = draw({60, 50});
  EXPECT_TRUE(at::equal(upload(rows.t()).cpu(), rows.t()));
  EXPECT_TRUE(at::equal(upload(at::scalar_tensor(3)).cpu(), at::scalar_tensor(3)));
  const auto wide = at::zeros({3, 2000}, at::TensorOptions(at::kFloat).device(gpu()));
  const auto one = draw({2000});
  upload.copy(wide[1], one);
  EXPECT_TRUE(at::equal(wide[1].cpu(), one));
  EXPECT_EQ(wide.abs().sum({1}).eq(0).sum().item<int>(), 2);
}

void expect_same(const Matrix& got, const Matrix& want, const std::string& what) {
  ASSERT_EQ(got.form, want.form);
  ASSERT_FALSE(got.values_NC.is_cpu()) << what;
  EXPECT_TRUE(at::equal(got.values_NC.cpu(), want.values_NC)) << what;
  if (!want.scales_N1.defined()) return;
  ASSERT_FALSE(got.scales_N1.is_cpu()) << what;
  EXPECT_TRUE(at::equal(got.scales_N1.cpu(), want.scales_N1)) << what;
}

using SlowUploadOnGpu = UploadOnGpu;

// More numbers than are quantized at once, also in rows of which a rank keeps some columns.
TEST_F(SlowUploadOnGpu, LoadsTheBitsThatTheCpuLoads) {
  const auto first = draw({1500, 2048}), second = draw({900, 2048}) * 3;
  write_file(folder_ / "m.safetensors", write_safetensors({{"a.weight", first.to(at::kBFloat16)},
                                                           {"b.weight", second.to(at::kBFloat16)},
                                                           {"wide.weight", second}}));
  const Names names{.spellings = {{"ab", {"a", "b"}}}};
  const ShardingTable plan = {{"wide", row_parallel({1024, 1024})}, {"ab", column_parallel()}};
  for (const auto form : {Quantize::kNone, Quantize::kInt8, Quantize::kInt8V1,
                          Quantize::kInt8Dynamic, Quantize::kFloat8})
    for (const auto dtype : {at::kFloat, at::kBFloat16})
      run_ranks({.size = 2}, [&](const Group& group) {
        const auto load = [&](at::Device device, const std::string& layer, std::int64_t rows) {
          const Weights w(
              Checkpoint::open(folder_.path(), "m"), names,
              {.dtype = dtype, .device = device, .tensor_parallel = group, .quantize = form}, plan);
          return (w / layer).matrix("weight", {rows, 2048});
        };
        const auto what = text_of(int(form), " ", dtype, " rank ", group.rank());
        expect_same(load(gpu(), "ab", 2400), load(at::kCPU, "ab", 2400), what + " rows");
        expect_same(load(gpu(), "wide", 900), load(at::kCPU, "wide", 900), what + " columns");
      });
}

}  // namespace braid::upload_test

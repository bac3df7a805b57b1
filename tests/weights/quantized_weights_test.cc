// Weights quantized while they are read: the same whole or in shares, fused or not.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "comm/thread.h"
#include "files.h"
#include "resident_bytes.h"
#include "weights/codes/int8.h"
#include "weights/files/safetensors_writer.h"
#include "weights/weights.h"

namespace braid::quantized_weights_test {

using testing::HasSubstr;
using namespace testing_files;

class QuantizedWeights : public testing::Test {
 protected:
  Weights open(const std::map<std::string, Tensor>& tensors, LoadOptions options,
               const Names& names = {}, const ShardingTable& plan = {}) {
    write_file(folder_ / "m.safetensors", write_safetensors(tensors));
    return {Checkpoint::open(folder_.path(), "m"), names, std::move(options), plan};
  }
  TemporaryFolder folder_;
};

void expect_equal(const Matrix& got, const Matrix& want) {
  EXPECT_EQ(got.form, want.form);
  EXPECT_TRUE(at::equal(got.values_NC, want.values_NC));
  EXPECT_TRUE(at::equal(got.scales_N1, want.scales_N1));
}

const Quantize kForms[] = {Quantize::kInt8, Quantize::kInt8V1, Quantize::kInt8Dynamic,
                           Quantize::kFloat8};

TEST_F(QuantizedWeights, AreWhatQuantizingTheWholeMakes) {
  const auto w = at::randn({5000, 700}, at::kFloat);  // more rows than are read at once
  for (const auto form : kForms) {
    const auto open_w = open({{"a.weight", w}}, {.dtype = at::kBFloat16, .quantize = form});
    expect_equal((open_w / "a").matrix("weight", {5000, 700}),
                 quantize_rows(w.to(at::kBFloat16), form));
  }
}

TEST_F(QuantizedWeights, JoinRowsWithTheirScales) {
  const auto q = at::randn({3, 8}, at::kFloat), k = 10 * at::randn({5, 8}, at::kFloat);
  const auto w = open({{"q.weight", q}, {"k.weight", k}}, {.quantize = Quantize::kInt8},
                      {.spellings = {{"qk", {"q", "k"}}}});
  expect_equal((w / "qk").matrix("weight", {8, 8}),
               quantize_rows(at::cat({q, k}), Quantize::kInt8));
}

// A row's scale is that of all its numbers: who keeps some columns reads all the same.
TEST_F(QuantizedWeights, AreReadByRowsEvenForSomeOfTheirColumns) {
  const ShardingTable plan = {{"in", column_parallel()}, {"out", row_parallel()}};
  const auto w = at::randn({6, 8}, at::kFloat);
  (void)open({{"in.weight", w}, {"out.weight", w}}, {});
  for (const auto form : kForms)
    run_ranks({.size = 2}, [&](const Group& ranks) {
      BytesRead read;
      const Weights mine(Checkpoint::open(folder_.path(), "m"), {},
                         {.on_read = [&](const BytesRead& more) { read += more; },
                          .tensor_parallel = ranks,
                          .quantize = form},
                         plan);
      (void)(mine / "in").matrix("weight", {6, 8});
      EXPECT_EQ(read, (BytesRead{.all = 3 * 8 * 4, .strided = 0}));
      (void)(mine / "out").matrix("weight", {6, 8});
      EXPECT_EQ(read, (BytesRead{.all = (3 + 6) * 8 * 4, .strided = 0}));
    });
}

class Shares : public QuantizedWeights, public testing::WithParamInterface<Quantize> {};

TEST_P(Shares, AreCutFromTheCodesOfOneDevice) {
  const auto form = GetParam();
  const auto w = at::randn({12, 16}, at::kFloat);
  const auto whole = quantize_rows(w, form);
  const ShardingTable plan = {{"rows", row_parallel({8, 8})}, {"columns", column_parallel()}};
  std::vector<Matrix> by_rows(2), by_columns(2);
  run_ranks({.size = 2}, [&](const Group& group) {
    const TemporaryFolder own;
    write_file(own / "m.safetensors",
               write_safetensors({{"rows.weight", w}, {"columns.weight", w}}));
    const Weights weights(Checkpoint::open(own.path(), "m"), {},
                          {.tensor_parallel = group, .quantize = form}, plan);
    const auto rank = std::size_t(group.rank());
    by_rows[rank] = (weights / "rows").matrix("weight", {12, 16});
    by_columns[rank] = (weights / "columns").matrix("weight", {12, 16});
  });
  for (int rank = 0; rank < 2; ++rank) {
    const auto& rows = by_rows[std::size_t(rank)];
    EXPECT_TRUE(at::equal(rows.scales_N1, whole.scales_N1)) << "of the whole row";
    const auto mine = at::cat(
        {whole.values_NC.narrow(1, 4 * rank, 4), whole.values_NC.narrow(1, 8 + 4 * rank, 4)}, 1);
    EXPECT_TRUE(at::equal(rows.values_NC, mine));
    expect_equal(by_columns[std::size_t(rank)], rows_of(whole, 6 * rank, 6));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Shares, testing::Values(Quantize::kInt8, Quantize::kFloat8));

// Bytes, from Linux's account of this process: "VmHWM:    1234 kB".
std::int64_t memory_of_process(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::stoll(line.substr(key.size() + 1)) * 1024;
  return 0;
}

using SlowQuantizedWeights = QuantizedWeights;

// While being read, a matrix is never in memory as numbers.
TEST_F(SlowQuantizedWeights, LoadingTakesTheirSizeAndTwoLayersAtMost) {
  if (is_sanitized()) GTEST_SKIP() << "sanitizers have memory of their own";
  constexpr std::int64_t kLayers = 6, kRows = 4096, kColumns = 4096;
  const auto layer_bytes = kRows * kColumns * 2;
  {
    std::map<std::string, Tensor> tensors;
    for (int i = 0; i < kLayers; ++i)
      tensors[std::to_string(i) + ".weight"] = at::ones({kRows, kColumns}, at::kBFloat16);
    write_file(folder_ / "m.safetensors", write_safetensors(tensors));
  }
  const Weights w(Checkpoint::open(folder_.path(), "m"), {},
                  {.dtype = at::kBFloat16, .quantize = Quantize::kInt8});
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
  const auto before = memory_of_process("VmRSS");
  if (memory_of_process("VmHWM") > before + layer_bytes) GTEST_SKIP() << "cannot reset the peak";
  std::vector<Matrix> loaded;
  for (int i = 0; i < kLayers; ++i) loaded.push_back((w / i).matrix("weight", {kRows, kColumns}));
  const auto peak = memory_of_process("VmHWM") - before;
  EXPECT_LE(peak, kLayers * layer_bytes / 2 + 2 * layer_bytes / 2) << "bytes";
}

TEST_F(QuantizedWeights, LayersOnTheListStayDense) {
  const auto w = at::randn({2, 2}, at::kFloat);
  const auto weights = open({{"img_in.weight", w}, {"b.0.x.weight", w}},
                            {.quantize = Quantize::kInt8, .keep_dense = {"img_in", "b.*.y"}});
  EXPECT_EQ((weights / "img_in").matrix("weight", {2, 2}).form, Quantize::kNone);
  EXPECT_EQ((weights / "b" / 0 / "x").matrix("weight", {2, 2}).form, Quantize::kInt8);
}

TEST_F(QuantizedWeights, StoredCodesAreTakenAsTheyAre) {
  for (const auto form : {Quantize::kInt8, Quantize::kInt8V1}) {
    const auto codes = quantize_rows(at::randn({6, 4}, at::kBFloat16), form);
    const auto w = open({{"a.weight", codes.values_NC}, {"a.weight_scale", codes.scales_N1}},
                        {.dtype = at::kBFloat16});
    expect_equal((w / "a").matrix("weight", {6, 4}), codes);
    w.finish();
  }
}

// Another form than the file's is taken only where the same codes and scales multiply otherwise.
TEST_F(QuantizedWeights, StoredCodesKeepTheirFormWhateverIsAskedFor) {
  for (const auto stored : {Quantize::kInt8, Quantize::kInt8V1})
    for (const auto asked : kForms) {
      const auto codes = quantize_rows(at::randn({6, 4}, at::kBFloat16), stored);
      const auto w = open({{"a.weight", codes.values_NC}, {"a.weight_scale", codes.scales_N1}},
                          {.dtype = at::kBFloat16, .quantize = asked});
      const bool multiplies = stored == Quantize::kInt8 && asked == Quantize::kInt8Dynamic;
      const auto got = (w / "a").matrix("weight", {6, 4});
      EXPECT_EQ(got.form, multiplies ? asked : stored) << int(stored) << ' ' << int(asked);
      EXPECT_TRUE(at::equal(got.values_NC, codes.values_NC));
      EXPECT_TRUE(at::equal(got.scales_N1, codes.scales_N1));
    }
}

// It is not decoded and quantized anew: these scales would never be chosen.
TEST_F(QuantizedWeights, StoredFloat8IsTakenAsItIs) {
  const auto codes = quantize_rows(at::randn({6, 4}, at::kFloat), Quantize::kFloat8).values_NC;
  for (const auto& scale : {at::full({6, 1}, 3.0, at::kFloat), at::full({}, 3.0, at::kFloat)}) {
    const auto w = open({{"a.weight", codes.view(at::kFloat8_e4m3fn)}, {"a.weight_scale", scale}},
                        {.dtype = at::kBFloat16, .quantize = Quantize::kFloat8});
    const auto got = (w / "a").matrix("weight", {6, 4});
    EXPECT_EQ(got.form, Quantize::kFloat8);
    EXPECT_TRUE(at::equal(got.values_NC, codes));
    EXPECT_TRUE(at::equal(got.scales_N1, at::full({6, 1}, 3.0, at::kFloat)));
    w.finish();
  }
}

TEST_F(QuantizedWeights, StoredFloat8WithoutScalesIsQuantized) {
  const auto stored = at::randn({6, 4}, at::kFloat).to(at::kFloat8_e4m3fn);
  const auto w = open({{"a.weight", stored}}, {.quantize = Quantize::kFloat8});
  expect_equal((w / "a").matrix("weight", {6, 4}),
               quantize_rows(stored.to(at::kFloat), Quantize::kFloat8));
}

TEST_F(QuantizedWeights, StoredCodesMayBeFusedAndSwapped) {
  const auto codes = quantize_rows(at::randn({6, 4}, at::kFloat), Quantize::kInt8);
  const auto w = open({{"a.weight", codes.values_NC}, {"a.weight_scale", codes.scales_N1}},
                      {.quantize = Quantize::kInt8Dynamic},
                      {.spellings = {{"b", {"a"}, {RowOrder::kSwapHalves}}}});
  const auto got = (w / "b").matrix("weight", {6, 4});
  EXPECT_EQ(got.form, Quantize::kInt8Dynamic);
  const auto want = dequantize(codes, at::kFloat);
  EXPECT_TRUE(at::equal(dequantize(got, at::kFloat),
                        at::cat({want.narrow(0, 3, 3), want.narrow(0, 0, 3)})));
}

TEST_F(QuantizedWeights, CodesWithoutScalesAreRefused) {
  const auto w = open({{"a.weight", at::zeros({2, 2}, at::kChar)}}, {});
  EXPECT_THAT(message_of<std::exception>([&] {
                (w / "a").matrix("weight", {2, 2});
              }),
              HasSubstr("without a scale per row, 'a.weight_scale', which Braid cannot read"));
  EXPECT_THAT(message_of<std::exception>([&] {
                const auto v = open({{"a.weight", at::zeros({2, 2}, at::kChar)},
                                     {"a.weight_scale", at::zeros({3, 1}, at::kFloat)}},
                                    {});
                (v / "a").matrix("weight", {2, 2});
              }),
              HasSubstr("should have the shape [2, 1]"));
}

// Only products are computed with codes.
TEST_F(QuantizedWeights, StoredCodesOfTablesAndVectorsAreDecoded) {
  const auto codes = (at::randn({6, 4}) * 40).to(at::kChar), vector = codes.select(1, 0).clone();
  for (const auto& shape : {std::vector<std::int64_t>{6, 1}, {6}, {}, {1}}) {
    const auto scales = at::rand(shape) + 0.5;
    const auto w = open({{"e.weight", codes},
                         {"e.weight_scale", scales},
                         {"e.norm", vector},
                         {"e.norm_scale", scales},
                         {"head.weight", codes},
                         {"head.weight_scale", scales}},
                        {}, {.ignored = {"head.weight"}});
    const auto of_rows = scales.numel() == 6 ? scales.view({6, 1}) : scales.reshape({1, 1});
    EXPECT_TRUE(at::equal((w / "e").table("weight", {6, 4}), codes.to(at::kFloat) * of_rows));
    EXPECT_TRUE(at::equal((w / "e").tensor("norm", {6}),
                          (vector.to(at::kFloat).unsqueeze(1) * of_rows).flatten()));
    EXPECT_NO_THROW(w.finish()) << "scales are ignored with their codes";
  }
}

TEST_F(QuantizedWeights, CodesAreNoNumbersForOtherLayers) {
  const auto w = open({{"a", at::zeros({2, 2}, at::kChar)}}, {});
  EXPECT_THAT(message_of<std::exception>([&] {
                w.tensor("a", {2, 2});
              }),
              HasSubstr("floating-point"));
}

}  // namespace braid::quantized_weights_test

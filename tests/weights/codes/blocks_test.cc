// Quantized weights in files decode to the numbers of the gguf package, diffusers and ComfyUI
// (tools/parity/dump_blocks.py), whole and in shares.
#include "weights/codes/blocks.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/thread.h"
#include "files.h"
#include "weights/codes/int8.h"
#include "weights/files/other_codings.h"
#include "weights/files/safetensors_writer.h"
#include "weights/files/scaled_weights.h"
#include "weights/weights.h"

namespace braid::blocks_test {

using testing::HasSubstr;
using namespace testing_files;

const fs::path kBlocks = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity/blocks";

std::map<std::string, Tensor> wanted() {
  const auto file = Checkpoint::open_file(kBlocks / "numbers.safetensors");
  std::map<std::string, Tensor> numbers;
  for (const auto& [name, stored] : file.tensors()) numbers[name] = stored.view().clone();
  return numbers;
}

Tensor whole(const StoredTensor& stored) {
  return numbers_of(all_rows(std::make_shared<const StoredTensor>(stored)));
}

// Compared as bits, since NaN does not equal itself.
Tensor bits(const Tensor& numbers) { return numbers.to(at::kFloat).contiguous().view(at::kInt); }

TEST(Blocks, OfGgufFilesAreWhatTheGgufPackageMakesOfThem) {
  const auto file = Checkpoint::open_file(kBlocks / "blocks.gguf");
  const auto numbers = wanted();
  EXPECT_EQ(file.tensors().size(), 15u);
  for (const auto& [name, stored] : file.tensors())
    EXPECT_TRUE(at::equal(bits(whole(stored)), bits(numbers.at(name)))) << name;
  EXPECT_EQ(file.dtype(), at::kBFloat16);
}

TEST(Blocks, Float8AndFloat4AreTheirCodesTimesTheirScales) {
  const auto file = Checkpoint::open_file(kBlocks / "float8.safetensors");
  const auto numbers = wanted();
  EXPECT_EQ(file.tensors().size(), 6u) << "scales and marks are no tensors of their own";
  for (const auto& [name, stored] : file.tensors()) {
    const auto got = whole(stored).to(at::kFloat),
               want = numbers.at(name.substr(0, name.find('.')));
    EXPECT_TRUE(at::allclose(got, want, 0, 0, /*equal_nan=*/true)) << name;
  }
}

// Sums of rotations are rounded; everything else is exact.
void expect_comfy_numbers(const std::string& file_name) {
  const auto file = Checkpoint::open_file(kBlocks / file_name);
  const auto numbers = wanted();
  for (const auto* const layer : {"nvfp4", "mxfp8", "int8_one", "int8_turned"}) {
    const auto* const stored = file.find(text_of(layer, ".weight"));
    ASSERT_TRUE(stored) << layer;
    const double tolerance = layer == std::string("int8_turned") ? 1e-7 : 0;
    const auto& want = numbers.at(layer);
    EXPECT_TRUE(at::allclose(whole(*stored), want, 0, tolerance)) << layer;
    const auto some = numbers_of(
        {std::make_shared<const StoredTensor>(*stored), {.begin = 1, .count = want.size(0) - 1}});
    EXPECT_TRUE(at::equal(some, whole(*stored).slice(0, 1))) << layer;
  }
  EXPECT_EQ(file.tensors().size(), 6u) << "four with their scales, and codes with a scale a row";
  const Weights w(file, {}, {});
  const auto codes = (w / "int8_rows").matrix("weight", {3, 64});
  EXPECT_EQ(codes.form, Quantize::kInt8);
  EXPECT_TRUE(at::equal(dequantize(codes, at::kFloat), numbers.at("int8_rows")));
  const auto one = (w / "int8_one").matrix("weight", {3, 64});
  EXPECT_TRUE(at::equal(one.values_NC, numbers.at("int8_one"))) << "a scale for all is no row's";
}

TEST(Blocks, OfComfyUiAreWhatItsMarksSay) {
  expect_comfy_numbers("comfy.safetensors");
  expect_comfy_numbers("comfy_note.safetensors");
}

TEST(Blocks, OfComfyUiMayBeJoinedWithOthers) {
  const auto numbers = wanted();
  const Weights w(Checkpoint::open_file(kBlocks / "comfy.safetensors"),
                  {.spellings = {{"both", {"int8_rows", "int8_one"}}}}, {});
  const auto got = (w / "both").matrix("weight", {6, 64});
  EXPECT_EQ(got.form, Quantize::kNone);
  EXPECT_TRUE(at::equal(got.values_NC, at::cat({numbers.at("int8_rows"), numbers.at("int8_one")})));
}

// Tiles of scales are cut where rows are.
TEST(Blocks, OfComfyUiAreShared) {
  const auto want = wanted().at("nvfp4");
  run_ranks({.size = 3}, [&](const Group& group) {
    const Weights w(Checkpoint::open_file(kBlocks / "comfy.safetensors"), {},
                    {.tensor_parallel = group}, {{"nvfp4", column_parallel()}});
    EXPECT_TRUE(at::equal((w / "nvfp4").matrix("weight", {144, 80}).values_NC,
                          want.narrow(0, 48 * group.rank(), 48)));
  });
}

TEST(Blocks, AreRoundedOnceToTheDtypeOfTheLoad) {
  const Weights w(Checkpoint::open_file(kBlocks / "blocks.gguf"), {}, {.dtype = at::kBFloat16});
  const auto q4 = w.tensor("Q4_K", {3, 512});
  EXPECT_TRUE(at::equal(q4, wanted().at("Q4_K").to(at::kBFloat16)));
  EXPECT_TRUE(at::equal(w.table("Q6_K", {3, 512}), wanted().at("Q6_K").to(at::kBFloat16)));
}

// Column cuts need not coincide with blocks.
TEST(Blocks, SharesAreThoseOfTheNumbers) {
  const auto q4 = wanted().at("Q4_K"), rows = wanted().at("rows");
  run_ranks({.size = 3}, [&](const Group& group) {
    const auto rank = group.rank();
    const auto open = [&](const std::string& file, const ShardingTable& plan) {
      return Weights(Checkpoint::open_file(kBlocks / file), {}, {.tensor_parallel = group}, plan);
    };
    const auto by_rows = open("blocks.gguf", {{"", column_parallel()}}).tensor("Q4_K", {3, 512});
    EXPECT_TRUE(at::equal(by_rows, q4.narrow(0, rank, 1)));
    const auto scaled = open("float8.safetensors", {{"rows", column_parallel()}}) / "rows";
    EXPECT_TRUE(at::equal(scaled.matrix("weight", {3, 64}).values_NC, rows.narrow(0, rank, 1)));
  });
  run_ranks({.size = 2}, [&](const Group& group) {
    const Weights w(Checkpoint::open_file(kBlocks / "blocks.gguf"), {}, {.tensor_parallel = group},
                    {{"", row_parallel({128, 384})}});
    const auto got = w.tensor("Q4_K", {3, 512});
    const auto rank = group.rank();
    EXPECT_TRUE(at::equal(
        got, at::cat({q4.narrow(1, 64 * rank, 64), q4.narrow(1, 128 + 192 * rank, 192)}, 1)));
  });
}

TEST(Blocks, AreQuantizedAsTheirNumbersAre) {
  const Weights w(Checkpoint::open_file(kBlocks / "float8.safetensors"), {},
                  {.dtype = at::kBFloat16, .quantize = Quantize::kInt8});
  const auto got = (w / "rows").matrix("weight", {3, 64});
  const auto want = quantize_rows(wanted().at("rows").to(at::kBFloat16), Quantize::kInt8);
  EXPECT_TRUE(at::equal(got.values_NC, want.values_NC));
  EXPECT_TRUE(at::equal(got.scales_N1, want.scales_N1));
}

class Scales : public testing::Test {
 protected:
  std::string refusal(const std::map<std::string, Tensor>& tensors) {
    write_file(folder_ / "m.safetensors", write_safetensors(tensors));
    return message_of([&] { (void)Checkpoint::open_file(folder_ / "m.safetensors"); });
  }
  TemporaryFolder folder_;
  const Tensor codes_ = at::ones({4, 32}).to(at::kFloat8_e4m3fn);
};

TEST_F(Scales, ThatFitNoWeightAreRefused) {
  EXPECT_THAT(refusal({{"a.weight", codes_}, {"a.weight_scale", at::ones({3})}}),
              HasSubstr("the scale 'a.weight_scale' should have the shape [] (one for all), [4] or "
                        "[4, 1] (one per row), [4, N] (N per row) or [1, 1] (one per square of "
                        "128 x 128), it has [3]"));
  EXPECT_THAT(refusal({{"a.weight", codes_}, {"a.weight_scale", at::ones({1, 4})}}),
              HasSubstr("it has [1, 4]"));
  EXPECT_THAT(refusal({{"a.bias", codes_[0]}, {"a.bias_scale", at::ones({3})}}),
              HasSubstr("'a.bias_scale' should have the shape [] (one for all) or [32] (one per "
                        "row), it has [3]"));
  EXPECT_THAT(refusal({{"a.weight", codes_}, {"a.weight_scale", at::ones({4, 5})}}),
              HasSubstr("'a.weight_scale'"));
  EXPECT_THAT(refusal({{"a.weight", codes_}, {"a.weight_scale", at::ones({4}, at::kLong)}}),
              HasSubstr("floating-point"));
  EXPECT_THAT(refusal({{"a.weight", codes_},
                       {"a.weight_scale", at::ones({})},
                       {"a.scale_weight", at::ones({})}}),
              HasSubstr("two scales"));
}

// Two scales of 48 numbers may be of 24 each, or of 32 and 16.
TEST_F(Scales, OfRunsThatCouldHaveSeveralSizesAreRefused) {
  struct Row {
    std::int64_t columns, scales, neighbours;
  };
  for (const auto& [columns, scales, neighbours] : {Row{256, 16, 16},
                                                    {32, 2, 16},
                                                    {32, 4, 8},
                                                    {4304, 34, 128},
                                                    {290, 3, 128},
                                                    {3072, 24, 128},
                                                    {6, 6, 1},
                                                    {6, 3, 2},
                                                    {100, 1, 100},
                                                    {48, 2, 0},
                                                    {288, 3, 0},
                                                    {6, 2, 0},
                                                    {32, 5, 0},
                                                    {4, 5, 0}})
    EXPECT_EQ(neighbours_per_scale(columns, scales), neighbours) << columns << " " << scales;
  const auto codes = at::ones({4, 48}).to(at::kFloat8_e4m3fn);
  EXPECT_THAT(refusal({{"a.weight", codes}, {"a.weight_scale", at::ones({4, 2})}}),
              HasSubstr("'a.weight_scale' has 2 numbers for each row of 48: how many neighbours "
                        "share one should be certain"));
}

// w[n, c] = code[n, c] * scale[n, c / 128], also in the last run.
TEST_F(Scales, OfRunsMayEndInAShorterOne) {
  const auto codes = (at::randn({5, 290}) * 4).to(at::kFloat8_e4m3fn);
  const auto scales = at::rand({5, 3}) + 0.5;
  const auto of_column = at::arange(290, at::kLong).div(128, "floor");
  write_file(folder_ / "m.safetensors",
             write_safetensors({{"a.weight", codes}, {"a.weight_scale", scales}}));
  const auto file = Checkpoint::open_file(folder_ / "m.safetensors");
  EXPECT_TRUE(at::equal(whole(*file.find("a.weight")),
                        codes.to(at::kFloat) * scales.index_select(1, of_column)));
}

// One scale for 128 x 128 numbers: w[n, c] = code[n, c] * scale[n / 128, c / 128].
TEST_F(Scales, OfSquaresAreOfNumbersBelowAndBeside) {
  for (const auto& [name, columns] : {std::pair("weight_scale_inv", 300), {"weight_scale", 90}}) {
    const auto codes = (at::randn({200, columns}) * 4).to(at::kFloat8_e4m3fn);
    const auto scales = at::rand({2, (columns + 127) / 128}) + 0.5;
    const auto all = at::TensorOptions(at::kLong);
    const auto want = codes.to(at::kFloat) *
                      scales.index({at::arange(200, all).div(128, "floor").unsqueeze(1),
                                    at::arange(columns, all).div(128, "floor").unsqueeze(0)});
    const auto path = folder_ / "squares.safetensors";
    write_file(path, write_safetensors({{"a.weight", codes},
                                        {std::string("a.") + name, scales},
                                        {"a.activation_scale", at::ones({})}}));
    EXPECT_EQ(Checkpoint::open_file(path).tensors().size(), 1u);
    for (const auto& sharding : {column_parallel(), row_parallel()})
      run_ranks({.size = 2}, [&](const Group& group) {
        const Weights w(Checkpoint::open_file(path), {}, {.tensor_parallel = group},
                        {{"a", sharding}});
        const auto got = (w / "a").matrix("weight", {200, columns});
        const auto dim = sharding.split == Split::kRows ? 1 : 0;
        const auto own = want.size(dim) / 2;
        EXPECT_FALSE(got.coding);
        EXPECT_TRUE(at::equal(got.values_NC, want.narrow(dim, group.rank() * own, own)));
      });
  }
}

Tensor said(const std::string& text) {
  return at::tensor(std::vector<std::uint8_t>(text.begin(), text.end()), at::kByte);
}

TEST_F(Scales, OfWaysThatAreNotKnownAreRefused) {
  const auto refusal_of = [&](const std::string& mark) {
    return refusal(
        {{"a.weight", codes_}, {"a.weight_scale", at::ones({})}, {"a.comfy_quant", said(mark)}});
  };
  EXPECT_THAT(refusal_of(R"({"format":"awq_w4a16"})"),
              HasSubstr("a weight of the dtype F8_E4M3 is coded as awq_w4a16"));
  EXPECT_THAT(refusal_of(R"({"format":"nvfp4"})"), HasSubstr("F8_E4M3 is coded as nvfp4"));
  EXPECT_THAT(refusal_of(R"({"format":"float8_e4m3fn","convrot":true,"convrot_groupsize":32})"),
              HasSubstr("'convrot_groupsize' should be a power of 4, it is 32"));
  EXPECT_THAT(refusal_of(R"({"format":"float8_e4m3fn","convrot":true,"convrot_groupsize":64})"),
              HasSubstr("rotates 64 neighbours together"));
  EXPECT_THAT(refusal_of(R"({"format":"float8_e4m3fn",)"
                         R"("params":{"convrot":true,"convrot_groupsize":64}})"),
              HasSubstr("rotates 64 neighbours together"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("'format'"));
  EXPECT_THAT(refusal({{"a.weight", codes_}, {"a.comfy_quant", said("{")}}), HasSubstr("JSON"));
  EXPECT_THAT(refusal({{"a.weight", codes_.view(at::kByte)}}), HasSubstr("float4"));
}

// ComfyUI multiplies by the scale of every layer that a mark says is coded, and fails without it.
TEST_F(Scales, OfMarkedCodesAreThere) {
  const auto mark = said(R"({"format":"float8_e4m3fn"})");
  EXPECT_THAT(
      refusal({{"a.weight", codes_}, {"a.comfy_quant", mark}}),
      HasSubstr("'a.comfy_quant' says that a weight is coded as float8_e4m3fn, but its scale "
                "'a.weight_scale' is not there"));
  EXPECT_EQ(refusal({{"a.weight", codes_}, {"scaled_fp8", codes_[0]}}), "");
}

TEST_F(Scales, OfIntegersMayBeFoundMissing) {
  const auto lacking = [&](const std::map<std::string, Tensor>& tensors) {
    EXPECT_EQ(refusal(tensors), "");
    return codes_without_scales(Checkpoint::open_file(folder_ / "m.safetensors").tensors());
  };
  const auto integers = at::ones({4, 16}, at::kChar);
  EXPECT_THAT(lacking({{"a.bias", at::ones({4})}, {"b.weight", integers}}),
              HasSubstr("tensor 'b.weight' is stored as I8 codes without a scale per row"));
  EXPECT_EQ(lacking({{"b.weight", integers}, {"b.weight_scale", at::ones({4, 1})}}), "");
  EXPECT_EQ(lacking({{"b.weight", integers.to(at::kFloat)}, {"b.ids", integers}}), "");
}

TEST_F(Scales, OfOtherProgramsAreNamed) {
  const auto bytes = codes_.view(at::kByte);
  EXPECT_THAT(
      refusal({{"a.weight", bytes}, {"a.weight.absmax", at::ones({2})}}),
      HasSubstr("is quantized by bitsandbytes in 4 bits, as 'a.weight.absmax' tells, which"));
  for (const auto& [ending, coding] : {std::pair("qweight", "GPTQ, AWQ or SVDQuant"),
                                       {"weight_packed", "compressed-tensors"},
                                       {"weight._data", "quanto"},
                                       {"weight._data._data", "quanto"},
                                       {"weight_blocks", "gpt-oss' mxfp4"},
                                       {"W_q", "HQQ"},
                                       {"_weight_qdata", "torchao"},
                                       {"wscales", "SVDQuant (nunchaku)"},
                                       {"SCB", "bitsandbytes in 8 bits (int8)"}}) {
    const auto name = std::string("b.") + ending;
    EXPECT_THAT(refusal({{name, bytes}}),
                HasSubstr("is quantized by " + std::string(coding) + ", as '" + name + "' tells, " +
                          "which Braid cannot read: take the model's own files"));
  }
  EXPECT_THAT(refusal({{"b.weight", bytes}, {"b.scale", at::ones({4, 1})}}),
              HasSubstr("quantized by SDNQ"));
}

// The names of SDNQ's tensors tell little; diffusers and transformers write what it is beside them.
TEST_F(Scales, OfOtherProgramsAreNamedByTheConfigurationBesideThem) {
  const auto codes = at::ones({4, 16}, at::kChar);
  const auto refusal_by = [&](const std::string& config, const std::string& file = "config.json") {
    write_file(folder_ / file, config);
    return refusal({{"b.weight", codes}, {"b.other", at::ones({4})}});
  };
  EXPECT_THAT(
      refusal_by(R"({"quantization_config":{"quant_method":"sdnq","weights_dtype":"uint4"}})"),
      HasSubstr("is quantized by SDNQ (uint4), as 'b.weight' tells"));
  EXPECT_THAT(refusal_by(R"({"quantization_config":{"quant_method":"bitsandbytes",)"
                         R"("load_in_8bit":true}})"),
              HasSubstr("is quantized by bitsandbytes (int8)"));
  EXPECT_THAT(refusal_by(R"({"quantization_config":{"quant_method":"bitsandbytes",)"
                         R"("bnb_4bit_quant_type":"fp4","load_in_4bit":false,)"
                         R"("load_in_8bit":true}})"),
              HasSubstr("is quantized by bitsandbytes (int8)"));
  EXPECT_THAT(refusal_by(R"({"quantization_config":{"quant_method":"bitsandbytes",)"
                         R"("bnb_4bit_quant_type":"nf4","load_in_4bit":true,)"
                         R"("load_in_8bit":false}})"),
              HasSubstr("is quantized by bitsandbytes (nf4)"));
  EXPECT_THAT(refusal_by(R"({"quantization_config":{"quant_method":"gptq","bits":4}})"),
              HasSubstr("is quantized by GPTQ (4 bits)"));
  EXPECT_THAT(refusal_by(R"({"quantization_config":{"quant_method":"newest"}})"),
              HasSubstr("is quantized by 'newest'"));
  EXPECT_THAT(refusal_by(R"({"quant_config":{"weight_quant_params":{"nbits":4}}})"),
              HasSubstr("is quantized by HQQ"));
  EXPECT_EQ(refusal_by(R"({"hidden_size":8})"), "");
  EXPECT_THAT(refusal_by(R"({"quant_method":"torchao"})", "quantization_config.json"),
              HasSubstr("is quantized by torchao"));
}

// Their tensors decide: it may have been decoded again, or be of a coding that is read.
TEST_F(Scales, OfPlainNumbersMayBesideAnyConfiguration) {
  write_file(folder_ / "config.json", R"({"quantization_config":{"quant_method":"gptq"}})");
  EXPECT_EQ(refusal({{"b.weight", at::ones({4, 16})}}), "");
  write_file(folder_ / "config.json", R"({"quantization_config":{"quant_method":"fp8"}})");
  EXPECT_EQ(refusal({{"b.weight", codes_}}), "");
}

TEST_F(Scales, CountAmongTheBytesOfTheirFile) {
  const auto path = folder_ / "scaled.safetensors";
  write_file(path, write_safetensors({{"p.a.weight", codes_},
                                      {"p.a.weight_scale", at::ones({4})},
                                      {"p.a.input_scale", at::ones({})},
                                      {"p.a.comfy_quant", said(R"({"format":"float8_e4m3fn"})")},
                                      {"p.scaled_fp8", at::zeros({2}).to(at::kFloat8_e4m3fn)},
                                      {"q.b.weight", at::ones({3})}}));
  const auto file = Checkpoint::open_file(path);
  EXPECT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.entries().size(), 6u);
  EXPECT_EQ(file.num_bytes(), 4 * 32 + 4 * 4 + 4 + 26 + 2 + 3 * 4u);
  EXPECT_EQ(file.part("p.").num_bytes(), 4 * 32 + 4 * 4 + 4 + 26 + 2u);
  EXPECT_EQ(file.num_parameters(), 4 * 32 + 3);
}

TEST_F(Scales, InTilesOfAnotherSizeAreRefused) {
  const auto refusal_of = [&](const std::string& format, const Tensor& scales) {
    return refusal({{"a.weight", format == "nvfp4" ? codes_.view(at::kByte) : codes_},
                    {"a.weight_scale", scales},
                    {"a.weight_scale_2", at::ones({})},
                    {"a.comfy_quant", said("{\"format\":\"" + format + "\"}")}});
  };
  EXPECT_THAT(refusal_of("nvfp4", at::ones({4, 4}).to(at::kFloat8_e4m3fn)),
              HasSubstr("'a.weight_scale' has 16 bytes, in tiles of 128 x 4 a scale for each 16 of "
                        "4 x 64 numbers has 512"));
  EXPECT_THAT(refusal_of("mxfp8", at::ones({4, 1}, at::kByte)), HasSubstr("has 4 bytes"));
  EXPECT_THAT(refusal_of("mxfp8", at::ones({128, 4})), HasSubstr("powers of two"));
}

}  // namespace braid::blocks_test

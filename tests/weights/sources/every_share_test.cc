// What a rank gets of stored weights: exactly its slice of what one device gets, in every form the
// weights may be stored and wanted, read in place or not; and the way back into a checkpoint.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/thread.h"
#include "files.h"
#include "weights/codes/int8.h"
#include "weights/files/safetensors_writer.h"
#include "weights/paging/cpu_device.h"
#include "weights/survey.h"
#include "weights/weights.h"

namespace braid::every_share_test {

using namespace testing_files;
using Tensors = std::map<std::string, Tensor>;

constexpr std::int64_t kRows = 12, kColumns = 32;

Checkpoint stored(const TemporaryFolder& folder, const Tensors& tensors) {
  write_file(folder / "m.safetensors", write_safetensors(tensors));
  return Checkpoint::open(folder.path(), "m");
}

struct Wish {
  Quantize form = Quantize::kNone;
  StoredCodes stored_codes = StoredCodes::kWidened;
};

Matrix loaded(const Checkpoint& checkpoint, const Names& names, const Wish& wish,
              const Group& ranks, const ShardingTable& table) {
  const Weights w(
      checkpoint, names,
      {.tensor_parallel = ranks, .quantize = wish.form, .stored_codes = wish.stored_codes}, table);
  const auto made = (w / "a").matrix("weight", {kRows, kColumns});
  w.finish();
  return made;
}

Tensor numbers(const Matrix& matrix) { return dequantize(matrix, at::kFloat); }

// A slice of each part, one behind the other.
Tensor slices(const Tensor& whole, std::int64_t dim, const std::vector<std::int64_t>& parts,
              int rank, int size) {
  std::vector<Tensor> mine;
  std::int64_t begin = 0;
  for (const auto part : parts) {
    mine.push_back(whole.narrow(dim, begin + rank * (part / size), part / size));
    begin += part;
  }
  return at::cat(mine, dim);
}

struct StoredAs {
  const char* name;
  Tensors tensors;
  Tensor numbers;  // what they stand for, as one matrix in our order
  Names names = {};
};

Names fused(RowOrder order = {}) { return {.spellings = {{"a", {"p"}, order}}}; }
Names of_two() { return {.spellings = {{"a", {"p", "q"}}}}; }

// ComfyUI's JSON about a layer, as bytes.
Tensor mark(const std::string& json) {
  return at::from_blob(const_cast<char*>(json.data()), {std::int64_t(json.size())}, at::kByte)
      .clone();
}

// Each four neighbours by the matrix [1 1 1 -1; 1 1 -1 1; 1 -1 1 1; -1 1 1 1] / 2.
const Tensor& hadamard_of_four() {
  static const auto kFour = (1 - 2 * at::eye(4).flip(1)) / 2;
  return kFour;
}
Tensor rotated(const Tensor& x) { return x.view({-1, 4}).mm(hadamard_of_four()).view(x.sizes()); }
Tensor rotated_by_16(const Tensor& x) {
  const auto sixteen = at::kron(hadamard_of_four(), hadamard_of_four());
  return x.view({-1, 16}).mm(sixteen).view(x.sizes());
}

// Two numbers per byte, the first in the low bits: a sign and a magnitude of the table.
Tensor float4_numbers(const Tensor& bytes) {
  const auto table = at::tensor({0.f, 0.5f, 1.f, 1.5f, 2.f, 3.f, 4.f, 6.f});
  const auto wide = bytes.to(at::kLong);
  const auto codes = at::stack({wide % 16, wide.floor_divide(16)}, -1).flatten(1);
  return table.index({codes % 8}) * (1 - 2 * codes.floor_divide(8));
}

std::vector<StoredAs> in_8_bits(const Tensor& x) {
  const auto int8 = quantize_rows(x, Quantize::kInt8);
  const auto v1 = quantize_rows(x.to(at::kBFloat16), Quantize::kInt8V1);
  const auto of_int8 = int8.values_NC * int8.scales_N1;
  const auto e4m3 = x.to(at::kFloat8_e4m3fn), e5m2 = x.to(at::kFloat8_e5m2);
  const auto of_e4m3 = e4m3.to(at::kFloat), of_e5m2 = e5m2.to(at::kFloat);
  const auto rows = at::rand({kRows, 1}) + 0.5, groups = at::rand({kRows, 4}) + 0.5;
  const auto of_groups = (of_e4m3.view({kRows, 4, -1}) * groups.unsqueeze(2)).view({kRows, -1});
  const auto some = [](const Tensor& t, int part) { return t.narrow(0, 6 * part, 6); };
  return {
      {"int8", {{"a.weight", int8.values_NC}, {"a.weight_scale", int8.scales_N1}}, of_int8},
      {"int8 swapped",
       {{"p.weight", int8.values_NC}, {"p.weight_scale", int8.scales_N1}},
       of_int8.roll({6}, {0}),
       fused({RowOrder::kSwapHalves})},
      {"int8 of version 1",
       {{"a.weight", v1.values_NC}, {"a.weight_scale", v1.scales_N1}},
       v1.values_NC * v1.scales_N1.to(at::kFloat)},
      {"e4m3", {{"a.weight", e4m3}}, of_e4m3},
      {"e4m3 with a scale",
       {{"a.weight", e4m3}, {"a.weight_scale", at::full({}, 0.3)}},
       of_e4m3 * 0.3f},
      {"e4m3 with scales", {{"a.weight", e4m3}, {"a.weight_scale", rows}}, of_e4m3 * rows},
      {"e4m3 with scales of groups", {{"a.weight", e4m3}, {"a.weight_scale", groups}}, of_groups},
      {"e5m2", {{"a.weight", e5m2}}, of_e5m2},
      {"e5m2 with scales", {{"a.weight", e5m2}, {"a.weight_scale", rows}}, of_e5m2 * rows},
      {"e4m3 beside e5m2",
       {{"p.weight", some(e4m3, 0)}, {"q.weight", some(e5m2, 1)}},
       at::cat({some(of_e4m3, 0), some(of_e5m2, 1)}),
       of_two()},
      {"e4m3 with scales and without",
       {{"p.weight", some(e4m3, 0)},
        {"p.weight_scale", at::full({}, 0.3)},
        {"q.weight", some(e4m3, 1)}},
       at::cat({some(of_e4m3, 0) * 0.3f, some(of_e4m3, 1)}),
       of_two()},
      {"e4m3 rotated",
       {{"a.weight", e4m3},
        {"a.weight_scale", at::full({}, 0.5f)},
        {"a.comfy_quant",
         mark(R"({"format":"float8_e4m3fn","convrot":true,"convrot_groupsize":4})")}},
       rotated(of_e4m3 * 0.5f)},
      {"int8 rotated",
       {{"a.weight", int8.values_NC},
        {"a.weight_scale", int8.scales_N1},
        {"a.comfy_quant",
         mark(R"({"format":"int8_tensorwise","convrot":true,"convrot_groupsize":16})")}},
       rotated_by_16(of_int8)},
      {"int8 rotated and swapped",
       {{"p.weight", int8.values_NC},
        {"p.weight_scale", int8.scales_N1},
        {"p.comfy_quant",
         mark(R"({"format":"int8_tensorwise","convrot":true,"convrot_groupsize":4})")}},
       rotated(of_int8).roll({6}, {0}),
       fused({RowOrder::kSwapHalves})},
      {"int8 rotated, with a scale for each and one for all",
       {{"p.weight", some(int8.values_NC, 0)},
        {"p.weight_scale", some(int8.scales_N1, 0)},
        {"p.comfy_quant",
         mark(R"({"format":"int8_tensorwise","convrot":true,"convrot_groupsize":16})")},
        {"q.weight", some(int8.values_NC, 1)},
        {"q.weight_scale", at::full({}, 0.02f)},
        {"q.comfy_quant",
         mark(R"({"format":"int8_tensorwise","convrot":true,"convrot_groupsize":16})")}},
       rotated_by_16(at::cat({some(of_int8, 0), some(int8.values_NC, 1) * 0.02f})),
       of_two()},
      {"int8 rotated differently",
       {{"p.weight", some(int8.values_NC, 0)},
        {"p.weight_scale", some(int8.scales_N1, 0)},
        {"p.comfy_quant",
         mark(R"({"format":"int8_tensorwise","convrot":true,"convrot_groupsize":16})")},
        {"q.weight", some(int8.values_NC, 1)},
        {"q.weight_scale", some(int8.scales_N1, 1)},
        {"q.comfy_quant",
         mark(R"({"format":"int8_tensorwise","convrot":true,"convrot_groupsize":4})")}},
       at::cat({rotated_by_16(some(of_int8, 0)), rotated(some(of_int8, 1))}),
       of_two()}};
}

std::vector<StoredAs> ways_to_store() {
  const auto x = at::randn({kRows, kColumns});
  const auto paired = x.view({2, 3, 2, kColumns}).transpose(1, 2).reshape({kRows, kColumns});
  const auto pairs = at::randint(0, 256, {kRows, kColumns / 2}, at::kByte);
  const auto scales = (at::rand({kRows, kColumns / 16}) + 0.5).to(at::kFloat8_e4m3fn);
  const auto of_pairs =
      float4_numbers(pairs).view({kRows, -1, 16}) * (scales.to(at::kFloat) * 0.25f).unsqueeze(2);
  std::vector<StoredAs> ways = {
      {"numbers", {{"a.weight", x}}, x},
      {"bfloat16", {{"a.weight", x.to(at::kBFloat16)}}, x.to(at::kBFloat16).to(at::kFloat)},
      {"two tensors",
       {{"p.weight", x.narrow(0, 0, 6)}, {"q.weight", x.narrow(0, 6, 6)}},
       x,
       of_two()},
      {"swapped", {{"p.weight", x}}, x.roll({6}, {0}), fused({RowOrder::kSwapHalves})},
      {"paired", {{"p.weight", x}}, paired, fused({RowOrder::kDeinterleave, 6})},
      {"float4",
       {{"a.weight", pairs}, {"a.weight_scale", scales}, {"a.weight_scale_2", at::full({}, 0.25f)}},
       of_pairs.reshape({kRows, -1})}};
  for (auto& way : in_8_bits(x)) ways.push_back(std::move(way));
  return ways;
}

const Wish kWishes[] = {{},
                        {.stored_codes = StoredCodes::kKept},
                        {.form = Quantize::kInt8},
                        {.form = Quantize::kInt8V1},
                        {.form = Quantize::kInt8Dynamic},
                        {.form = Quantize::kFloat8},
                        {.form = Quantize::kInt8, .stored_codes = StoredCodes::kKept},
                        {.form = Quantize::kInt8Dynamic, .stored_codes = StoredCodes::kKept},
                        {.form = Quantize::kFloat8, .stored_codes = StoredCodes::kKept}};

TEST(EveryShare, IsASliceOfWhatOneDeviceLoads) {
  const TemporaryFolder folder;
  struct Cut {
    ShardingTable table;
    std::int64_t dim;
    std::vector<std::int64_t> parts;
  };
  const std::vector<Cut> cuts = {{{{"a", column_parallel()}}, 0, {kRows}},
                                 {{{"a", column_parallel({4, 8})}}, 0, {4, 8}},
                                 {{{"a", row_parallel()}}, 1, {kColumns}},
                                 {{{"a", row_parallel({8, 24})}}, 1, {8, 24}}};
  for (const auto& [name, tensors, definition, names] : ways_to_store()) {
    const auto checkpoint = stored(folder, tensors);
    for (const auto& wish : kWishes) {
      const auto whole = loaded(checkpoint, names, wish, {}, {});
      for (const auto& cut : cuts)
        run_ranks({.size = 2}, [&, name = name, names = names](const Group& ranks) {
          const auto mine = loaded(checkpoint, names, wish, ranks, cut.table);
          EXPECT_EQ(mine.form, whole.form);
          const auto want = slices(numbers(whole), cut.dim, cut.parts, ranks.rank(), 2);
          EXPECT_TRUE(at::equal(numbers(mine), want))
              << name << " as form " << int(wish.form) << ", dim " << cut.dim << " of "
              << cut.parts.size() << " parts, rank " << ranks.rank();
        });
    }
  }
}

// The numbers that are stored, but for one rounding where scales are multiplied; if they are to be
// quantized, within half a step of the row's largest number: an int8 code is a 127.5th of it, a
// float8 number has three bits behind its first.
TEST(EveryForm, StandsForTheStoredNumbers) {
  const TemporaryFolder folder;
  for (const auto& [name, tensors, definition, names] : ways_to_store()) {
    const auto checkpoint = stored(folder, tensors);
    const auto largest = definition.abs().amax(1, /*keepdim=*/true);
    for (const auto& wish : kWishes) {
      const auto off = (numbers(loaded(checkpoint, names, wish, {}, {})) - definition).abs();
      const double share = wish.form == Quantize::kNone     ? 1e-6
                           : wish.form == Quantize::kFloat8 ? 1.0 / 16
                                                            : 1.0 / 127;
      EXPECT_LE((off / largest).max().item<double>(), share)
          << name << " as form " << int(wish.form)
          << (wish.stored_codes == StoredCodes::kKept ? ", kept" : "");
    }
  }
}

// Int8 codes of rotated numbers stay, and multiply codes unless int8 numbers are asked for; where
// tensors that were rotated differently are joined, and other codes that were rotated, they do not.
TEST(EveryForm, KeepsRotatedInt8) {
  const TemporaryFolder folder;
  const auto x = at::randn({kRows, kColumns});
  for (const auto& [name, tensors, definition, names] : in_8_bits(x)) {
    const bool stays = std::string(name).starts_with("int8 rotated") &&
                       std::string(name) != "int8 rotated differently";
    const auto checkpoint = stored(folder, tensors);
    const auto kept = [&, names = names](const Wish& wish) {
      return loaded(checkpoint, names, wish, {}, {});
    };
    EXPECT_EQ(kept({.stored_codes = StoredCodes::kKept}).is_rotated(), stays) << name;
    EXPECT_EQ(kept({.stored_codes = StoredCodes::kRotatedKept}).is_rotated(), stays) << name;
    EXPECT_FALSE(kept({}).is_rotated()) << name;
    if (!stays) continue;
    for (const auto form : {Quantize::kNone, Quantize::kInt8Dynamic, Quantize::kFloat8})
      EXPECT_EQ(kept({form, StoredCodes::kKept}).form, Quantize::kInt8Dynamic) << name;
    for (const auto form : {Quantize::kInt8, Quantize::kInt8V1})
      EXPECT_EQ(kept({form, StoredCodes::kKept}).form, Quantize::kInt8) << name;
  }
}

// ------------------------------------------------------------------------------ the way back

// Spelling a loaded matrix gives the tensors that it was loaded from, if nothing was rounded.
TEST(SpelledTensors, AreThoseThatWereLoaded) {
  const TemporaryFolder folder;
  for (const auto& [name, tensors, definition, names] : ways_to_store()) {
    const auto dtype = tensors.begin()->second.scalar_type();
    const auto kept = dtype == at::kChar ? at::kFloat : dtype;
    if (kept != at::kFloat && kept != at::kBFloat16) continue;  // decoded
    const Weights w(stored(folder, tensors), names, {.dtype = kept});
    const auto made = (w / "a").matrix("weight", {kRows, kColumns});
    const TensorRequest asked{"a", "weight", {kRows, kColumns}, kept, TensorRequest::Kind::kMatrix};
    Tensors back;
    for (const auto& one : spelled(asked, made, names, {})) back[one.name] = one.tensor;
    EXPECT_EQ(back.size(), tensors.size()) << name;
    for (const auto& [their_name, tensor] : tensors)
      EXPECT_TRUE(back.contains(their_name) && at::equal(back.at(their_name), tensor))
          << name << " " << their_name;
  }
}

TEST(SpelledTensors, OfVectorsAndScalarsKeepTheirShape) {
  const Names names{.spellings = {{"n", {"norm"}, {RowOrder::kSwapHalves}}}};
  const auto one = [&](const char* layer, const char* name, const Tensor& tensor) {
    const TensorRequest asked{layer, name, tensor.sizes().vec(), at::kFloat,
                              TensorRequest::Kind::kNumbers};
    return spelled(asked, {.values_NC = tensor}, names, {}).front();
  };
  const auto vector = one("n", "bias", at::tensor({1.f, 2.f, 3.f, 4.f}));
  EXPECT_EQ(vector.name, "norm.bias");
  EXPECT_TRUE(at::equal(vector.tensor, at::tensor({3.f, 4.f, 1.f, 2.f})));
  const auto scalar = one("", "scale", at::full({}, 7.f));
  EXPECT_EQ(scalar.name, "scale");
  EXPECT_EQ(scalar.tensor.dim(), 0);
}

// What a load tells of its progress is the same whether weights go to pages or not, and at most the
// file's bytes; what it reads of columns is scattered.
TEST(BytesOfALoad, AreThoseOfTheFile) {
  const TemporaryFolder folder;
  for (const auto& [name, tensors, definition, names] : ways_to_store()) {
    (void)stored(folder, tensors);
    for (const auto& wish : kWishes)
      for (const bool by_columns : {false, true})
        run_ranks({.size = 2}, [&, name = name, names = names](const Group& ranks) {
          const auto checkpoint = Checkpoint::open_file(folder / "m.safetensors");
          const auto told = [&](const std::shared_ptr<Pages>& pages) {
            std::int64_t bytes = 0;
            const Weights w(checkpoint, names,
                            {.on_bytes = [&](std::int64_t more) { bytes += more; },
                             .tensor_parallel = ranks,
                             .quantize = wish.form,
                             .stored_codes = wish.stored_codes,
                             .paging = {.pages = pages, .level = PageLevel::kModel}},
                            {{"a", by_columns ? row_parallel() : column_parallel()}});
            (void)(w / "a").matrix("weight", {kRows, kColumns});
            if (pages) pages->finish();
            return bytes;
          };
          const auto at_once = told(nullptr);
          EXPECT_GT(at_once, 0) << name << " " << int(wish.form);
          EXPECT_LE(at_once, std::int64_t(checkpoint.num_bytes())) << name << " " << int(wish.form);
          EXPECT_EQ(told(std::make_shared<Pages>(std::make_shared<CpuPageDevice>(), at::kCPU,
                                                 PageOptions{})),
                    at_once)
              << name << " " << int(wish.form) << (by_columns ? " by columns" : " by rows");
        });
  }
}

TEST(BytesOfALoad, AreScatteredIfTheyAreOfColumns) {
  const TemporaryFolder folder;
  const auto checkpoint = stored(folder, {{"a.weight", at::randn({kRows, kColumns})}});
  for (const auto& [table, strided] : {std::pair(ShardingTable{{"a", column_parallel()}}, 0),
                                       {ShardingTable{{"a", row_parallel()}}, 768}})
    run_ranks({.size = 2}, [&, table = table, strided = strided](const Group& ranks) {
      BytesRead read;
      const Weights w(
          checkpoint, {},
          {.on_read = [&](const BytesRead& more) { read += more; }, .tensor_parallel = ranks},
          table);
      (void)(w / "a").matrix("weight", {kRows, kColumns});
      EXPECT_EQ(read, (BytesRead{.all = kRows * kColumns * 4 / 2, .strided = strided}));
    });
}

}  // namespace braid::every_share_test

// Checkpoints as people have them: several forms in one folder, scales of odd shapes, single files
// with one part, and headers that only another format may have.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files.h"
#include "weights/codes/blocks.h"
#include "weights/files/safetensors_header.h"
#include "weights/files/safetensors_writer.h"
#include "weights/files/whole_checkpoint.h"

namespace braid::file_edges_test {

using testing::ElementsAre, testing::HasSubstr, testing::UnorderedElementsAre;
using namespace testing_files;
using Tensors = std::map<std::string, Tensor>;

class FileEdges : public testing::Test {
 protected:
  Checkpoint opened(const Tensors& tensors) const {
    write_file(folder_ / "m.safetensors", write_safetensors(tensors));
    return Checkpoint::open_file(folder_ / "m.safetensors");
  }
  std::string refusal(const Tensors& tensors) const {
    return message_of([&] { (void)opened(tensors); });
  }
  // Writes `note` as the `_quantization_metadata` of the header.
  Checkpoint with_note(const Tensors& tensors, const std::string& note) const {
    const auto bytes = write_safetensors(tensors);
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | std::uint8_t(bytes[std::size_t(i)]);
    auto header = bytes.substr(8, length);
    const std::string own = R"({"format":"pt"})";
    header.replace(header.find(own), own.size(), R"({"_quantization_metadata":")" + note + "\"}");
    write_file(folder_ / "n.safetensors", file_of(header, bytes.substr(8 + length)));
    return Checkpoint::open_file(folder_ / "n.safetensors");
  }
  TemporaryFolder folder_;
};

// The index that a user downloaded counts, even beside an older file in blocks.
TEST_F(FileEdges, AnIndexIsPreferredToBlocks) {
  write_file(folder_ / "m.gguf", "not GGUF at all");
  write_file(folder_ / "s.safetensors", float_file({{"a", {1}, {7}}}));
  write_file(folder_ / "m.safetensors.index.json", R"({"weight_map":{"a":"s.safetensors"}})");
  EXPECT_EQ(Checkpoint::open(folder_.path(), "m").find("a")->view().item<float>(), 7);
  write_file(folder_ / "m.safetensors", float_file({{"a", {1}, {8}}}));
  EXPECT_EQ(Checkpoint::open(folder_.path(), "m").find("a")->view().item<float>(), 8);
}

// Diffusers prefers the index of its files, transformers the single file "model".
TEST_F(FileEdges, AnIndexIsPreferredToASingleFileWhereDiffusersDoes) {
  for (const auto& [stem, wanted] : {std::pair("diffusion_pytorch_model", 7.F), {"model", 8.F}}) {
    const auto index = folder_ / (stem + std::string(".safetensors.index.json"));
    write_file(folder_ / "s.safetensors", float_file({{"a", {1}, {7}}}));
    write_file(folder_ / (stem + std::string(".safetensors")), float_file({{"a", {1}, {8}}}));
    write_file(index, R"({"weight_map":{"a":"s.safetensors"}})");
    const auto both = Checkpoint::open(folder_.path(), stem);
    EXPECT_EQ(both.find("a")->view().item<float>(), wanted);
    EXPECT_THAT(both.note(), HasSubstr("the weights are read from " + both.source()));
    EXPECT_THAT(both.part("").note(), HasSubstr("beside it is left alone"));
    write_file(index, R"({"weight_map":{"a":"gone.safetensors"}})");
    EXPECT_EQ(Checkpoint::open(folder_.path(), stem).find("a")->view().item<float>(), 8);
    std::filesystem::remove(index);
    EXPECT_EQ(Checkpoint::open(folder_.path(), stem).note(), "");
  }
}

TEST_F(FileEdges, ShardsAreFilesOfTheirFolder) {
  write_file(folder_ / "s.safetensors", float_file({{"a", {1}, {7}}}));
  for (const std::string shard :
       {"", ".", "..", "../s.safetensors", "/etc/hosts", "x/s.safetensors"}) {
    write_file(folder_ / "m.safetensors.index.json", R"({"weight_map":{"a":")" + shard + "\"}}");
    EXPECT_THAT(message_of<std::exception>([&] { (void)Checkpoint::open(folder_.path(), "m"); }),
                HasSubstr("should be a file name without a folder"))
        << shard;
  }
}

// Scales are few numbers of another dtype: those of 8-bit codes must not decide it, nor the codes.
TEST_F(FileEdges, TheDtypeIsThatOfTheNumbers) {
  const auto codes = at::ones({4, 4}, at::kChar);
  EXPECT_EQ(opened({{"a.weight", codes},
                    {"a.weight_scale", at::ones({4, 1})},
                    {"n.weight", at::ones({3}, at::kBFloat16)}})
                .dtype(),
            at::kBFloat16);
  EXPECT_EQ(opened({{"a.weight", at::ones({2, 2}).to(at::kFloat8_e4m3fn)},
                    {"a.weight_scale", at::ones({})},
                    {"n.weight", at::ones({3}, at::kHalf)}})
                .dtype(),
            at::kBFloat16)
      << "what is coded is computed in bfloat16";
  EXPECT_EQ(opened({{"ids", at::ones({100}, at::kLong)}, {"n", at::ones({1}, at::kHalf)}}).dtype(),
            at::kHalf);
}

TEST_F(FileEdges, ScalesOfColumnsAreNotTakenForThoseOfRows) {
  const auto codes = at::ones({4, 6}).to(at::kFloat8_e4m3fn);
  const auto with = [&](const Tensor& scales) {
    return refusal({{"a.weight", codes}, {"a.weight_scale", scales}});
  };
  for (const auto& shape : {std::vector<std::int64_t>{}, {1}, {1, 1}, {4}, {4, 1}, {4, 3}, {4, 6}})
    EXPECT_EQ(with(at::ones(shape)), "") << at::IntArrayRef(shape);
  for (const auto& shape :
       {std::vector<std::int64_t>{1, 4}, {6}, {1, 6}, {4, 4}, {4, 2}, {2, 2}, {4, 0}, {3}})
    EXPECT_THAT(with(at::ones(shape)), HasSubstr("'a.weight_scale'")) << at::IntArrayRef(shape);
  EXPECT_THAT(with(at::ones({4}, at::kInt)), HasSubstr("should hold floating-point numbers"));
  EXPECT_THAT(refusal({{"a.weight", codes},
                       {"a.weight_scale", at::ones({})},
                       {"a.scale_weight", at::ones({})}}),
              HasSubstr("tensor 'a.weight' has two scales"));
}

// Rotations are of 256 neighbours unless a mark says otherwise.
TEST_F(FileEdges, RotateTheUsualNumberOfNeighbours) {
  const auto rotated = [&](std::int64_t columns, const std::string& more) {
    const auto mark = R"({"format":"float8_e4m3fn","convrot":true)" + more + "}";
    const auto bytes =
        at::from_blob(const_cast<char*>(mark.data()), {std::int64_t(mark.size())}, at::kByte);
    return opened({{"a.weight", at::ones({2, columns}).to(at::kFloat8_e4m3fn)},
                   {"a.weight_scale", at::ones({})},
                   {"a.comfy_quant", bytes}})
        .find("a.weight")
        ->rotated_together;
  };
  EXPECT_EQ(rotated(512, ""), 256);
  EXPECT_EQ(rotated(512, R"(,"params":{"convrot_groupsize":64})"), 64);
  EXPECT_EQ(rotated(512, R"(,"convrot_groupsize":64)"), 64);
  EXPECT_THAT(message_of([&] { (void)rotated(128, ""); }),
              HasSubstr("rotates 256 neighbours together"));
}

TEST_F(FileEdges, BytesNeedAReasonIfAnyLayerHasOne) {
  const Tensors tensors = {{"a.weight", at::ones({4, 8}, at::kByte)},
                           {"a.weight_scale", at::ones({4, 1}).to(at::kFloat8_e4m3fn)},
                           {"a.weight_scale_2", at::ones({})},
                           {"b.weight", at::ones({4, 8}).to(at::kFloat8_e4m3fn)}};
  const std::string other = R"({\"layers\":{\"b\":{\"format\":\"float8_e4m3fn\"}}})";
  EXPECT_THAT(message_of([&] { (void)with_note(tensors, other); }),
              HasSubstr("'a.weight' has a dtype of U8, and '_quantization_metadata' does not say"));
  EXPECT_EQ(refusal(tensors), "") << "without a note: float4 by its two scales";
}

// ---------------------------------------------------------------------------- several parts

TEST_F(FileEdges, PartsAreThoseOfAWholeModel) {
  const auto one = at::ones({1});
  EXPECT_THAT(parts_in(opened({{"a", one}})), ElementsAre(""));
  EXPECT_THAT(parts_in(opened({{"model.diffusion_model.a", one}})), ElementsAre(""))
      << "a denoiser alone keeps its prefix";
  EXPECT_THAT(parts_in(opened({{"vae.a", one}, {"text_encoders.t5.b", one}})), ElementsAre(""))
      << "no denoiser";
  EXPECT_THAT(parts_in(opened({{"model.diffusion_model.a", one},
                               {"vae.decoder.b", one},
                               {"text_encoders.t5xxl.transformer.c", one},
                               {"text_encoders.clip_l.d", one},
                               {"text_encoders.clip_l.transformers", one}})),
              UnorderedElementsAre("model.diffusion_model.", "vae.",
                                   "text_encoders.t5xxl.transformer.", "text_encoders.clip_l."));
}

TEST_F(FileEdges, TheDenoiserOfAWholeModelIsWithoutItsPrefix) {
  const auto one = at::ones({1});
  const auto whole = opened({{"model.diffusion_model.a", one}, {"first_stage_model.b", one}});
  EXPECT_NE(denoiser_in(whole).find("a"), nullptr);
  EXPECT_EQ(denoiser_in(whole).tensors().size(), 1u);
  for (const std::string prefix : {"model.diffusion_model.", "diffusion_model.", "model."})
    EXPECT_NE(denoiser_in(opened({{prefix + "a", one}})).find("a"), nullptr) << "alone " << prefix;
  const auto some = opened({{"model.diffusion_model.a", one}, {"b", one}});
  EXPECT_NE(denoiser_in(some).find("model.diffusion_model.a"), nullptr);
}

// ----------------------------------------------------------------------------------- headers

// Their size would be taken on trust.
TEST(SafetensorsTypes, AreNotThoseOfOtherFormats) {
  for (const std::string type :
       {"Q4_0", "Q8_0", "IQ4_XS", "F4_E2M1", "F4_E2M1_SWAPPED", "bf16", ""}) {
    const auto file =
        file_of(R"({"a":{"dtype":")" + type + R"(","shape":[32],"data_offsets":[0,18]}})",
                std::string(18, 'x'));
    EXPECT_THAT(
        message_of([&] { (void)parse_safetensors_header(std::as_bytes(std::span(file)), "m"); }),
        HasSubstr("has the unknown dtype '" + type + "'"));
  }
}

// Scales in tiles of 128 rows and 4 columns: number (r, c) of a tile is its byte 16 (r % 32) +
// 4 (r / 32) + c, as NVIDIA documents it. A rank's rows may begin in any tile.
TEST(ScalesInTiles, AreFoundFromEveryRow) {
  constexpr std::int64_t kRows = 300, kColumns = 6;  // three times two tiles
  const auto number = [](std::int64_t row, std::int64_t column) {
    return std::uint8_t((row * 7 + column * 31) % 251);
  };
  std::string bytes(3 * 2 * 512, char(0));
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t c = 0; c < kColumns; ++c)
      bytes[std::size_t((r / 128 * 2 + c / 4) * 512 + r % 32 * 16 + r % 128 / 32 * 4 + c % 4)] =
          char(number(r, c));
  const TemporaryFolder folder;
  write_file(folder / "tiles", "padding" + bytes);
  StoredTensor stored{std::make_shared<const MappedFile>(folder / "tiles"),
                      {.name = "a",
                       .type = ElementType::kUint8,
                       .shape = {kRows, kColumns},
                       .begin = 7,
                       .size = bytes.size()}};
  stored.arrangement = Arrangement::kTiles;
  for (const auto& [begin, count] :
       {std::pair(0, 300), {0, 128}, {127, 2}, {128, 128}, {130, 150}, {256, 44}, {299, 1}}) {
    const auto got = decoded({std::make_shared<const StoredTensor>(stored), {begin, count}});
    ASSERT_EQ(got.sizes(), (at::IntArrayRef{count, kColumns}));
    for (std::int64_t r = 0; r < count; ++r)
      for (std::int64_t c = 0; c < kColumns; ++c)
        EXPECT_EQ(got[r][c].item<float>(), float(number(begin + r, c))) << begin + r << " " << c;
  }
}

// A vector in blocks is one row of them; a rank takes numbers of it, not blocks.
TEST(VectorsInBlocks, AreDecodedAndDivided) {
  // two blocks of Q8_0: a float16 scale, then 32 codes
  std::string data;
  for (const float scale : {0.5f, 2.f}) {
    const auto half = at::full({1}, scale, at::kHalf);
    data.append(static_cast<const char*>(half.const_data_ptr()), 2);
    for (int i = 0; i < 32; ++i) data += char(i - 16);
  }
  const TemporaryFolder folder;
  write_file(folder / "blocks", data);
  const StoredTensor stored{
      std::make_shared<const MappedFile>(folder / "blocks"),
      {.name = "a", .type = ElementType::kQ8_0, .shape = {64}, .begin = 0, .size = 68}};
  const auto codes = at::arange(-16, 16, at::kFloat);
  const auto want = at::cat({codes * 0.5, codes * 2});
  for (const auto& [begin, count] : {std::pair(0, 64), {0, 20}, {20, 30}, {63, 1}})
    EXPECT_TRUE(at::equal(decoded({std::make_shared<const StoredTensor>(stored), {begin, count}}),
                          want.narrow(0, begin, count)))
        << begin << "+" << count;
}

}  // namespace braid::file_edges_test

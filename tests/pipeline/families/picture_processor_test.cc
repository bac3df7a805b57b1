// How JoyAI-Image-Edit's text encoder is shown pictures, against transformers'
// Qwen2VLImageProcessor.
#include "pipeline/families/picture_processor.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "message_of.h"
#include "temporary_folder.h"

namespace braid::picture_processor_test {

class JoyProcessor : public testing::Test {
 protected:
  PictureProcessor with(const Json& config, std::int64_t patch = 16,
                        PictureFilters filters = PictureFilters::kTorch) const {
    write_file(folder_ / "preprocessor_config.json", config.dump());
    return {folder_.path(), {.patch = patch}, filters};
  }
  const TemporaryFolder folder_;
};

// Those of transformers' smart_resize.
TEST_F(JoyProcessor, ShowsPicturesInTransformersSizes) {
  struct Case {
    PictureSize size, seen;
    std::int64_t patch, least, most;
  };
  const Case cases[] = {{{1024, 1024}, {992, 992}, 16, 3136, 1003520},
                        {{832, 1216}, {800, 1184}, 16, 3136, 1003520},
                        {{2048, 512}, {1988, 476}, 14, 3136, 1003520},
                        {{2048, 512}, {2048, 512}, 16, 65536, 16777216},
                        {{960, 1024}, {1696, 1792}, 16, 3000000, 9000000},
                        {{2048, 512}, {96, 32}, 16, 1, 4000},
                        {{1008, 1040}, {1024, 1024}, 16, 1, 1 << 30}};
  for (const auto& [size, seen, patch, least, most] : cases) {
    const Json range = {{"shortest_edge", least}, {"longest_edge", most}};
    const auto got = with({{"size", range}}, patch).size_seen(size);
    EXPECT_EQ(got.width, seen.width) << size.width;
    EXPECT_EQ(got.height, seen.height) << size.height;
  }
  const auto usual = with(Json::object()).size_seen({1024, 1024});  // the class's own range
  EXPECT_EQ(usual.width, 992);
}

// As Qwen2VLImageProcessor 5.23.0 reads them.
TEST_F(JoyProcessor, TakesTheLimitsInTheirOlderFieldsFirst) {
  struct Case {
    Json config;
    PictureSize size, seen;
  };
  constexpr PictureSize kLong{.width = 2048, .height = 512}, kTall{.width = 960, .height = 1024};
  const Case cases[] = {
      {{{"size", {{"min_pixels", 1}, {"max_pixels", 4000}}},
        {"min_pixels", 1},
        {"max_pixels", 4000}},
       kLong,
       {96, 32}},
      {{{"size", {{"longest_edge", 4000}}}, {"min_pixels", 1}}, kLong, {96, 32}},
      {{{"size", {{"shortest_edge", 3000000}}}, {"max_pixels", 9000000}}, kTall, {1696, 1792}},
      {{{"size", {{"shortest_edge", 1}, {"longest_edge", 16777216}}}, {"max_pixels", 4000}},
       kLong,
       {96, 32}},
      {{{"min_pixels", 3000000}, {"max_pixels", 9000000}}, kTall, {1696, 1792}}};
  for (const auto& [config, size, seen] : cases) {
    const auto got = with(config).size_seen(size);
    EXPECT_EQ(got.width, seen.width) << config;
    EXPECT_EQ(got.height, seen.height) << config;
  }
  const auto refused = [&](const Json& config) { return message_of([&] { (void)with(config); }); };
  EXPECT_THAT(refused({{"size", {{"longest_edge", 4000}}}}), testing::HasSubstr("shortest_edge"));
  EXPECT_THAT(refused({{"size", {{"min_pixels", 1}}}, {"max_pixels", 4000}}),
              testing::HasSubstr("shortest_edge"));
}

// As ImageProcessingMixin of transformers chooses between two files.
TEST_F(JoyProcessor, IsReadFromTheProcessorsFileWhereThatHasIt) {
  const auto range = [](int least, int most) -> Json {
    return {{"size", {{"shortest_edge", least}, {"longest_edge", most}}}};
  };
  const PictureSize tall{.width = 960, .height = 1024}, wide{.width = 2048, .height = 512};
  const auto all = folder_ / "processor_config.json";
  write_file(all, Json{{"image_processor", range(3000000, 9000000)}}.dump());
  EXPECT_EQ(with(range(1, 4000)).size_seen(tall).width, 1696);
  write_file(all, R"({"processor_class": "Qwen2_5_VLProcessor"})");
  EXPECT_EQ(with(range(1, 4000)).size_seen(wide).width, 96);
  std::filesystem::remove(folder_ / "preprocessor_config.json");
  EXPECT_THAT(message_of([&] { (void)PictureProcessor(folder_.path(), {.patch = 16}); }),
              testing::HasSubstr("has neither a processor_config.json with an 'image_processor'"));
}

// As smart_resize of transformers does.
TEST_F(JoyProcessor, RefusesPicturesOfMoreThanTwoHundredToOne) {
  const auto process = with(Json::object());
  EXPECT_GT(process.size_seen({3, 600}).height, 0);
  EXPECT_EQ(message_of([&] {
              (void)process.size_seen({3, 601});
            }),
            "the text encoder looks at pictures whose longer side is at most 200 times the "
            "shorter, one has 3x601");
  EXPECT_NE(message_of([&] { (void)process.size_seen({2001, 10}); }), "");
}

// Qwen2VLImageProcessorPil 5.23.0 has a null for no, and shows 140 x 112 pixels in patches of 14
// as a grid of 8 x 10, or else here of 4 x 4.
TEST_F(JoyProcessor, ResizesUnlessItIsToldNotTo) {
  const auto tokens = [&](const Json& resizes) {
    Json fields = {{"size", {{"shortest_edge", 3136}, {"longest_edge", 4000}}}};
    if (resizes != "absent") fields["do_resize"] = resizes;
    return with(fields, 14).num_tokens({.width = 140, .height = 112});
  };
  EXPECT_EQ(tokens("absent"), 4 * 4 / 4);
  EXPECT_EQ(tokens(true), 4 * 4 / 4);
  EXPECT_EQ(tokens(false), 8 * 10 / 4);
  EXPECT_EQ(tokens(nullptr), 8 * 10 / 4);
}

// Sums over what Qwen2VLImageProcessor and Qwen2VLImageProcessorPil 5.23.0 make of the same
// picture.
TEST_F(JoyProcessor, ResizesAndNormalisesLikeTransformers) {
  constexpr std::int64_t kWidth = 64, kHeight = 96;
  const auto x = at::arange(kWidth).unsqueeze(0), y = at::arange(kHeight).unsqueeze(1);
  const auto levels = at::stack({37 * x + 11 * y, x * y, 255 - 3 * x - y}).remainder(256);
  const auto picture = 2 * (levels.to(at::kFloat) / 255).unsqueeze(0) - 1;
  struct Case {
    PictureFilters filters;
    int filter;
    double sum, of_sizes;
  };
  constexpr auto kTorch = PictureFilters::kTorch, kPillow = PictureFilters::kPillow;
  for (const auto& [filters, filter, sum, of_sizes] :
       {Case{kTorch, 3, 1126.08514, 1939.25939}, Case{kTorch, 2, 1127.06030, 1898.18973},
        Case{kPillow, 3, 1126.06121, 1939.23101}, Case{kPillow, 2, 1127.06030, 1898.18977}}) {
    const auto process = with({{"size", {{"shortest_edge", 1}, {"longest_edge", 2200}}},
                               {"image_mean", {0.1, 0.5, 0.6}},
                               {"image_std", {0.3, 0.5, 0.7}},
                               {"resample", filter}},
                              16, filters);
    const auto seen = process(picture).to(at::kDouble);
    EXPECT_EQ(seen.sizes(), (std::vector<std::int64_t>{3, 32, 32}));
    EXPECT_NEAR(seen.sum().item<double>(), sum, 1e-2) << filter;
    EXPECT_NEAR(seen.abs().sum().item<double>(), of_sizes, 1e-2) << filter;
  }
}

}  // namespace braid::picture_processor_test

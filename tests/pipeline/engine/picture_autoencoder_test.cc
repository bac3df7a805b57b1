// An autoencoder alone, against what a whole pipeline decodes. python/tests/accelerated.py compares
// it with diffusers.
#include "braid/picture_autoencoder.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "message_of.h"
#include "wave_latents.h"

namespace braid::picture_autoencoder_test {

using testing::ElementsAre;
using testing::HasSubstr;

// The bundled model has these.
constexpr std::int64_t kChannels = 16, kPixelsPerLatent = 8;
constexpr float kScale = 1.0656f, kShift = 0.0081f;

PipelineOptions options() {
  return {.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models" / "demo",
          .dtype = Dtype::kFloat32};
}

// Packed tokens hold 2 x 2 latents of each channel, scaled for the transformer.
Latents unpacked(const Latents& tokens, std::int64_t rows, std::int64_t columns) {
  Latents latents{.shape = {1, kChannels, rows, columns}, .values = {}};
  for (std::int64_t c = 0; c < kChannels; ++c)
    for (std::int64_t y = 0; y < rows; ++y)
      for (std::int64_t x = 0; x < columns; ++x) {
        const auto token = (y / 2) * (columns / 2) + x / 2, place = 4 * c + 2 * (y % 2) + x % 2;
        const auto value = tokens.values[std::size_t(token * 4 * kChannels + place)];
        latents.values.push_back(value / kScale + kShift);
      }
  return latents;
}

Picture drawn(Output output) {
  return Pipeline(options())
      .generate(
          {.prompts = {"a red circle"}, .width = 64, .height = 48, .steps = 4, .output = output})
      .front();
}

TEST(PictureAutoencoder, DecodesAsAPipelineDoes) {
  const auto want = drawn(Output::kValues).values;
  auto latents =
      unpacked(drawn(Output::kLatents).values, 48 / kPixelsPerLatent, 64 / kPixelsPerLatent);
  auto got = PictureAutoencoder(options()).decode(latents);
  EXPECT_THAT(got.shape, ElementsAre(1, 3, 48, 64));
  got.shape.erase(got.shape.begin());
  for (auto& value : got.values) value = std::clamp(value * 0.5f + 0.5f, 0.0f, 1.0f);
  EXPECT_LT(largest_difference(got, want), 1e-5);
}

// Two pictures, the second one dark: what is seen of one has nothing of the other.
TEST(PictureAutoencoder, DecodesWhatItEncodes) {
  const PictureAutoencoder autoencoder(options());
  Latents pictures{.shape = {2, 3, 48, 64}, .values = drawn(Output::kValues).values.values};
  for (auto& value : pictures.values) value = value * 2 - 1;
  pictures.values.resize(2 * pictures.values.size(), -1);
  const auto moments = autoencoder.encode(pictures);
  ASSERT_THAT(moments.shape, ElementsAre(2, 2 * kChannels, 6, 8));
  Latents means{.shape = {2, kChannels, 6, 8}, .values = {}};
  const auto half = std::ptrdiff_t(kChannels * 6 * 8);
  for (const auto first : {std::ptrdiff_t(0), 2 * half})
    means.values.insert(means.values.end(), moments.values.begin() + first,
                        moments.values.begin() + first + half);
  const auto again = autoencoder.decode(means);
  ASSERT_EQ(again.shape, pictures.shape);
  double sum = 0;
  for (std::size_t i = 0; i < again.values.size(); ++i)
    sum += std::abs(double(again.values[i]) - double(pictures.values[i]));
  EXPECT_LT(sum / double(again.values.size()), 0.2);  // the bundled one is small and loses much
}

TEST(PictureAutoencoder, CutsLargePicturesOnlyWhenAsked) {
  const PictureAutoencoder autoencoder(options());
  const auto small = waves({1, kChannels, 16, 16}, 0.37);
  const auto large = waves({1, kChannels, 18, 16}, 0.37);
  EXPECT_EQ(autoencoder.decode(small, VaeTiling::kOn).values, autoencoder.decode(small).values);
  EXPECT_NE(autoencoder.decode(large, VaeTiling::kOn).values, autoencoder.decode(large).values);
}

TEST(PictureAutoencoder, RefusesWhatDoesNotFitByName) {
  const PictureAutoencoder autoencoder(options());
  const auto refusal = [&](const Latents& latents) {
    return message_of([&] { (void)autoencoder.decode(latents); });
  };
  EXPECT_THAT(refusal(waves({1, 3, 4, 4}, 1)), HasSubstr("latents should have 16 channels"));
  EXPECT_THAT(refusal(waves({16, 4, 4}, 1)), HasSubstr("should have 4 dimensions, they have 3"));
  EXPECT_THAT(refusal({.shape = {1, 16, 4, 4}, .values = {1, 2}}), HasSubstr("have 2 values"));
  EXPECT_THAT(refusal({.shape = {1, 16, 0, 4}, .values = {}}), HasSubstr("have 0 values"));
  EXPECT_THAT(refusal(waves({-1, 16, -4, 4}, 1)), HasSubstr("latents of shape [-1, 16, -4, 4]"));
  // These products are more than 64 bits hold: 0 in them, and 0 after a size of 0.
  constexpr auto kHuge = std::int64_t(1) << 32;
  EXPECT_THAT(refusal({.shape = {kHuge, 16, kHuge, 1}, .values = {}}), HasSubstr("have 0 values"));
  EXPECT_THAT(refusal({.shape = {0, 16, kHuge, kHuge}, .values = {}}), HasSubstr("have 0 values"));
  EXPECT_THAT(message_of([&] {
                (void)autoencoder.encode(waves({1, 3, 12, 16}, 1));
              }),
              HasSubstr("pictures should have sides that are multiples of 8"));
}

TEST(PictureAutoencoder, RefusesNumbersThatAreNoneByName) {
  const PictureAutoencoder autoencoder(options());
  auto latents = waves({1, kChannels, 4, 4}, 1), pictures = waves({1, 3, 16, 16}, 1);
  for (const int number : {-1, 3}) {
    const auto tiling = VaeTiling(number);
    const auto wanted = text_of("there is no such tiling as number ", number);
    EXPECT_EQ(message_of([&] { (void)autoencoder.decode(latents, tiling); }), wanted);
    EXPECT_EQ(message_of([&] { (void)autoencoder.encode(pictures, tiling); }), wanted);
  }
  latents.values[3] = NAN;
  pictures.values[3] = INFINITY;
  EXPECT_THAT(message_of([&] { (void)autoencoder.decode(latents); }),
              HasSubstr("values of latents should be finite numbers, one is nan"));
  EXPECT_THAT(message_of([&] { (void)autoencoder.encode(pictures); }),
              HasSubstr("values of pictures should be finite numbers, one is inf"));
}

}  // namespace braid::picture_autoencoder_test

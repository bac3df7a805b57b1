// The autoencoder on oblong pictures, which are cut along one side only, and at its limits.
#include <c10/core/InferenceMode.h>

#include "dumps.h"
#include "models/vae/model.h"

namespace braid::vae_edges_test {

// Tiles of 16 pixels or 8 latents, every 6 latents.
const VaeConfig kSmall{.latent_channels = 4,
                       .widths = {8, 8},
                       .layers_per_block = 1,
                       .norm_groups = 2,
                       .sample_size = 16};
constexpr std::int64_t kTile = 8, kStride = 6;

class OblongPictures : public testing::TestWithParam<std::pair<int, int>> {
 protected:
  std::int64_t rows() const { return GetParam().first; }  // of latents
  std::int64_t columns() const { return GetParam().second; }
  bool are_cut() const { return rows() > kTile || columns() > kTile; }

  const c10::InferenceMode no_autograd_;
  const Vae vae_{kSmall, Weights::synthetic({})};
};

TEST_P(OblongPictures, AreDecodedInTilesIfEitherSideIsLarger) {
  const auto latents = at::randn({1, 4, rows(), columns()});
  const auto starts = [](std::int64_t side) { return (side + kStride - 1) / kStride; };
  const auto tiles = vae_.tiles_of(latents, Tiles::kWhereLarger);
  EXPECT_EQ(std::int64_t(tiles.size()), are_cut() ? starts(rows()) * starts(columns()) : 1);
  EXPECT_EQ(vae_.tiles_of(latents, Tiles::kNever).size(), 1u);
  for (const auto& tile : tiles) EXPECT_LE(std::max(tile.size(2), tile.size(3)), kTile);
  const auto whole = vae_.decode(latents, Tiles::kNever),
             tiled = vae_.decode(latents, Tiles::kWhereLarger);
  ASSERT_EQ(tiled.sizes(), at::IntArrayRef({1, 3, 2 * rows(), 2 * columns()}));
  EXPECT_EQ(at::equal(tiled, whole), !are_cut());
}

// As ranks do that decode a tile each.
TEST_P(OblongPictures, AreJoinedOfTilesDecodedApart) {
  const auto latents = at::randn({1, 4, rows(), columns()});
  std::vector<Tensor> decoded;
  for (const auto& tile : vae_.tiles_of(latents, Tiles::kWhereLarger))
    decoded.push_back(vae_.decode(tile, Tiles::kNever));
  EXPECT_TRUE(at::equal(vae_.join_tiles(latents, std::move(decoded)),
                        vae_.decode(latents, Tiles::kWhereLarger)));
}

TEST_P(OblongPictures, AreEncodedInTilesIfEitherSideIsLarger) {
  const auto picture = at::rand({1, 3, 2 * rows(), 2 * columns()}) * 2 - 1;
  const auto whole = vae_.encode(picture, Tiles::kNever).mean,
             tiled = vae_.encode(picture, Tiles::kWhereLarger).mean;
  ASSERT_EQ(tiled.sizes(), at::IntArrayRef({1, 4, rows(), columns()}));
  EXPECT_EQ(at::equal(tiled, whole), !are_cut());
}

// Whoever is told may end the call.
TEST_P(OblongPictures, TellOfEachTileBeforeIt) {
  const auto latents = at::randn({2, 4, rows(), columns()});
  const auto wanted = 2 * vae_.tiles_of(latents.narrow(0, 0, 1), Tiles::kWhereLarger).size();
  std::size_t decoded = 0, encoded = 0;
  const auto picture = vae_.decode(latents, Tiles::kWhereLarger, [&] { ++decoded; });
  (void)vae_.encode(picture, Tiles::kWhereLarger, [&] { ++encoded; });
  EXPECT_EQ(decoded, wanted);
  EXPECT_EQ(encoded, wanted);
}

INSTANTIATE_TEST_SUITE_P(Sizes, OblongPictures,
                         testing::Values(std::pair(8, 8), std::pair(4, 20), std::pair(20, 4),
                                         std::pair(8, 9), std::pair(9, 8), std::pair(1, 8),
                                         std::pair(6, 9)));

// Such tiles would overlap entirely.
TEST(TilesOfLessThanTwoLatents, AreNotCut) {
  const c10::InferenceMode no_autograd;
  auto narrow = kSmall;
  for (const std::int64_t side : {1, 2, 3}) {
    narrow.sample_size = side;
    const Vae vae(narrow, Weights::synthetic({}));
    const auto latents = at::randn({1, 4, 4, 3});
    EXPECT_EQ(vae.tiles_of(latents, Tiles::kWhereLarger).size(), 1u);
    const auto picture = vae.decode(latents, Tiles::kWhereLarger);
    ASSERT_TRUE(at::equal(picture, vae.decode(latents, Tiles::kNever)));
    EXPECT_TRUE(at::equal(vae.encode(picture, Tiles::kWhereLarger).mean,
                          vae.encode(picture, Tiles::kNever).mean));
  }
}

// Sides of 3, 5, 6, 7 latents and pixels beyond: a quarter is no whole number, and the tiles'
// places were rounded apart. diffusers' results have other sizes than the picture there.
TEST(SlowTilesOfOddSizes, GivePicturesOfTheWholeSize) {
  const c10::InferenceMode no_autograd;
  auto odd = kSmall;
  for (const std::int64_t side : {4, 5, 6, 7, 9, 11}) {
    odd.sample_size = side;
    const Vae vae(odd, Weights::synthetic({}));
    const auto latents = at::randn({1, 4, 13, 9});
    EXPECT_GT(vae.tiles_of(latents, Tiles::kWhereLarger).size(), 1u) << side;
    const auto picture = vae.decode(latents, Tiles::kWhereLarger);
    EXPECT_EQ(picture.sizes(), vae.decode(latents, Tiles::kNever).sizes()) << side;
    EXPECT_EQ(vae.encode(picture, Tiles::kWhereLarger).mean.sizes(), latents.sizes()) << side;
  }
}

// diffusers' DiagonalGaussianDistribution has the same bounds.
TEST(EncodedPictures, HaveLogVariancesWithinBounds) {
  const c10::InferenceMode no_autograd;
  auto tensors =
      tensors_of(Checkpoint::open(kParity / "basic/model/vae", "diffusion_pytorch_model"));
  auto bias = tensors.at("encoder.conv_out.bias").clone();
  const auto channels = bias.size(0) / 2;
  bias.narrow(0, channels, 1).fill_(1000);
  bias.narrow(0, channels + 1, channels - 1).fill_(-1000);
  tensors["encoder.conv_out.bias"] = bias;
  const auto checkpoint = checkpoint_of(tensors);
  const Vae vae(config_of(kParity / "basic/model/vae", read_vae_config),
                Weights(checkpoint, vae_names(checkpoint), {}));
  const auto moments = vae.encode(at::zeros({1, 3, 16, 16}), Tiles::kNever);
  EXPECT_TRUE(moments.logvar.select(1, 0).eq(20).all().item<bool>());
  EXPECT_TRUE(moments.logvar.narrow(1, 1, channels - 1).eq(-30).all().item<bool>());
  EXPECT_LT(moments.mean.abs().max().item<double>(), 100);
}

// diffusers: latents / scaling_factor + shift_factor; times latents_std, plus latents_mean.
TEST(Latents, AreScaledForTheDecoderAndBack) {
  const c10::InferenceMode no_autograd;
  auto config = kSmall;
  config.scaling_factor = 0.25;
  config.shift_factor = 0.5;
  const Vae vae(config, Weights::synthetic({}));
  const auto latents = at::tensor({1.f, -2.f, 0.f, 4.f}).view({1, 4, 1, 1});
  EXPECT_TRUE(at::equal(vae.to_decoder(latents),
                        at::tensor({4.5f, -7.5f, 0.5f, 16.5f}).view({1, 4, 1, 1})));
  EXPECT_TRUE(at::equal(vae.from_encoder(vae.to_decoder(latents)), latents));
  config.latents_mean = {1, 2, 3, 4};
  config.latents_std = {2, 1, 4, 0.5};
  EXPECT_TRUE(at::equal(scaled_latents(config, latents),
                        at::tensor({0.f, -4.f, -0.75f, 0.f}).view({1, 4, 1, 1})));
}

}  // namespace braid::vae_edges_test

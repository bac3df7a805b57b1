// What the first rank sends to the others: every field of a request.
#include "app/commands/serve_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "message_of.h"

namespace braid::serve_ranks_test {

TEST(ServeRanks, TellAllOfARequest) {
  const Request request{.prompts = {"a \xe2\x98\x85"},
                        .prompts_2 = {"b"},
                        .negative_prompt = "c",
                        .negative_prompt_2 = "d",
                        .true_cfg = 1.1,
                        .guidance_rescale = 0.2,
                        .cfg_norm_cap = 3.3,
                        .cfg_until = 0.4,
                        .width = 5,
                        .height = 6,
                        .steps = 7,
                        .sampling = {.sampler = Sampler::kErSde,
                                     .schedule = SigmaSchedule::kBeta,
                                     .sigmas = {1, 0.1 + 0.2},
                                     .base_sigmas = {0.5},
                                     .shift = 3.1},
                        .guidance = 0.1 + 0.2,  // to the last bit
                        .max_sequence_length = 8,
                        .seed = 18446744073709551615u,
                        .num_images = 9,
                        .batch_size = 10,
                        .vae_tiling = VaeTiling::kOff,
                        .output = Output::kLatents};
  const auto told = request_of_bytes(bytes_of_request(request));
  EXPECT_EQ(bytes_of_request(told), bytes_of_request(request));
  EXPECT_EQ(told.prompts, request.prompts);
  EXPECT_EQ(told.prompts_2, request.prompts_2);
  EXPECT_EQ(told.negative_prompt, "c");
  EXPECT_EQ(told.cfg_until, 0.4);
  EXPECT_EQ(told.guidance, 0.1 + 0.2);
  EXPECT_EQ(told.sampling.sampler, Sampler::kErSde);
  EXPECT_EQ(told.sampling.schedule, SigmaSchedule::kBeta);
  EXPECT_EQ(told.sampling.sigmas, request.sampling.sigmas);
  EXPECT_EQ(told.sampling.base_sigmas, request.sampling.base_sigmas);
  EXPECT_EQ(told.sampling.shift, 3.1);
  EXPECT_EQ(told.max_sequence_length, 8);
  EXPECT_EQ(told.seed, request.seed);
  EXPECT_EQ(told.batch_size, 10);
  EXPECT_EQ(told.vae_tiling, VaeTiling::kOff);
  EXPECT_EQ(told.output, Output::kLatents);
}

TEST(ServeRanks, LeaveUnsetWhatIsUnset) {
  const auto told = request_of_bytes(bytes_of_request({.prompts = {"a"}}));
  EXPECT_EQ(told.width, std::nullopt);
  EXPECT_EQ(told.negative_prompt, std::nullopt);
  EXPECT_EQ(told.guidance, std::nullopt);
  EXPECT_EQ(told.sampling.sampler, std::nullopt);
  EXPECT_EQ(told.sampling.schedule, std::nullopt);
  EXPECT_EQ(told.sampling.shift, std::nullopt);
}

TEST(ServeRanks, TellThePixelsOfPicturesAndTheNamesOfAdapters) {
  const auto of_size = [](int width, int height, std::uint8_t first) {
    Pixels picture{.width = width, .height = height, .rgb = {}};
    for (int i = 0; i < width * height * 3; ++i) picture.rgb.push_back(std::uint8_t(first + i));
    return picture;
  };
  auto clear = of_size(1, 1, 250);
  clear.alpha = {10};
  const Request request{.prompts = {"a"},
                        .cfg_normalize = true,
                        .frames = 5,
                        .layers = 7,
                        .pictures = {.init = of_size(2, 1, '\n'),
                                     .strength = 0.1,
                                     .mask = of_size(3, 2, 0),
                                     .mask_blur = 1.5,
                                     .padding_crop = 8,
                                     .references = {of_size(1, 2, 128), clear},
                                     .reference_scales = {0.25, -1},
                                     .reference_cache = ReferenceCache::kOff,
                                     .resolution = 1024,
                                     .controls = {{.picture = of_size(4, 1, 7),
                                                   .scale = 0.5,
                                                   .from = 0.1,
                                                   .to = 0.9,
                                                   .mode = 3}}},
                        .adapters = {{{"a b.safetensors", -0.3}, {"c.safetensors", 1}}}};
  const auto told = request_of_bytes(bytes_of_request(request));
  const auto& in = told.pictures;
  EXPECT_EQ(in.init->rgb, request.pictures.init->rgb);
  EXPECT_EQ(in.mask->rgb, request.pictures.mask->rgb);
  EXPECT_EQ(in.mask->width, 3);
  EXPECT_EQ(in.mask->height, 2);
  ASSERT_EQ(in.references.size(), 2u);
  EXPECT_EQ(in.references[0].rgb, request.pictures.references[0].rgb);
  EXPECT_EQ(in.references[1].rgb, request.pictures.references[1].rgb);
  EXPECT_EQ(in.references[0].channels(), 3);
  EXPECT_EQ(in.references[1].alpha, clear.alpha);
  EXPECT_EQ(told.frames, 5);
  EXPECT_EQ(std::tuple(told.layers, told.cfg_normalize, in.resolution),
            std::tuple(std::optional(7), std::optional(true), std::optional(1024)));
  ASSERT_EQ(in.controls.size(), 1u);
  const auto& control = in.controls.front();
  EXPECT_EQ(control.picture.rgb, request.pictures.controls.front().picture.rgb);
  EXPECT_EQ(std::tuple(control.scale, control.from, control.to, control.mode),
            std::tuple(0.5, 0.1, 0.9, std::optional(3)));
  EXPECT_EQ(in.reference_scales, request.pictures.reference_scales);
  EXPECT_EQ(std::tuple(in.mask_blur, in.padding_crop, in.reference_cache),
            std::tuple(1.5, std::optional(8), ReferenceCache::kOff));
  EXPECT_EQ(in.strength, 0.1);
  ASSERT_EQ(told.adapters->size(), 2u);
  EXPECT_EQ(told.adapters->front().file, "a b.safetensors");
  EXPECT_EQ(told.adapters->front().scale, -0.3);
  EXPECT_FALSE(request_of_bytes(bytes_of_request({.prompts = {"a"}})).adapters.has_value());
}

// Another command's ranks share a number first.
TEST(ServeRanks, SayWhatTheyExpectedToHear) {
  for (const auto* const words : {"42", "", "[[1]]", "{}"})
    EXPECT_THAT(message_of<Error>([&] { (void)request_of_bytes(words); }),
                testing::HasSubstr("should announce a request in the form of braid serve"));
}

}  // namespace braid::serve_ranks_test

// Each network on tensor parallel ranks that do not divide its heads, or take them in other
// proportions, against itself on one rank.
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>

#include <functional>

#include "comm/thread.h"
#include "denoiser_inputs.h"
#include "dumps.h"
#include "message_of.h"
#include "models/causal_lm/model.h"
#include "models/causal_lm/names.h"
#include "models/clip/model.h"
#include "models/flux/model.h"
#include "models/flux/sharding.h"
#include "models/flux2/model.h"
#include "models/flux2/sharding.h"
#include "models/joy/model.h"
#include "models/joy/sharding.h"
#include "models/t5/model.h"
#include "models/zimage/model.h"
#include "models/zimage/sharding.h"

namespace braid::uneven_shares_test {

using testing::HasSubstr;

constexpr std::int64_t kHeadWidth = 6, kNoise = 5, kText = 3, kTextWidth = 10;

Weights weights_of(const Group& ranks, ShardingTable shardings) {
  return Weights::synthetic({.tensor_parallel = ranks}, std::move(shardings));
}

// Makes the input of transformers with `axes` axes whose latent tokens have `width` channels.
DenoiserInput input(std::int64_t width, std::int64_t axes) {
  const auto generator = at::detail::createCPUGenerator(3);
  const auto draw = [&](at::IntArrayRef shape) { return at::randn(shape, generator, at::kFloat); };
  const auto ids = [&](std::int64_t length) {
    return at::randint(0, 9, {length, axes}, generator, at::kFloat);
  };
  return {.noise = {draw({1, kNoise, width}), ids(kNoise)},
          .text = {draw({1, kText, kTextWidth}), ids(kText)},
          .pooled_BC = draw({1, 4}),
          .timestep_B = at::full({1}, 0.5)};
}

Tensor prompt() { return at::tensor({1, 5, 2, 7}, at::kLong).unsqueeze(0); }

Tensor flux(const Group& ranks, int heads, SharedModulation modulation) {
  const FluxConfig c{.in_channels = 8,
                     .out_channels = 8,
                     .num_double = 1,
                     .num_single = 1,
                     .num_heads = heads,
                     .head_width = kHeadWidth,
                     .text_width = kTextWidth,
                     .pooled_width = 4,
                     .axes = {2, 2, 2}};
  return velocity_of(Flux(c, weights_of(ranks, flux_sharding(c, modulation))), input(8, 3));
}

// Channels of an MLP to a head of FLUX.2's.
constexpr std::int64_t kChannels = 12;

Tensor flux2_of(const Group& ranks, int heads, std::int64_t channels, SharedModulation modulation) {
  const Flux2Config c{.in_channels = 8,
                      .out_channels = 8,
                      .num_double = 1,
                      .num_single = 1,
                      .num_heads = heads,
                      .head_width = 8,
                      .mlp_hidden = channels,
                      .text_width = kTextWidth,
                      .guidance_embeds = false,
                      .axes = {2, 2, 2, 2}};
  return velocity_of(Flux2(c, weights_of(ranks, flux2_sharding(c, modulation))), input(8, 4));
}

Tensor flux2(const Group& ranks, int heads, SharedModulation modulation) {
  return flux2_of(ranks, heads, kChannels * heads, modulation);
}

Tensor joy(const Group& ranks, int heads, SharedModulation modulation) {
  const JoyConfig c{.latent_channels = 2,
                    .out_channels = 2,
                    .hidden = kHeadWidth * heads,
                    .num_heads = heads,
                    .mlp_hidden = 12 * heads,
                    .num_layers = 2,
                    .text_width = kTextWidth,
                    .axes = {2, 2, 2}};
  return velocity_of(Joy(c, weights_of(ranks, joy_sharding(c, modulation))), input(8, 3));
}

Tensor zimage(const Group& ranks, int heads) {
  const ZImageConfig c{.in_channels = 2,
                       .hidden = kHeadWidth * heads,
                       .num_heads = heads,
                       .num_layers = 1,
                       .num_refiners = 1,
                       .text_width = kTextWidth,
                       .axes = {2, 2, 2}};
  return velocity_of(ZImage(c, weights_of(ranks, zimage_sharding(c))), input(8, 3));
}

Tensor clip(const Group& ranks, int heads) {
  const ClipConfig c{.vocab_size = 8,
                     .max_positions = 4,
                     .hidden = 4 * heads,
                     .mlp_hidden = 8 * heads,
                     .num_layers = 2,
                     .num_heads = heads,
                     .eos_token = 7};
  return Clip(c, weights_of(ranks, clip_sharding(c)))(prompt()).hidden_BLC;
}

// Heads that are wider together than the residual stream.
Tensor t5(const Group& ranks, int heads) {
  const T5Config c{.vocab_size = 8,
                   .hidden = 10,
                   .mlp_hidden = 8 * heads,
                   .num_layers = 2,
                   .num_heads = heads,
                   .head_width = 4};
  return T5(c, weights_of(ranks, t5_sharding(c)))(prompt());
}

// Two heads of queries to each of keys and values.
Tensor causal_lm(const Group& ranks, int heads) {
  const CausalLmConfig c{.vocab_size = 8,
                         .hidden = 10,
                         .mlp_hidden = 8 * heads,
                         .num_layers = 3,
                         .num_heads = 2 * heads,
                         .num_kv_heads = heads,
                         .head_width = 4};
  const TextRun text{.begin = 0, .count = 4};
  return CausalLm(c, {2}, weights_of(ranks, causal_lm_sharding(c)))(prompt(), {&text, 1});
}

struct Network {
  const char* name;
  std::function<Tensor(const Group& ranks, int heads)> output;
};
std::ostream& operator<<(std::ostream& out, const Network& network) { return out << network.name; }

template <Tensor (*output)(const Group&, int, SharedModulation), SharedModulation modulation>
Tensor with(const Group& ranks, int heads) {
  return output(ranks, heads, modulation);
}

const Network kNetworks[] = {{"Flux", &with<&flux, SharedModulation::kYes>},
                             {"FluxWholeModulation", &with<&flux, SharedModulation::kNo>},
                             {"Flux2", &with<&flux2, SharedModulation::kYes>},
                             {"Flux2WholeModulation", &with<&flux2, SharedModulation::kNo>},
                             {"Joy", &with<&joy, SharedModulation::kYes>},
                             {"JoyWholeModulation", &with<&joy, SharedModulation::kNo>},
                             {"ZImage", &zimage},
                             {"Clip", &clip},
                             {"T5", &t5},
                             {"CausalLm", &causal_lm}};

void expect_equal_to_one_rank(const Network& network, int heads, const Shares& shares) {
  const auto want = network.output({}, heads);
  run_ranks({.size = shares.size()}, [&](const Group& world) {
    const c10::InferenceMode no_autograd;
    const auto got = network.output(world.with_shares(shares), heads);
    ASSERT_EQ(got.sizes(), want.sizes());
    EXPECT_LT(largest_error(got, want), 1e-5) << heads << " heads on " << in_words(shares);
  });
}

std::string refusal(const Network& network, int heads, const Shares& shares) {
  std::string said;
  run_ranks({.size = shares.size()}, [&](const Group& world) {
    const auto mine = message_of([&] { network.output(world.with_shares(shares), heads); });
    if (world.rank() == 0) said = mine;
  });
  return said;
}

class NetworksOfAnyShares : public testing::TestWithParam<Network> {
 protected:
  const c10::InferenceMode no_autograd_;
};

TEST_P(NetworksOfAnyShares, EqualOneRankOnAsManyRanksAsThereAreHeads) {
  for (const auto& [heads, size] :
       {std::pair(15, 3), {15, 2}, {7, 3}, {7, 5}, {7, 7}, {8, 3}, {6, 2}})
    expect_equal_to_one_rank(GetParam(), heads, size);
}

TEST_P(NetworksOfAnyShares, EqualOneRankInAnyProportion) {
  for (const auto& [heads, shares] : {std::pair{5, Shares(2, {3, 2})},
                                      {8, {2, {1, 7}}},
                                      {7, {3, {1, 4, 2}}},
                                      {6, {3, {8, 8, 3}}}})
    expect_equal_to_one_rank(GetParam(), heads, shares);
}

TEST_P(NetworksOfAnyShares, RefuseRanksWithoutAHead) {
  EXPECT_THAT(refusal(GetParam(), 2, 5), HasSubstr("cannot be cut, and none for rank"));
  EXPECT_THAT(refusal(GetParam(), 3, {2, {1000, 1}}), HasSubstr("none for rank 1"));
}

// The cut keeps the proportion of attention and MLP, by which a block tells them apart: six heads
// beside 40 channels are two pieces.
TEST(NetworksOfFusedChannels, AreCutWhereHeadsAndChannelsAreBothWhole) {
  const c10::InferenceMode no_autograd;
  const auto output = [](const Group& ranks, int heads) {
    return flux2_of(ranks, heads, 40, SharedModulation::kYes);
  };
  const Network network{"Flux2", output};
  expect_equal_to_one_rank(network, 6, 2);
  EXPECT_THAT(refusal(network, 6, 3), HasSubstr("there are 2 pieces that cannot be cut"));
  EXPECT_THAT(refusal(network, 6, 5), HasSubstr("there are 2 pieces that cannot be cut"));
}

INSTANTIATE_TEST_SUITE_P(Each, NetworksOfAnyShares, testing::ValuesIn(kNetworks),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace braid::uneven_shares_test

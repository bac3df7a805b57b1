// What text encoders hold while they read, pictures among it, is what plans count: at published
// widths, with few layers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/qwen25_vl/model.h"
#include "models/qwen3_vl/model.h"
#include "pipeline/dry/meta_memory.h"
#include "pipeline/families/parts.h"

namespace braid::dry_encoders_test {

constexpr std::int64_t kImageToken = 7;
constexpr std::int64_t kSide = 1024;  // pixels, of each picture

// The most bytes alive beyond the weights.
template <class Network, class Config>
std::int64_t held_by(Config config, std::int64_t words, int num_pictures) {
  config.text.num_layers = 2;
  config.text.vocab_size = 16;
  config.image_token = kImageToken;
  config.vision.depth = 4;
  DryMeter meter;
  const DryMeter::Here here(meter);
  const Network network(config, Weights::synthetic({.dtype = at::kBFloat16, .device = at::kMeta}));
  const auto side = config.vision.form().pixels_per_token();
  const auto seen = kSide / side * side;
  std::vector<Tensor> pictures;
  for (int i = 0; i < num_pictures; ++i)
    pictures.push_back(at::empty({3, seen, seen}, at::TensorOptions(at::kFloat).device(at::kMeta)));
  std::vector<std::int64_t> ids(std::size_t(words), 1);
  ids.insert(ids.begin(), std::size_t(num_pictures), kImageToken);
  const auto before = meter.live();
  meter.peak_from_here();
  const auto states = network(ids, network.encode(pictures));
  return meter.peak() - before;
}

std::int64_t tokens_of(const PatchForm& form, int num_pictures) {
  const auto side = kSide / form.pixels_per_token();
  return num_pictures * side * side;
}

template <class Network, class Config>
void expect_as_planned(const Config& config, const Part& part) {
  for (const int pictures : {0, 1, 4})
    for (const int words : {100, 4096}) {
      const auto tokens = tokens_of(config.vision.form(), pictures);
      const auto planned = 2 * part.live_with(words, tokens, /*ranks=*/1);
      EXPECT_NEAR(double(planned) / double(held_by<Network>(config, words, pictures)), 1, 0.06)
          << pictures << " pictures, " << words << " words";
    }
}

TEST(DryEncoders, HoldWhatIsForecast) {
  Qwen3VlConfig three;
  three.vision.deepstack = {1, 2, 3};  // of few layers
  expect_as_planned<Qwen3Vl>(three, qwen3_vl_part(three));
  Qwen25VlConfig two;
  two.vision.whole = {1};
  expect_as_planned<Qwen25Vl>(two, qwen25_vl_part(two));
}

}  // namespace braid::dry_encoders_test

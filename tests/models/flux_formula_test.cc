// FLUX.1 and its ControlNets against their formulas in float64.
#include <c10/core/InferenceMode.h>

#include "denoiser_inputs.h"
#include "dumps.h"
#include "flux_definition.h"
#include "models/flux/controlnet.h"
#include "models/flux/model.h"
#include "models/flux/names.h"

namespace braid::flux_formula_test {

using namespace flux_small;

Tensor velocity_by_definition(const Drawn& w, const DenoiserInput& in) {
  const auto vec = condition(w, in.timestep_B, in.guidance_B, in.pooled_BC);
  const auto ids = all_ids(in.text, in.noise);
  const auto& [of_doubles, of_singles] = in.residuals;
  Sides x{.image = w.layer("x_embedder", in.noise.x_BLC.to(at::kDouble)),
          .text = w.layer("context_embedder", in.text.x_BLC.to(at::kDouble))};
  // diffusers: interval = ceil(blocks / residuals); residuals[index // interval]
  const auto interval = [](std::int64_t blocks, const std::vector<Tensor>& residuals) {
    return std::int64_t(std::ceil(double(blocks) / double(residuals.size())));
  };
  for (std::int64_t i = 0; i < kSmall.num_double; ++i) {
    x = double_block(w, i, x, vec, ids);
    if (!of_doubles.empty())
      x.image = x.image + of_doubles[std::size_t(i / interval(kSmall.num_double, of_doubles))];
  }
  auto all = at::cat({x.text, x.image}, 1);
  for (std::int64_t i = 0; i < kSmall.num_single; ++i) {
    all = single_block(w, i, all, vec, ids);
    if (!of_singles.empty())
      all = at::cat({all.narrow(1, 0, kText),
                     all.narrow(1, kText, kNoise) +
                         of_singles[std::size_t(i / interval(kSmall.num_single, of_singles))]},
                    1);
  }
  const auto mod = w.layer("norm_out.linear", vec).chunk(2, -1);  // [scale | shift]
  return w.layer("proj_out", modulated(all.narrow(1, kText, kNoise), mod[1], mod[0]));
}

Flux flux_of(const Drawn& w) {
  const auto checkpoint = checkpoint_of(w.all());
  return {kSmall, Weights(checkpoint, flux_names(checkpoint), {})};
}

// float32 against float64: a few roundings of 6e-8 per layer, and a timestep's angle of up to 4000.
constexpr double kRounding = 2e-5;

TEST(FluxTransformer, EqualsItsFormula) {
  const c10::InferenceMode no_autograd;
  const auto w = drawn_flux();
  const auto in = drawn_input();
  const auto got = velocity_of(flux_of(w), in), want = velocity_by_definition(w, in);
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LT(largest_error(got, want), kRounding);
}

TEST(FluxTransformer, AddsResidualsToTheNoiseAfterTheBlocksThatShareThem) {
  const c10::InferenceMode no_autograd;
  const auto w = drawn_flux();
  const auto flux = flux_of(w);
  auto in = drawn_input();
  const auto drawn_residuals = [](int count) {
    std::vector<Tensor> residuals;
    for (int i = 0; i < count; ++i)
      residuals.push_back(at::randn({kBatch, kNoise, kSmall.hidden()}));
    return residuals;
  };
  for (const auto& [doubles, singles] : {std::pair(2, 0), std::pair(0, 1), std::pair(3, 2)}) {
    in.residuals = {.doubles = drawn_residuals(doubles), .singles = drawn_residuals(singles)};
    EXPECT_LT(largest_error(velocity_of(flux, in), velocity_by_definition(w, in)), kRounding)
        << doubles << " and " << singles;
  }
}

// ---------------------------------------------------------------------------- the ControlNet

struct SmallNet {
  explicit SmallNet(std::int64_t num_modes) : config{.flux = kSmall, .num_modes = num_modes} {
    config.flux.num_double = 2;
    w = drawn_ends(config.flux);
    draw_blocks(w, config.flux);
    const auto h = kSmall.hidden();
    w.add_layer("controlnet_x_embedder", kSmall.in_channels, h);
    for (int i = 0; i < config.flux.num_double; ++i)
      w.add_layer("controlnet_blocks." + std::to_string(i), h, h);
    for (int i = 0; i < config.flux.num_single; ++i)
      w.add_layer("controlnet_single_blocks." + std::to_string(i), h, h);
    if (num_modes > 0) w.add("controlnet_mode_embedder.weight", {num_modes, h});
  }

  BlockResiduals by_definition(const DenoiserInput& in, const ControlInput& control) const {
    const auto vec = condition(w, in.timestep_B, control.guidance_B, control.pooled_BC);
    const auto ids = all_ids(control.text, in.noise);
    Sides x{.image = w.layer("x_embedder", in.noise.x_BLC.to(at::kDouble)) +
                     w.layer("controlnet_x_embedder", control.x_BNC.to(at::kDouble)),
            .text = w.layer("context_embedder", control.text.x_BLC.to(at::kDouble))};
    if (control.mode.defined())  // the mode's token stands before those of the prompt
      x.text = at::cat({w("controlnet_mode_embedder.weight")
                            .index_select(0, control.mode)
                            .expand({kBatch, 1, -1}),
                        x.text.narrow(1, 1, kText - 1)},
                       1);
    const auto scale = control.scale.item<double>();
    BlockResiduals made;
    for (std::int64_t i = 0; i < config.flux.num_double; ++i) {
      x = double_block(w, i, x, vec, ids);
      made.doubles.push_back(scale * w.layer("controlnet_blocks." + std::to_string(i), x.image));
    }
    auto all = at::cat({x.text, x.image}, 1);
    for (std::int64_t i = 0; i < config.flux.num_single; ++i) {
      all = single_block(w, i, all, vec, ids);
      made.singles.push_back(scale * w.layer("controlnet_single_blocks." + std::to_string(i),
                                             all.narrow(1, kText, kNoise)));
    }
    return made;
  }

  BlockResiduals computed(const DenoiserInput& in, ControlInput control) const {
    const FluxControlNet net(config, Weights(checkpoint_of(w.all()), flux_controlnet_names(), {}));
    control.modulations_BM = net.modulations({net.condition(in, control)}).front();
    return net(in, control);
  }

  FluxControlNetConfig config;
  Drawn w;
};

void expect_equal(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_LT(largest_error(got[i], want[i]), kRounding) << i;
}

// Its prompt, pooled prompt and guidance are its own: those of `in` differ.
ControlInput drawn_control(const DenoiserInput& in) {
  return {
      .x_BNC = at::randn({kBatch, kNoise, kSmall.in_channels}),
      .text = {.x_BLC = at::randn({kBatch, kText, kSmall.text_width}), .ids_LA = in.text.ids_LA},
      .pooled_BC = at::randn({kBatch, kSmall.pooled_width}),
      .guidance_B = at::tensor({1.0, 6.0}, at::kFloat),
      .scale = at::scalar_tensor(0.625, at::kFloat)};
}

TEST(FluxControlNets, EqualTheirFormula) {
  const c10::InferenceMode no_autograd;
  const SmallNet net(0);
  const auto in = drawn_input();
  const auto control = drawn_control(in);
  const auto got = net.computed(in, control), want = net.by_definition(in, control);
  expect_equal(got.doubles, want.doubles);
  expect_equal(got.singles, want.singles);
}

// What stands at the pad of the prompt must not matter.
TEST(FluxControlNets, OfSeveralModesPutTheModeBeforeThePrompt) {
  const c10::InferenceMode no_autograd;
  const SmallNet net(3);
  const auto in = drawn_input();
  auto control = drawn_control(in);
  control.text.is_pad_L = at::arange(kText) < 1;
  for (const std::int64_t mode : {0, 2}) {
    control.mode = at::full({1}, mode, at::kLong);
    const auto want = net.by_definition(in, control);
    control.text.x_BLC.narrow(1, 0, 1).fill_(1e3);
    const auto got = net.computed(in, control);
    expect_equal(got.doubles, want.doubles);
    expect_equal(got.singles, want.singles);
  }
}

}  // namespace braid::flux_formula_test

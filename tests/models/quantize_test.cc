// How far 8-bit weights move one evaluation at FLUX.1's width: the budget in docs/numerics.md.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "base/file.h"
#include "models/flux/model.h"
#include "models/flux/names.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"
#include "weights/survey.h"

namespace braid::quantize_test {

const FluxConfig kWide{.num_double = 1, .num_single = 2, .guidance_embeds = true};

// A checkpoint of random weights: normal with deviation 0.02; norms are 1.
class RandomFlux {
 public:
  RandomFlux() {
    const auto generator = at::detail::createCPUGenerator(7);
    std::map<std::string, Tensor> tensors;
    const auto add = [&](const std::string& layer, at::IntArrayRef shape) {
      tensors[layer + ".weight"] =
          (0.02 * at::randn(shape, generator, at::kFloat)).to(at::kBFloat16);
      tensors[layer + ".bias"] = at::zeros({shape[0]}, at::kBFloat16);
    };
    const auto h = kWide.hidden(), m = kWide.mlp_hidden();
    add("img_in", {h, 64});
    add("txt_in", {h, 4096});
    for (const auto& [embedder, in] :
         {std::pair("time_in", 256), std::pair("guidance_in", 256), std::pair("vector_in", 768)}) {
      add(std::string(embedder) + ".in_layer", {h, in});
      add(std::string(embedder) + ".out_layer", {h, h});
    }
    const auto add_norms = [&](const std::string& at) {
      for (const auto* norm : {".query_norm.scale", ".key_norm.scale"})
        tensors[at + norm] = at::ones({kWide.head_width}, at::kBFloat16);
    };
    for (const std::string side : {"double_blocks.0.img", "double_blocks.0.txt"}) {
      add(side + "_mod.lin", {6 * h, h});
      add(side + "_attn.qkv", {3 * h, h});
      add(side + "_attn.proj", {h, h});
      add(side + "_mlp.0", {m, h});
      add(side + "_mlp.2", {h, m});
      add_norms(side + "_attn.norm");
    }
    for (const std::string block : {"single_blocks.0", "single_blocks.1"}) {
      add(block + ".modulation.lin", {3 * h, h});
      add(block + ".linear1", {3 * h + m, h});
      add(block + ".linear2", {h, h + m});
      add_norms(block + ".norm");
    }
    add("final_layer.adaLN_modulation.1", {2 * h, h});
    add("final_layer.linear", {64, h});
    write_file(folder_ / "m.safetensors", write_safetensors(tensors));
  }

  Tensor velocity(at::ScalarType dtype, Quantize form) const {
    const auto checkpoint = Checkpoint::open(folder_.path(), "m");
    const Flux flux(
        kWide, Weights(checkpoint, flux_names(checkpoint), {.dtype = dtype, .quantize = form}));
    const auto generator = at::detail::createCPUGenerator(8);
    // a timestep and a guidance that are exact in bfloat16, also times 1000
    const auto normal = [&](at::IntArrayRef shape) {
      return at::randn(shape, generator, at::kFloat).to(dtype);
    };
    return velocity_of(flux, {.noise = {normal({1, 64, 64}), at::zeros({64, 3}, at::kFloat)},
                              .text = {normal({1, 32, 4096}), at::zeros({32, 3}, at::kFloat)},
                              .pooled_BC = normal({1, 768}),
                              .timestep_B = at::full({1}, 0.5, dtype),
                              .guidance_B = at::full({1}, 4.0, at::kFloat)});
  }

 private:
  TemporaryFolder folder_;
};

struct Budget {
  const char* name;
  at::ScalarType dtype;
  Quantize form;
  double limit;
};

TEST(QuantizeSlow, ErrorsAtFluxWidthStayInTheBudget) {
  const c10::InferenceMode inference;
  const RandomFlux model;
  const auto exact = model.velocity(at::kFloat, Quantize::kNone);
  for (const auto& b :
       {Budget{"bfloat16", at::kBFloat16, Quantize::kNone, 0.015},
        Budget{"int8", at::kFloat, Quantize::kInt8, 0.035},
        Budget{"int8 in bfloat16", at::kBFloat16, Quantize::kInt8, 0.04},
        Budget{"int8-v1 in bfloat16", at::kBFloat16, Quantize::kInt8V1, 0.04},
        Budget{"int8-dynamic", at::kFloat, Quantize::kInt8Dynamic, 0.06},
        Budget{"int8-dynamic in bfloat16", at::kBFloat16, Quantize::kInt8Dynamic, 0.06}}) {
    const auto got = model.velocity(b.dtype, b.form).to(at::kFloat);
    const auto error = ((got - exact).norm() / exact.norm()).item<double>();
    EXPECT_LT(error, b.limit) << b.name;
    EXPECT_GT(error, 1e-4) << b.name;
    std::printf("%-26s %.4f\n", b.name, error);
  }
}

}  // namespace braid::quantize_test

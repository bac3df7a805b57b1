// Synthetic transformers of any size, for tests and benches that need no picture: all weights are
// zero.
#pragma once

#include <ATen/ATen.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "nn/predict.h"
#include "pipeline/families/flux/flux.h"
#include "pipeline/planner/job.h"
#include "pipeline/sampling/noise.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid {

// The tensors of a checkpoint in Black Forest Labs' spelling.
inline std::map<std::string, at::Tensor> made_transformer(const FluxConfig& c,
                                                          at::ScalarType dtype) {
  std::map<std::string, at::Tensor> tensors;
  const auto add = [&](const std::string& name, at::IntArrayRef shape) {
    tensors[name] = at::zeros(shape, dtype);
  };
  const auto linear = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  };
  const auto embedder = [&](const std::string& name, std::int64_t in) {
    linear(name + ".in_layer", in, c.hidden());
    linear(name + ".out_layer", c.hidden(), c.hidden());
  };
  const auto norms = [&](const std::string& name) {
    add(name + ".norm.query_norm.scale", {c.head_width});
    add(name + ".norm.key_norm.scale", {c.head_width});
  };
  const auto h = c.hidden(), m = c.mlp_hidden();
  linear("img_in", c.in_channels, h);
  linear("txt_in", c.text_width, h);
  embedder("time_in", 256);
  embedder("vector_in", c.pooled_width);
  if (c.guidance_embeds) embedder("guidance_in", 256);
  for (std::int64_t i = 0; i < c.num_double; ++i)
    for (const std::string side : {"img", "txt"}) {
      const auto block = "double_blocks." + std::to_string(i) + "." + side;
      linear(block + "_mod.lin", h, 6 * h);
      linear(block + "_attn.qkv", h, 3 * h);
      norms(block + "_attn");
      linear(block + "_attn.proj", h, h);
      linear(block + "_mlp.0", h, m);
      linear(block + "_mlp.2", m, h);
    }
  for (std::int64_t i = 0; i < c.num_single; ++i) {
    const auto block = "single_blocks." + std::to_string(i);
    linear(block + ".modulation.lin", h, 3 * h);
    linear(block + ".linear1", h, 3 * h + m);
    linear(block + ".linear2", h + m, h);
    norms(block);
  }
  linear("final_layer.adaLN_modulation.1", h, 2 * h);
  linear("final_layer.linear", h, c.out_channels);
  return tensors;
}

// A file with a synthetic model, removed after the test.
class MadeFile {
 public:
  MadeFile(const FluxConfig& config, at::ScalarType dtype) {
    write_file(path(), write_safetensors(made_transformer(config, dtype)));
  }
  std::filesystem::path path() const { return folder_ / "m.safetensors"; }

 private:
  TemporaryFolder folder_;
};

// A plan's job for a transformer; other parts are FLUX.1's, except the latents' channels.
inline PlanJob job_of_transformer(const FluxConfig& config) {
  return {.family = make_flux_family({.flux = config})};
}

// All zeros, too.
inline DenoiserInput made_input(const PlanJob& job) {
  const auto& shape = job.shape();
  const auto zeros = [&](at::IntArrayRef sizes) { return at::zeros(sizes, job.dtype); };
  const auto batch = job.batch_size;
  const Condition condition{.text_BTC = zeros({batch, job.text_tokens, shape.text_width}),
                            .pooled_BC = zeros({batch, shape.pooled_width})};
  auto in = job.family->begin(condition, job.size(), 3.5, at::TensorOptions(job.dtype));
  job.family->set_step(in, zeros({batch, job.image_tokens(), shape.in_width}), 500);
  for (const auto tokens : job.pictures.references)
    in.references.push_back({.x_BLC = zeros({batch, tokens, shape.in_width}),
                             .ids_LA = at::zeros({tokens, in.noise.ids_LA.size(1)})});
  return in;
}

}  // namespace braid

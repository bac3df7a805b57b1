// A small FLUX.1: its weights, drawn at random in diffusers' names, and inputs.
#pragma once

#include "drawn.h"
#include "models/flux/config.h"
#include "nn/predict.h"

namespace braid::flux_small {

// Every width differs, so that none can stand for another.
inline const FluxConfig kSmall{.in_channels = 12,
                               .out_channels = 12,
                               .num_double = 3,
                               .num_single = 2,
                               .num_heads = 3,
                               .head_width = 10,
                               .text_width = 7,
                               .pooled_width = 5,
                               .guidance_embeds = true,
                               .axes = {2, 6, 2}};
constexpr std::int64_t kBatch = 2, kRows = 3, kColumns = 2, kNoise = 6, kText = 4;

inline Drawn drawn_ends(const FluxConfig& c) {
  Drawn w;
  const auto h = c.hidden();
  w.add_layer("x_embedder", c.in_channels, h);
  w.add_layer("context_embedder", c.text_width, h);
  const std::string embed = "time_text_embed.";
  for (const auto& [name, in] : {std::pair("timestep_embedder", std::int64_t(256)),
                                 {"guidance_embedder", std::int64_t(256)},
                                 {"text_embedder", c.pooled_width}}) {
    w.add_layer(embed + name + ".linear_1", in, h);
    w.add_layer(embed + name + ".linear_2", h, h);
  }
  return w;
}

inline void draw_blocks(Drawn& w, const FluxConfig& c) {
  const auto h = c.hidden();
  const auto draw_scale = [&](const std::string& name) { w.add_scale(name, c.head_width); };
  for (std::int64_t i = 0; i < c.num_double; ++i) {
    const auto block = "transformer_blocks." + std::to_string(i) + ".";
    for (const std::string name : {"norm1.linear", "norm1_context.linear"})
      w.add_layer(block + name, h, 6 * h);
    for (const std::string name : {"to_q", "to_k", "to_v", "to_out.0", "add_q_proj", "add_k_proj",
                                   "add_v_proj", "to_add_out"})
      w.add_layer(block + "attn." + name, h, h);
    for (const std::string name : {"norm_q", "norm_k", "norm_added_q", "norm_added_k"})
      draw_scale(block + "attn." + name);
    for (const std::string name : {"ff", "ff_context"}) {
      w.add_layer(block + name + ".net.0.proj", h, 4 * h);
      w.add_layer(block + name + ".net.2", 4 * h, h);
    }
  }
  for (std::int64_t i = 0; i < c.num_single; ++i) {
    const auto block = "single_transformer_blocks." + std::to_string(i) + ".";
    w.add_layer(block + "norm.linear", h, 3 * h);
    for (const std::string name : {"to_q", "to_k", "to_v"})
      w.add_layer(block + "attn." + name, h, h);
    for (const std::string name : {"norm_q", "norm_k"}) draw_scale(block + "attn." + name);
    w.add_layer(block + "proj_mlp", h, 4 * h);
    w.add_layer(block + "proj_out", 5 * h, h);
  }
}

inline Drawn drawn_flux() {
  auto w = drawn_ends(kSmall);
  draw_blocks(w, kSmall);
  w.add_layer("norm_out.linear", kSmall.hidden(), 2 * kSmall.hidden());
  w.add_layer("proj_out", kSmall.hidden(), kSmall.out_channels);
  return w;
}

inline Tensor positions(std::int64_t first) {
  const auto rows = at::arange(kRows).repeat_interleave(kColumns);
  return at::stack({at::full({kNoise}, first, at::kLong), rows, at::arange(kColumns).repeat(kRows)},
                   1);
}

inline DenoiserInput drawn_input() {
  const auto text_ids = at::stack(
      {at::zeros({kText}, at::kLong), at::arange(kText), at::full({kText}, 3, at::kLong)}, 1);
  return {
      .noise = {.x_BLC = at::randn({kBatch, kNoise, kSmall.in_channels}), .ids_LA = positions(1)},
      .text = {.x_BLC = at::randn({kBatch, kText, kSmall.text_width}), .ids_LA = text_ids},
      .pooled_BC = at::randn({kBatch, kSmall.pooled_width}),
      .timestep_B = at::tensor({0.25, 0.75}, at::kFloat),
      .guidance_B = at::tensor({2.5, 4.0}, at::kFloat)};
}

inline Tensor all_ids(const Tokens& text, const Tokens& noise) {
  return at::cat({text.ids_LA, noise.ids_LA});
}

}  // namespace braid::flux_small

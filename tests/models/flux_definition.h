// The blocks of a FLUX.1 in float64, written from diffusers' FluxTransformer2DModel with plain
// tensor operations and diffusers' names.
#pragma once

#include <vector>

#include "flux_small.h"

namespace braid::flux_small {

constexpr double kEps = 1e-6;

// Cosines first, then sines.
inline Tensor sinusoid(const Tensor& t_B) {
  std::vector<Tensor> columns;
  for (int part = 0; part < 2; ++part)
    for (int i = 0; i < 128; ++i) {
      const auto angle = t_B.to(at::kDouble) * std::pow(10000, -i / 128.);
      columns.push_back(part == 0 ? at::cos(angle) : at::sin(angle));
    }
  return at::stack(columns, 1);
}

inline Tensor embedded(const Drawn& w, const std::string& name, const Tensor& x) {
  const auto layer = "time_text_embed." + name + ".linear_";
  return w.layer(layer + "2", swish(w.layer(layer + "1", x)));
}

// silu of the conditioning vector
inline Tensor condition(const Drawn& w, const Tensor& timestep_B, const Tensor& guidance_B,
                        const Tensor& pooled) {
  return swish(embedded(w, "timestep_embedder", sinusoid(1000 * timestep_B)) +
               embedded(w, "guidance_embedder", sinusoid(1000 * guidance_B)) +
               embedded(w, "text_embedder", pooled.to(at::kDouble)));
}

// A modulated norm without weights of its own.
inline Tensor modulated(const Tensor& x, const Tensor& shift, const Tensor& scale) {
  const auto centred = x - x.mean(-1, true);
  const auto normed = centred / (centred.square().mean(-1, true) + kEps).sqrt();
  return normed * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1);
}

// Pairs of neighbours turn by position times frequency, axis after axis.
inline Tensor rotated(const Tensor& x_BLHD, const Tensor& ids_LA) {
  std::vector<Tensor> out;
  std::int64_t at = 0;
  for (std::size_t axis = 0; axis < kSmall.axes.size(); ++axis)
    for (std::int64_t i = 0; i < kSmall.axes[axis]; i += 2, at += 2) {
      const auto frequency = std::pow(10000, -double(i) / double(kSmall.axes[axis]));
      const auto position_L11 = ids_LA.select(1, std::int64_t(axis)).to(at::kDouble).view({-1, 1});
      const auto angle = position_L11 * frequency;
      const auto a = x_BLHD.select(-1, at), b = x_BLHD.select(-1, at + 1);
      out.push_back(a * angle.cos() - b * angle.sin());
      out.push_back(b * angle.cos() + a * angle.sin());
    }
  return at::stack(out, -1);
}

inline Tensor heads(const Drawn& w, const std::string& layer, const Tensor& x) {
  return w.layer(layer, x).unflatten(-1, {kSmall.num_heads, kSmall.head_width});
}

inline Tensor normed_heads(const Drawn& w, const std::string& layer, const std::string& norm,
                           const Tensor& x) {
  const auto y = heads(w, layer, x);
  return y / (y.square().mean(-1, true) + kEps).sqrt() * w(norm + ".weight");
}

inline Tensor attended(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& ids_LA) {
  const auto of = [](const Tensor& x_BLHD) { return x_BLHD.transpose(1, 2); };
  const auto scores = of(rotated(q, ids_LA)).matmul(of(rotated(k, ids_LA)).transpose(2, 3)) /
                      std::sqrt(double(kSmall.head_width));
  return at::softmax(scores, -1).matmul(of(v)).transpose(1, 2).flatten(2);
}

struct Sides {
  Tensor image, text;
};

inline Sides double_block(const Drawn& w, std::int64_t i, const Sides& x, const Tensor& vec,
                          const Tensor& ids_LA) {
  const auto block = "transformer_blocks." + std::to_string(i) + ".", attn = block + "attn.";
  const auto image = w.layer(block + "norm1.linear", vec).chunk(6, -1);
  const auto text = w.layer(block + "norm1_context.linear", vec).chunk(6, -1);
  const auto a = modulated(x.image, image[0], image[1]), b = modulated(x.text, text[0], text[1]);
  const auto both = [&](const std::string& of_text, const std::string& of_image) {
    const bool has_norm = of_text != "add_v_proj";
    const auto norm = of_image == "to_q" ? std::string("q") : "k";
    if (!has_norm) return at::cat({heads(w, attn + of_text, b), heads(w, attn + of_image, a)}, 1);
    return at::cat({normed_heads(w, attn + of_text, attn + "norm_added_" + norm, b),
                    normed_heads(w, attn + of_image, attn + "norm_" + norm, a)},
                   1);
  };
  const auto y = attended(both("add_q_proj", "to_q"), both("add_k_proj", "to_k"),
                          both("add_v_proj", "to_v"), ids_LA);
  const auto finish = [&](const Tensor& from, const Tensor& mine, const std::string& proj,
                          const std::string& ff, const std::vector<Tensor>& mod) {
    const auto h = from + mod[2].unsqueeze(1) * w.layer(attn + proj, mine);
    const auto wide =
        gelu_by_tanh(w.layer(block + ff + ".net.0.proj", modulated(h, mod[3], mod[4])));
    return h + mod[5].unsqueeze(1) * w.layer(block + ff + ".net.2", wide);
  };
  return {.image = finish(x.image, y.narrow(1, kText, kNoise), "to_out.0", "ff", image),
          .text = finish(x.text, y.narrow(1, 0, kText), "to_add_out", "ff_context", text)};
}

inline Tensor single_block(const Drawn& w, std::int64_t i, const Tensor& x, const Tensor& vec,
                           const Tensor& ids_LA) {
  const auto block = "single_transformer_blocks." + std::to_string(i) + ".", attn = block + "attn.";
  const auto mod = w.layer(block + "norm.linear", vec).chunk(3, -1);
  const auto n = modulated(x, mod[0], mod[1]);
  const auto y = attended(normed_heads(w, attn + "to_q", attn + "norm_q", n),
                          normed_heads(w, attn + "to_k", attn + "norm_k", n),
                          heads(w, attn + "to_v", n), ids_LA);
  const auto wide = gelu_by_tanh(w.layer(block + "proj_mlp", n));
  return x + mod[2].unsqueeze(1) * w.layer(block + "proj_out", at::cat({y, wide}, -1));
}

}  // namespace braid::flux_small

// Inputs for the denoisers in tests/data/parity/denoisers, as families build them.
#pragma once

#include "dumps.h"
#include "nn/predict.h"

namespace braid {

// A fixture's input as it was dumped: a family's fixtures have what it uses.
inline DenoiserInput denoiser_input(const Dump& dump, at::ScalarType dtype) {
  const auto run = [&](const std::string& name) {
    Tokens tokens{.x_BLC = dump[name].to(dtype), .ids_LA = dump[name + "_ids"]};
    if (dump.has(name + "_span")) tokens.span_L2 = dump[name + "_span"];
    return tokens;
  };
  DenoiserInput in{.noise = run("noise"), .text = run("text")};
  for (int i = 0; dump.has("reference" + std::to_string(i)); ++i)
    in.references.push_back(run("reference" + std::to_string(i)));
  in.timestep_B = dump["timestep"].to(dtype);
  if (dump.has("target")) in.target_timestep_B = dump["target"].to(dtype);
  if (dump.has("guidance")) in.guidance_B = dump["guidance"];
  return in;
}

// What a model that holds all blocks makes of an input in one step.
template <class Model>
Tensor velocity_of(const Model& model, DenoiserInput in) {
  if constexpr (requires { model.condition(in); })
    in.modulations_BM = model.modulations({model.condition(in)}).front();
  return model.advance(in, {});
}

// Rows and columns of 2 x 2 latents [B C 2R 2W], channels fastest in a token.
inline Tensor pack(const Tensor& latents) {
  const auto patches = latents.unflatten(3, {-1, 2}).unflatten(2, {-1, 2});  // B C R 2 W 2
  return patches.permute({0, 2, 4, 3, 5, 1}).flatten(3).flatten(1, 2).contiguous();
}

inline Tensor unpack(const Tensor& tokens, std::int64_t rows, std::int64_t columns) {
  const auto patches =
      tokens.narrow(1, 0, rows * columns).unflatten(2, {2, 2, -1}).unflatten(1, {rows, columns});
  return patches.permute({0, 5, 1, 3, 2, 4}).flatten(4).flatten(2, 3);
}

// Pads tokens and positions to a multiple of 32. The pads' values must not matter.
inline Tokens padded(const Tensor& x_BLC, const Tensor& ids_LA, const Tensor& pad_ids_LA) {
  const auto pads = pad_ids_LA.size(0);
  const auto nonsense = at::full({x_BLC.size(0), pads, x_BLC.size(2)}, 1e3, x_BLC.options());
  const auto is_pad = at::arange(x_BLC.size(1) + pads) >= x_BLC.size(1);
  return {at::cat({x_BLC, nonsense}, 1), at::cat({ids_LA, pad_ids_LA}),
          pads > 0 ? is_pad : Tensor()};
}

inline std::int64_t pads_of(std::int64_t tokens) { return (32 - tokens % 32) % 32; }

inline Tokens text_tokens(const Tensor& x_BLC) {
  const auto real = x_BLC.size(1), all = real + pads_of(real);
  const auto first = at::arange(1, all + 1).unsqueeze(1);
  const auto ids = at::cat({first, at::zeros({all, 2}, at::kLong)}, 1);
  return padded(x_BLC, ids.narrow(0, 0, real), ids.narrow(0, real, all - real));
}

inline Tokens image_tokens(const Tensor& latents, std::int64_t num_text) {
  const auto rows = latents.size(2) / 2, columns = latents.size(3) / 2;
  const auto ids = at::cartesian_prod(
      {at::full({1}, num_text + 1, at::kLong), at::arange(rows), at::arange(columns)});
  return padded(pack(latents), ids, at::zeros({pads_of(rows * columns), 3}, at::kLong));
}

inline DenoiserInput zimage_input(const Dump& dump, at::ScalarType dtype) {
  const auto text = text_tokens(dump["text"].to(dtype));
  return {.noise = image_tokens(dump["latents"], text.x_BLC.size(1)),
          .text = text,
          .timestep_B = dump["timestep"]};
}

// JoyAI's [B Z h w] -> tokens of 2 x 2, channels slowest, and their positions.
inline Tokens joy_tokens(const Tensor& latents, std::int64_t item) {
  const auto patches = latents.unflatten(3, {-1, 2}).unflatten(2, {-1, 2});  // B Z h 2 w 2
  const auto rows = at::arange(patches.size(2), at::kFloat).unsqueeze(1);
  const auto columns = at::arange(patches.size(4), at::kFloat).unsqueeze(0);
  const auto grid = at::broadcast_tensors({at::full({1, 1}, double(item)), rows, columns});
  return {.x_BLC = patches.permute({0, 2, 4, 1, 3, 5}).flatten(3).flatten(1, 2),
          .ids_LA = at::stack(grid, -1).flatten(0, 1)};
}

inline Tensor joy_latents(const Tensor& tokens, at::IntArrayRef like) {
  const auto patches = tokens.unflatten(2, {like[1], 2, 2}).unflatten(1, {like[2] / 2, -1});
  return patches.permute({0, 3, 1, 4, 2, 5}).flatten(4).flatten(2, 3);
}

// The last of `count` items is drawn, the others are references; the text has no positions.
inline DenoiserInput joy_input(const Dump& dump, std::int64_t count, at::ScalarType dtype) {
  const auto items = dump["transformer.items"].squeeze(3).to(dtype);
  const auto all = items.size(1), first = all - count;
  const auto text = dump["transformer.text"].to(dtype);
  DenoiserInput in{.noise = joy_tokens(items.select(1, all - 1), 0), .text = {}};
  for (std::int64_t i = first; i + 1 < all; ++i)
    in.references.push_back(joy_tokens(items.select(1, i), i - first + 1));
  in.text = {.x_BLC = text, .ids_LA = at::zeros({text.size(1), 3})};
  in.timestep_B = dump["transformer.timestep"];
  return in;
}

// The tensor too large for fixtures: tools/parity/make_denoisers.py, left_out().
inline Tensor left_out() {
  const auto i = at::arange(1024).unsqueeze(1), j = at::arange(256);
  return ((i * (73 + j) + 151 * j) % 255 - 127).to(at::kFloat) / 1024;
}

inline Checkpoint with_left_out(const Checkpoint& checkpoint, const std::string& prefix = "") {
  auto tensors = tensors_of(checkpoint);
  tensors[prefix + "t_embedder.mlp.0.weight"] = left_out();
  return checkpoint_of(tensors);
}

}  // namespace braid

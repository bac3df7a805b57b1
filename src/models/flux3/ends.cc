#include "models/flux3/ends.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "nn/norm.h"

namespace braid {
namespace {

constexpr double kFlux3TimeScale = 1000;  // fixed in the reference class

Linear dense(const Weights& w, std::int64_t in, std::int64_t out) {
  return {w, {.in = in, .out = out, .bias = Bias::kNo}};
}

Embedder load_time(const Weights& w, const Flux3Config& c) {
  return {dense(w / "in_layer", c.sinusoid, c.hidden()),
          dense(w / "out_layer", c.hidden(), c.hidden())};
}

std::vector<Linear> load_modulations(const Weights& w, const Flux3Config& c) {
  std::vector<Linear> layers;
  for (const char* const mode : {"txt", "image", "image_cond"})
    layers.push_back(dense(w / mode / "lin", c.hidden(), 3 * c.hidden()));
  return layers;
}

}  // namespace

std::array<std::int64_t, 3> Flux3Tokens::counts(const DenoiserInput& in) {
  std::int64_t references = 0;
  for (const auto& reference : in.references) references += reference.x_BLC.size(1);
  return {in.text.x_BLC.size(1), in.noise.x_BLC.size(1), references};
}

Flux3Tokens::Flux3Tokens(const Tensor& packed_BLC, const std::array<std::int64_t, 3>& counts) {
  const auto runs = packed_BLC.split_with_sizes(counts, 1);
  std::copy(runs.begin(), runs.end(), runs_.begin());
}

Tensor Flux3Tokens::pack() const { return at::cat(at::TensorList(runs_), 1); }

Modulation Flux3Modulations::from(std::int64_t first) const {
  return {.shift = vectors_BVC_.narrow(1, first, 1),
          .scale = vectors_BVC_.narrow(1, first + 1, 1),
          .gate = vectors_BVC_.narrow(1, first + 2, 1)};
}

Modulation Flux3Modulations::last() const {
  return {.shift = vectors_BVC_.narrow(1, kFlux3Vectors - 2, 1),
          .scale = vectors_BVC_.narrow(1, kFlux3Vectors - 1, 1),
          .gate = {}};
}

Flux3Inputs::Flux3Inputs(const Weights& w, const Flux3Config& c)
    : text_in_(dense(w / "txt_in", c.text_width, c.hidden())),
      image_in_(dense(w / "emb_in" / "image", c.token_width, c.hidden())),
      references_in_(dense(w / "emb_in" / "image_cond", c.reference_width, c.hidden())),
      time_in_(load_time(w.once() / "time_in", c)),
      early_(load_modulations(w.once() / "early_stream_modulations", c)),
      single_(load_modulations(w.once() / "single_stream_modulations", c)),
      last_(dense(w.once() / "final_layer" / "image" / "adaLN_modulation" / "1", c.hidden(),
                  2 * c.hidden())),
      sinusoid_(c.sinusoid),
      dtype_(w.dtype()) {
  if (c.flow_map) target_in_ = load_time(w.once() / "ref_time_in", c);
}

Flux3Tokens Flux3Inputs::tokens(const DenoiserInput& in) const {
  std::vector<Tensor> references;
  for (const auto& reference : in.references) references.push_back(reference.x_BLC);
  const auto image = image_in_(in.noise.x_BLC);
  const auto seen =
      references.empty() ? image.narrow(1, 0, 0) : references_in_(at::cat(references, 1));
  return Flux3Tokens(std::array{text_in_(in.text.x_BLC), image, seen});
}

// The timestep is multiplied in the model's dtype, like the reference.
Tensor Flux3Inputs::embedded(const Embedder& embedder, const Tensor& t_B) const {
  return embedder(sinusoidal_embedding(t_B.to(dtype_) * kFlux3TimeScale, sinusoid_).to(dtype_));
}

Tensor Flux3Inputs::condition(const DenoiserInput& in) const {
  check(in.target_timestep_B.defined() == target_in_.has_value(), "this transformer is ",
        target_in_ ? "a" : "no", " flow map, its input ",
        in.target_timestep_B.defined() ? "has" : "lacks", " the timestep that a step leads to");
  auto image = embedded(time_in_, in.timestep_B);
  auto clean = embedded(time_in_, at::zeros_like(in.timestep_B));
  if (target_in_) {
    const auto target = embedded(*target_in_, in.target_timestep_B);
    image = image + target;
    clean = clean + target;
  }
  image = at::silu(image);
  clean = at::silu(clean);
  std::vector<Tensor> vectors;
  for (const auto& layers : {std::cref(early_), std::cref(single_)})
    for (const auto mode : kFlux3Modes)
      vectors.push_back(layers.get()[std::size_t(mode)](mode == Flux3Mode::kImage ? image : clean));
  vectors.push_back(last_(image));
  return at::cat(vectors, -1);
}

Flux3Output::Flux3Output(const Weights& w, const Flux3Config& c)
    : out_(dense(w / "final_layer" / "image" / "linear", c.hidden(), c.token_width)),
      norm_eps_(c.norm_eps) {}

Tensor Flux3Output::operator()(const Tensor& image_BLC, const Modulation& m) const {
  return out_(modulated_norm(image_BLC, m, norm_eps_));
}

}  // namespace braid

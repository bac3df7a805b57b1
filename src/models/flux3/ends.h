// The layers before and after the blocks of a FLUX.3 transformer, and the state between blocks.
//
// Shape letters: B batch, S steps, C hidden width, V vectors, M modulations.
#pragma once

#include <array>

#include "models/flux3/blocks.h"
#include "nn/embedder.h"
#include "nn/predict.h"

namespace braid {

// The modes, in the order of their tokens. Each has blocks of its own, then all meet.
enum class Flux3Mode { kText, kImage, kReferences };
inline constexpr std::array kFlux3Modes = {Flux3Mode::kText, Flux3Mode::kImage,
                                           Flux3Mode::kReferences};

// What a step becomes: shift, scale and gate of each mode, in its own blocks and in those of all,
// then the shift and scale of the last norm.
constexpr std::int64_t kFlux3Vectors = 2 * 3 * 3 + 2;

// The tokens of each mode [B L C]; references may have none.
class Flux3Tokens {
 public:
  // How many tokens the modes have in `in`.
  static std::array<std::int64_t, 3> counts(const DenoiserInput& in);

  explicit Flux3Tokens(std::array<Tensor, 3> runs) : runs_(std::move(runs)) {}
  // Takes apart what pack() joined.
  Flux3Tokens(const Tensor& packed_BLC, const std::array<std::int64_t, 3>& counts);
  Tensor pack() const;

  Tensor& of(Flux3Mode mode) { return runs_[std::size_t(mode)]; }
  const Tensor& of(Flux3Mode mode) const { return runs_[std::size_t(mode)]; }
  bool has(Flux3Mode mode) const { return of(mode).size(1) > 0; }

 private:
  std::array<Tensor, 3> runs_;
};

// A step's vectors [B V C].
class Flux3Modulations {
 public:
  explicit Flux3Modulations(Tensor vectors_BVC) : vectors_BVC_(std::move(vectors_BVC)) {}
  Modulation early(Flux3Mode mode) const { return from(3 * int(mode)); }
  Modulation single(Flux3Mode mode) const { return from(9 + 3 * int(mode)); }
  Modulation last() const;  // has no gate

 private:
  Modulation from(std::int64_t first) const;

  Tensor vectors_BVC_;
};

class Flux3Inputs {
 public:
  Flux3Inputs(const Weights& w, const Flux3Config& config);
  Flux3Tokens tokens(const DenoiserInput& in) const;
  // The vectors [S M] of steps. The image is at its timestep, all else at 0; with a flow map, both
  // go to the target's.
  Tensor condition(const DenoiserInput& in) const;

 private:
  Tensor embedded(const Embedder& embedder, const Tensor& t_B) const;

  Linear text_in_, image_in_, references_in_;
  Embedder time_in_;
  std::optional<Embedder> target_in_;
  std::vector<Linear> early_, single_;  // by mode
  Linear last_;
  std::int64_t sinusoid_;
  at::ScalarType dtype_;
};

class Flux3Output {
 public:
  Flux3Output(const Weights& w, const Flux3Config& config);
  // -> velocity [B L C] of the image's tokens
  Tensor operator()(const Tensor& image_BLC, const Modulation& m) const;

 private:
  Linear out_;
  double norm_eps_;
};

}  // namespace braid

// The blocks of a Krea 2 transformer: a gated attention and an MLP, each after a norm whose weights
// are stored minus one.
//
// Shape letters: B batch, L tokens, C hidden width, D head width, V vectors.
#pragma once

#include "models/krea2/config.h"
#include "nn/attention.h"
#include "nn/linear.h"

namespace braid {

// The norm's weights stay float32, whatever the other weights are.
Tensor load_krea2_norm(const Weights& w, std::int64_t width);

// Groups of queries share keys and values; a gate of the same input weighs what they attended.
class Krea2Attention {
 public:
  Krea2Attention(const Weights& w, const Krea2Widths& widths, double norm_eps);
  // What the layer out() projects. Without `rope`, positions do not matter.
  Tensor attended(const Tensor& x_BLC, const Rope* rope, const Attend& attend) const;
  const Linear& out() const { return out_; }

 private:
  Tensor normed(const Tensor& x_BLHD, const Tensor& weight_D, const Rope* rope) const;

  Linear qg_, kv_;
  Tensor q_norm_D_, k_norm_D_;
  Linear out_;
  std::int64_t head_width_;
  double norm_eps_;
};

class Krea2Mlp {
 public:
  Krea2Mlp(const Weights& w, const Krea2Widths& widths);
  // What the layer out() projects.
  Tensor activated(const Tensor& x_BLC) const;
  const Linear& out() const { return out_; }

 private:
  Linear gate_up_, out_;
};

// A block of the text alone. It knows neither timestep nor positions.
class Krea2TextBlock {
 public:
  Krea2TextBlock(const Weights& w, const Krea2Config& config);
  Tensor operator()(const Tensor& x_BLC, const Attend& attend) const;

 private:
  Tensor norm1_C_;
  Krea2Attention attention_;
  Tensor norm2_C_;
  Krea2Mlp mlp_;
  double norm_eps_;
};

// All blocks share six modulation vectors; each adds its own table to them.
class Krea2Block {
 public:
  Krea2Block(const Weights& w, const Krea2Config& config);
  Tensor operator()(const Tensor& x_BLC, const Tensor& vectors_BVC, const Rope& rope,
                    const Attend& attend) const;

 private:
  Tensor table_VC_, norm1_C_;
  Krea2Attention attention_;
  Tensor norm2_C_;
  Krea2Mlp mlp_;
  double norm_eps_;
};

}  // namespace braid

// A pre-norm encoder layer: attention, then an MLP, each after a norm and added to its input.
#pragma once

#include <vector>

#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "weights/names.h"

namespace braid {

enum class Activation { kQuickGelu, kGelu, kGeluTanh };  // the first is x * sigmoid(1.702 x)

struct EncoderLayerShape {
  std::int64_t hidden, mlp_hidden, num_heads;
  double eps;
  Activation activation = Activation::kGeluTanh;
};

class EncoderLayer {
 public:
  EncoderLayer(const Weights& w, const EncoderLayerShape& shape);
  Tensor operator()(const Tensor& x_BLC, const Attend& attend) const;

 private:
  Tensor attended(const Tensor& x_BLC, const Attend& attend) const;
  Tensor activated(const Tensor& x_BLC) const;

  LayerNorm norm1_, norm2_;
  Linear qkv_, proj_, mlp_in_, mlp_out_;
  std::int64_t head_width_;
  Activation activation_;
};

// The spellings transformers uses for the layers of `encoder.layers`.
const std::vector<KeyRule>& encoder_layer_spellings();

}  // namespace braid

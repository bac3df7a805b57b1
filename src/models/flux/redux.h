// Turns pictures into text tokens for FLUX.1 (diffusers' ReduxImageEncoder): two dense layers after
// a vision encoder.
#pragma once

#include "base/json.h"
#include "nn/linear.h"

namespace braid {

struct ReduxConfig {
  std::int64_t vision_width = 1152, text_width = 4096;
};

// Reads image_embedder/config.json. Throws InputError naming the field.
ReduxConfig read_redux_config(const JsonObject& json);

class Redux {
 public:
  Redux(const ReduxConfig& config, const Weights& w);
  Tensor operator()(const Tensor& x_BLC) const;  // -> [B L text_width]

 private:
  Linear up_, down_;
};

}  // namespace braid

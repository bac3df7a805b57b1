#include "models/flux/redux.h"

#include <ATen/ATen.h>

namespace braid {

ReduxConfig read_redux_config(const JsonObject& json) {
  ReduxConfig c;
  c.vision_width = json.integer_or("redux_dim", c.vision_width, 1, 1 << 20);
  c.text_width = json.integer_or("txt_in_features", c.text_width, 1, 1 << 20);
  return c;
}

Redux::Redux(const ReduxConfig& c, const Weights& w)
    : up_(w / "redux_up", {.in = c.vision_width, .out = 3 * c.text_width}),
      down_(w / "redux_down", {.in = 3 * c.text_width, .out = c.text_width}) {
  w.finish();
}

Tensor Redux::operator()(const Tensor& x_BLC) const { return down_(at::silu(up_(x_BLC))); }

}  // namespace braid

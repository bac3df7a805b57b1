#include "models/qwen25_vl/vision.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "nn/attention.h"

namespace braid {
namespace {

constexpr double kTowerEps = 1e-6;

// `of_token` vectors follow each other, as many for each token.
Tensor reordered(const Tensor& x, const Tensor& order, std::int64_t of_token) {
  return x.unflatten(0, {-1, of_token}).index_select(0, order).flatten(0, 1);
}

}  // namespace

VisionWindows windows_of(std::int64_t rows, std::int64_t columns, std::int64_t side) {
  std::map<std::int64_t, std::vector<std::int64_t>, std::greater<>> by_size;
  for (std::int64_t top = 0; top < rows; top += side)
    for (std::int64_t left = 0; left < columns; left += side) {
      const auto bottom = std::min(top + side, rows), right = std::min(left + side, columns);
      auto& tokens = by_size[(bottom - top) * (right - left)];
      for (auto y = top; y < bottom; ++y)
        for (auto x = left; x < right; ++x) tokens.push_back(y * columns + x);
    }
  VisionWindows windows;
  for (const auto& [size, tokens] : by_size) {
    windows.order.insert(windows.order.end(), tokens.begin(), tokens.end());
    windows.runs.push_back({.count = std::int64_t(tokens.size()) / size, .tokens = size});
  }
  return windows;
}

WindowVisionBlock::WindowVisionBlock(const Weights& w, const WindowVisionConfig& c)
    : norm1_(w / "norm1", c.hidden, kTowerEps),
      norm2_(w / "norm2", c.hidden, kTowerEps),
      qkv_(w / "attn" / "qkv", {.in = c.hidden, .out = 3 * c.hidden}),
      proj_(w / "attn" / "proj", {.in = c.hidden, .out = c.hidden}),
      gate_(w / "mlp" / "gate_proj", {.in = c.hidden, .out = c.mlp_hidden}),
      up_(w / "mlp" / "up_proj", {.in = c.hidden, .out = c.mlp_hidden}),
      down_(w / "mlp" / "down_proj", {.in = c.mlp_hidden, .out = c.hidden}),
      head_width_(c.head_width()),
      patches_per_token_(c.merge * c.merge) {}

Tensor WindowVisionBlock::attend(const Tensor& x_1NC, const std::vector<VisionWindows::Run>& runs,
                                 const HalfSplitRope& rope) const {
  const auto parts = qkv_(x_1NC).chunk(3, -1);
  const auto rotated = [&](const Tensor& part) {
    return ops::rotate_halves(split_heads(part, head_width_), rope);
  };
  const auto q = rotated(parts[0]), k = rotated(parts[1]), v = split_heads(parts[2], head_width_);
  std::vector<Tensor> attended;
  std::int64_t begin = 0;
  for (const auto& run : runs) {
    const auto size = run.tokens * patches_per_token_, all = run.count * size;
    const auto windows = [&](const Tensor& x_1NHD) {
      return x_1NHD[0].narrow(0, begin, all).unflatten(0, {run.count, size});
    };
    attended.push_back(
        attend_tokens(ops::attention, windows(q), windows(k), windows(v)).flatten(0, 1));
    begin += all;
  }
  return at::cat(attended).unsqueeze(0);
}

Tensor WindowVisionBlock::operator()(const Tensor& x_1NC,
                                     const std::vector<VisionWindows::Run>& runs,
                                     const HalfSplitRope& rope) const {
  const auto h = x_1NC + proj_(attend(norm1_(x_1NC), runs, rope));
  const auto normed = norm2_(h);
  return h + down_(ops::swiglu(gate_(normed), up_(normed)));
}

WindowVisionTower::WindowVisionTower(const Weights& w, const WindowVisionConfig& c)
    : config_(c),
      patch_weight_(
          (w / "patch_embed" / "proj").tensor("weight", {c.hidden, 3, c.frames, c.patch, c.patch})),
      blocks_(w / "blocks", c.depth, c),
      norm_(w / "merger" / "ln_q", c.hidden, kTowerEps),
      merge_in_(w / "merger" / "mlp" / "0",
                {.in = c.merge * c.merge * c.hidden, .out = c.merge * c.merge * c.hidden}),
      merge_out_(w / "merger" / "mlp" / "2", {.in = c.merge * c.merge * c.hidden, .out = c.out}) {}

Tensor WindowVisionTower::merged(const Tensor& x_1NC) const {
  const auto tokens = norm_(x_1NC).reshape({-1, config_.merge * config_.merge * config_.hidden});
  return merge_out_(at::gelu(merge_in_(tokens)));
}

Tensor WindowVisionTower::operator()(const Tensor& picture_3HW) const {
  const auto& c = config_;
  const VisionGrid grid{.rows = picture_3HW.size(1) / c.patch,
                        .columns = picture_3HW.size(2) / c.patch};
  const auto windows =
      windows_of(grid.rows / c.merge, grid.columns / c.merge, c.tokens_per_window());
  const auto device = picture_3HW.device();
  const auto order = at::tensor(windows.order, at::kLong).to(device);
  const auto of_token = c.merge * c.merge;
  auto rope = vision_rope(grid, c.rope(), device);
  rope = {.cos = reordered(rope.cos, order, of_token), .sin = reordered(rope.sin, order, of_token)};
  const auto patches = flat_patches(picture_3HW, c.form()).to(patch_weight_.scalar_type());
  auto x = at::linear(reordered(patches, order, of_token), patch_weight_.flatten(1)).unsqueeze(0);
  const std::vector<VisionWindows::Run> whole = {{.count = 1, .tokens = order.size(0)}};
  blocks_.for_each([&](std::int64_t i, const WindowVisionBlock& block) {
    const bool is_whole = std::find(c.whole.begin(), c.whole.end(), i) != c.whole.end();
    x = block(x, is_whole ? whole : windows.runs, rope);
  });
  const auto tokens = merged(x);
  return at::empty_like(tokens).index_copy_(0, order, tokens);
}

}  // namespace braid

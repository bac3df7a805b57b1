#include "models/qwen3_vl/vision.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "nn/attention.h"

namespace braid {
namespace {

constexpr double kVisionEps = 1e-6, kVisionTheta = 10000;

struct Grid {
  std::int64_t rows, columns;  // patches
};

// [rows columns ...] in the order of the patches: [N ...].
Tensor in_patch_order(const Tensor& grid, std::int64_t merge) {
  return grid.unflatten(1, {-1, merge}).unflatten(0, {-1, merge}).transpose(1, 2).flatten(0, 3);
}

// Each of `count` places has two stored positions around it and a nearness to the second.
struct Taps {
  Tensor first, second, nearness;
};

Taps taps_of(std::int64_t count, std::int64_t stored) {
  const auto at = at::arange(count, at::kFloat) * double(stored - 1) /
                  double(std::max<std::int64_t>(count - 1, 1));
  const auto first = at.floor();
  return {.first = first.to(at::kLong),
          .second = (first.to(at::kLong) + 1).clamp_max(stored - 1),
          .nearness = at - first};
}

// Stored positions [P C] of a square grid, resampled to another grid: [N C] in float32.
Tensor resampled(const Tensor& stored_PC, std::int64_t side, Grid grid, std::int64_t merge) {
  const auto rows = taps_of(grid.rows, side), columns = taps_of(grid.columns, side);
  Tensor sum;
  const auto add = [&](const Tensor& row, const Tensor& row_weight, const Tensor& column,
                       const Tensor& column_weight) {
    const auto index = row.unsqueeze(1) * side + column.unsqueeze(0);
    const auto weight = row_weight.unsqueeze(1) * column_weight.unsqueeze(0);
    const auto ordered = in_patch_order(index, merge).to(stored_PC.device());
    const auto part = stored_PC.index_select(0, ordered) *
                      in_patch_order(weight, merge).unsqueeze(1).to(stored_PC.device());
    sum = sum.defined() ? sum + part : part;
  };
  const auto far_row = 1 - rows.nearness, far_column = 1 - columns.nearness;
  add(rows.first, far_row, columns.first, far_column);
  add(rows.first, far_row, columns.second, columns.nearness);
  add(rows.second, rows.nearness, columns.first, far_column);
  add(rows.second, rows.nearness, columns.second, columns.nearness);
  return sum;
}

// Half of a head's angles encode the row, half the column.
HalfSplitRope vision_rope(Grid grid, const VisionConfig& c, at::Device device) {
  const auto width = c.head_width() / 2;
  const auto frequencies =
      1.0 / at::pow(kVisionTheta, at::arange(0, width, 2, at::kFloat) / double(width));
  const auto angles = [&](std::int64_t count) {
    return at::outer(at::arange(count, at::kFloat), frequencies);
  };
  const auto rows = angles(grid.rows).unsqueeze(1), columns = angles(grid.columns).unsqueeze(0);
  const auto both =
      at::cat({rows.expand({-1, grid.columns, -1}), columns.expand({grid.rows, -1, -1})}, -1);
  const auto angle = in_patch_order(both, c.merge);
  return {.cos = angle.cos().to(device), .sin = angle.sin().to(device)};
}

}  // namespace

VisionBlock::VisionBlock(const Weights& w, const VisionConfig& c)
    : norm1_(w / "norm1", c.hidden, kVisionEps),
      norm2_(w / "norm2", c.hidden, kVisionEps),
      qkv_(w / "attn" / "qkv", {.in = c.hidden, .out = 3 * c.hidden}),
      proj_(w / "attn" / "proj", {.in = c.hidden, .out = c.hidden}),
      mlp_in_(w / "mlp" / "linear_fc1", {.in = c.hidden, .out = c.mlp_hidden}),
      mlp_out_(w / "mlp" / "linear_fc2", {.in = c.mlp_hidden, .out = c.hidden}),
      head_width_(c.head_width()) {}

Tensor VisionBlock::attend(const Tensor& x_1NC, const HalfSplitRope& rope) const {
  const auto parts = qkv_(x_1NC).chunk(3, -1);
  const auto rotated = [&](const Tensor& part) {
    return ops::rotate_halves(split_heads(part, head_width_), rope);
  };
  return attend_tokens(ops::attention, rotated(parts[0]), rotated(parts[1]),
                       split_heads(parts[2], head_width_));
}

Tensor VisionBlock::operator()(const Tensor& x_1NC, const HalfSplitRope& rope) const {
  const auto h = x_1NC + proj_(attend(norm1_(x_1NC), rope));
  return h + mlp_out_(mlp_in_.gelu(norm2_(h)));
}

PatchMerger::PatchMerger(const Weights& w, const VisionConfig& c, Norm norm)
    : merged_(c.hidden * c.merge * c.merge),
      norm_(w / "norm", norm == Norm::kOfTokens ? merged_ : c.hidden, kVisionEps),
      in_(w / "linear_fc1", {.in = merged_, .out = merged_}),
      out_(w / "linear_fc2", {.in = merged_, .out = c.out}),
      kind_(norm) {}

Tensor PatchMerger::operator()(const Tensor& x_1NC) const {
  const auto joined = [&](const Tensor& x) { return x.reshape({-1, merged_}); };
  const auto normed = kind_ == Norm::kOfTokens ? norm_(joined(x_1NC)) : joined(norm_(x_1NC));
  return out_(at::gelu(in_(normed)));
}

VisionTower::VisionTower(const Weights& w, const VisionConfig& c)
    : config_(c),
      patch_weight_(
          (w / "patch_embed" / "proj").tensor("weight", {c.hidden, 3, c.frames, c.patch, c.patch})),
      patch_bias_((w / "patch_embed" / "proj").tensor("bias", {c.hidden})),
      positions_PC_((w / "pos_embed").tensor("weight", {c.grid * c.grid, c.hidden})),
      blocks_(w / "blocks", c.depth, c),
      merger_(w / "merger", c, PatchMerger::Norm::kOfPatches) {
  for (std::size_t i = 0; i < c.deepstack.size(); ++i)
    deepstack_mergers_.emplace_back(w / "deepstack_merger_list" / std::int64_t(i), c,
                                    PatchMerger::Norm::kOfTokens);
}

// [1 N C]: each patch flattened over channels, frames, rows and columns.
Tensor VisionTower::embedded(const Tensor& picture_3HW) const {
  const auto p = config_.patch;
  const auto grid_3RSpp = picture_3HW.unflatten(2, {-1, p}).unflatten(1, {-1, p}).transpose(2, 3);
  const auto patches = in_patch_order(grid_3RSpp.permute({1, 2, 0, 3, 4}), config_.merge);
  const auto frames = patches.unsqueeze(2).expand({-1, -1, config_.frames, -1, -1}).flatten(1);
  return at::linear(frames.to(patch_weight_.scalar_type()), patch_weight_.flatten(1), patch_bias_)
      .unsqueeze(0);
}

Seen VisionTower::operator()(const Tensor& picture_3HW) const {
  const Grid grid{.rows = picture_3HW.size(1) / config_.patch,
                  .columns = picture_3HW.size(2) / config_.patch};
  const auto rope = vision_rope(grid, config_, picture_3HW.device());
  auto x = embedded(picture_3HW);
  x = x + resampled(positions_PC_, config_.grid, grid, config_.merge).to(x.scalar_type());
  Seen seen{.tokens_MC = {}, .added_MC = std::vector<Tensor>(config_.deepstack.size())};
  blocks_.for_each([&](std::int64_t i, const VisionBlock& block) {
    x = block(x, rope);
    for (std::size_t k = 0; k < config_.deepstack.size(); ++k)
      if (config_.deepstack[k] == i) seen.added_MC[k] = deepstack_mergers_[k](x);
  });
  seen.tokens_MC = merger_(x);
  return seen;
}

}  // namespace braid

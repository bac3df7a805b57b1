#include "models/qwen3_vl/vision.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "models/qwen3_vl/patches.h"
#include "nn/attention.h"

namespace braid {
namespace {

constexpr double kVisionEps = 1e-6;

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
Tensor resampled(const Tensor& stored_PC, std::int64_t side, VisionGrid grid, std::int64_t merge) {
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

Tensor VisionTower::embedded(const Tensor& picture_3HW) const {
  const auto patches = flat_patches(picture_3HW, config_.form()).to(patch_weight_.scalar_type());
  return at::linear(patches, patch_weight_.flatten(1), patch_bias_).unsqueeze(0);
}

VisionTokens VisionTower::operator()(const Tensor& picture_3HW) const {
  const VisionGrid grid{.rows = picture_3HW.size(1) / config_.patch,
                        .columns = picture_3HW.size(2) / config_.patch};
  const auto rope = vision_rope(grid, config_.rope(), picture_3HW.device());
  auto x = embedded(picture_3HW);
  x = x + resampled(positions_PC_, config_.grid, grid, config_.merge).to(x.scalar_type());
  VisionTokens tokens{.tokens_MC = {}, .added_MC = std::vector<Tensor>(config_.deepstack.size())};
  blocks_.for_each([&](std::int64_t i, const VisionBlock& block) {
    x = block(x, rope);
    for (std::size_t k = 0; k < config_.deepstack.size(); ++k)
      if (config_.deepstack[k] == i) tokens.added_MC[k] = deepstack_mergers_[k](x);
  });
  tokens.tokens_MC = merger_(x);
  return tokens;
}

}  // namespace braid

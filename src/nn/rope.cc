#include "nn/rope.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace braid {

void check_rope_widths(const std::vector<std::int64_t>& widths, std::size_t num_axes,
                       std::int64_t head_width, const char* key, const std::string& source) {
  require(widths.size() == num_axes, source, ": '", key, "' should have ", num_axes,
          " axes, it has ", widths.size());
  const auto sum = std::accumulate(widths.begin(), widths.end(), std::int64_t(0));
  require(sum == head_width, source, ": '", key, "' should sum to the width of a head, ",
          head_width, ", it sums to ", sum);
  for (const auto width : widths)
    require(width % 2 == 0, source, ": '", key, "' should hold even numbers, one is ", width);
}

Rope rope_table(const Tensor& ids_LA, const RopeAxes& axes) {
  const auto options = ids_LA.options().dtype(axes.products);
  std::vector<Tensor> angles;
  for (std::size_t a = 0; a < axes.widths.size(); ++a) {
    const auto exponents = at::arange(0, axes.widths[a], 2, options) / double(axes.widths[a]);
    const auto frequencies = 1.0 / at::pow(axes.theta, exponents);
    angles.push_back(at::outer(ids_LA.select(1, std::int64_t(a)).to(axes.products), frequencies));
  }
  const auto angle = at::cat(angles, 1).to(axes.angles).repeat_interleave(2, 1);
  return {.cos = angle.cos().to(at::kFloat), .sin = angle.sin().to(at::kFloat)};
}

void make_ropes(DenoiserInput& in, const RopeAxes& axes) {
  std::vector<Tokens*> runs = {&in.noise, &in.text};
  for (auto& reference : in.references) runs.push_back(&reference);
  std::erase_if(runs, [](const Tokens* run) { return !run->ids_LA.defined(); });
  std::vector<Tensor> ids;
  for (const auto* const run : runs) ids.push_back(run->ids_LA);
  const auto all = rope_table(at::cat(ids), axes);
  std::int64_t begin = 0;
  for (auto* const run : runs) {
    const auto count = run->ids_LA.size(0);
    run->rope = {.cos = all.cos.narrow(0, begin, count), .sin = all.sin.narrow(0, begin, count)};
    begin += count;
  }
}

Rope rope_of(const std::vector<const Tokens*>& runs, const RopeAxes& axes) {
  const auto joined = [&](const auto& member) {
    std::vector<Tensor> parts;
    for (const auto* const run : runs) parts.push_back(member(*run));
    return at::cat(parts);
  };
  const bool are_made = std::all_of(runs.begin(), runs.end(),
                                    [](const auto* run) { return run->rope.cos.defined(); });
  if (!are_made) return rope_table(joined([](const Tokens& run) { return run.ids_LA; }), axes);
  return {.cos = joined([](const Tokens& run) { return run.rope.cos; }),
          .sin = joined([](const Tokens& run) { return run.rope.sin; })};
}

std::vector<const Tokens*> text_and_images(const DenoiserInput& in) {
  std::vector<const Tokens*> runs = {&in.text, &in.noise};
  for (const auto& reference : in.references) runs.push_back(&reference);
  return runs;
}

std::vector<const Tokens*> images_and_text(const DenoiserInput& in) {
  std::vector<const Tokens*> runs = {&in.noise};
  for (const auto& reference : in.references) runs.push_back(&reference);
  runs.push_back(&in.text);
  return runs;
}

std::vector<const Tokens*> prefix_and_image(const DenoiserInput& in) {
  std::vector<const Tokens*> runs = {&in.text};
  for (const auto& reference : in.references) runs.push_back(&reference);
  runs.push_back(&in.noise);
  return runs;
}

HalfSplitRope half_split_rope(const Tensor& positions_L, std::int64_t head_width, double theta,
                              const at::TensorOptions& made) {
  const auto exponents = at::arange(0, head_width, 2, at::kFloat) / double(head_width);
  const auto frequencies = 1.0 / at::pow(theta, exponents);
  const auto angle = at::outer(positions_L.to(at::kCPU, at::kFloat), frequencies);
  return {.cos = angle.cos().to(made), .sin = angle.sin().to(made)};
}

}  // namespace braid

// Turns tensors into calls of kernels: memory layouts and thread counts.
#include "ops/gpu/gpu.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "base/error.h"
#include "ops/gpu/launch_shape.h"
#include "weights/codes/float8.h"

namespace braid::ops::gpu {
namespace {

constexpr float kNormEps = 1e-6f;

Shape shape_of(const Tensor& x) {
  return {.rows = x.size(-1) == 0 ? 0 : x.numel() / x.size(-1), .width = x.size(-1)};
}

// A tensor of any dims as [1 rows C].
Tensor as_rows(const Tensor& x) { return x.contiguous().view({1, -1, x.size(-1)}); }

JoinedGelu joined_of(const Tensor& left_BLC, const Tensor& right_BLC, const Rows& y) {
  return {.left = rows_of(left_BLC),
          .right = rows_of(right_BLC),
          .y = y,
          .tokens = right_BLC.size(1),
          .left_width = left_BLC.size(2),
          .right_width = right_BLC.size(2)};
}

std::vector<std::int64_t> joined_shape(const Tensor& left_BLC, const Tensor& right_BLC) {
  return {right_BLC.size(0), right_BLC.size(1), left_BLC.size(2) + right_BLC.size(2)};
}

// [left | gelu(right)]; either may have width 0
Tensor join(const Tensor& left_BLC, const Tensor& right_BLC) {
  const auto y = at::empty(joined_shape(left_BLC, right_BLC), right_BLC.options());
  if (y.numel() == 0) return y;
  const auto number = number_of(y);
  const int vector = vector_for(number, kNarrowVector<JoinedGelu>, {left_BLC, right_BLC, y});
  const c10::DeviceGuard on(y.device());
  launch(joined_of(left_BLC, right_BLC, rows_of(y)),
         launch_over_vectors(number, vector, shape_of(y), y.device()));
  return y;
}

// Room for the codes of rows of numbers like `x`.
LayerInput room_for_codes(at::IntArrayRef shape, const Tensor& x) {
  const auto rows = c10::multiply_integers(shape) / std::max<std::int64_t>(1, shape.back());
  return {at::empty(shape, x.options().dtype(type_of_codes(Quantize::kFloat8))),
          at::empty({rows, 1}, x.options().dtype(at::kFloat))};
}
RowCodes codes_of(const LayerInput& room) {
  return {.codes = room.x.mutable_data_ptr(), .scales = room.scales_M1.mutable_data_ptr<float>()};
}

LayerInput join_codes(const Tensor& left_BLC, const Tensor& right_BLC) {
  const auto room = room_for_codes(joined_shape(left_BLC, right_BLC), right_BLC);
  if (room.x.numel() == 0) return room;
  const auto number = number_of(right_BLC);
  const int vector =
      vector_for(number, kNarrowVector<JoinedGeluCodes>, {left_BLC, right_BLC, room.x});
  const c10::DeviceGuard on(right_BLC.device());
  launch(JoinedGeluCodes{.joined = joined_of(left_BLC, right_BLC, {}), .coded = codes_of(room)},
         launch_over_rows(number, vector, shape_of(room.x), right_BLC.device()));
  return room;
}

ModulatedNorm norm_of(const Tensor& x_BLC, const Modulation& m, const LayerInput& y) {
  return {.x = rows_of(x_BLC),
          .scale = rows_of(m.scale),
          .shift = rows_of(m.shift),
          .y = y.is_quantized() ? Rows{} : rows_of(y.x),
          .coded = y.is_quantized() ? codes_of(y) : RowCodes{},
          .tokens = x_BLC.size(1),
          .width = x_BLC.size(2),
          .eps = kNormEps};
}

// Writes `y`, numbers or codes.
void norm_into(const Tensor& x_BLC, const Modulation& m, const LayerInput& y) {
  if (x_BLC.numel() == 0) return;
  const auto number = number_of(x_BLC);
  const int vector =
      vector_for(number, kNarrowVector<ModulatedNorm>, {x_BLC, m.scale, m.shift, y.x});
  const c10::DeviceGuard on(x_BLC.device());
  launch(norm_of(x_BLC, m, y), launch_over_rows(number, vector, shape_of(y.x), x_BLC.device()));
}

GatedResidual gated_of(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC,
                       const Tensor& sum_BLC) {
  return {.residual = rows_of(residual_BLC),
          .gate = rows_of(gate_B1C),
          .y = rows_of(y_BLC),
          .sum = rows_of(sum_BLC),
          .tokens = sum_BLC.size(1),
          .width = sum_BLC.size(2)};
}

struct GatedTensors {
  Tensor residual_BLC, gate_B1C, y_BLC;
};

// Some heads, where the result goes, and the rows of the rotary tables that are theirs.
struct HeadsInto {
  NormedHeads from;
  Tensor y_BLHD;
  Rope rope;
};

HeadsPart part_of(const HeadsInto& into) {
  const auto& x = into.from.x_BLHD;
  return {.x = rows_of(x),
          .y = rows_of(into.y_BLHD),
          .x_head = x.stride(2),
          .y_head = x.size(3),
          .weight = into.from.weight_D.const_data_ptr(),
          .cos = into.rope.cos.const_data_ptr<float>(),
          .sin = into.rope.sin.const_data_ptr<float>(),
          .tokens = x.size(1),
          .heads = x.size(2),
          .count = x.size(0) * x.size(1) * x.size(2),
          .first_block = 0};
}

// One kernel for at most kMostParts parts with dense weights, none of them empty.
void norm_rotate(std::span<const HeadsInto> parts, double eps) {
  const auto& first = parts.front().from.x_BLHD;
  const auto number = number_of(first);
  const auto width = first.size(3);
  constexpr int kNarrow = kNarrowVector<NormRotate>;
  int vector = width > kLanes * full_vector(number) ? kNarrow : full_vector(number);
  for (const auto& [from, y, rope] : parts)
    vector = std::min(
        vector, vector_for(number, kNarrow, {from.x_BLHD, from.weight_D, rope.cos, rope.sin}));
  NormRotate work{.parts = {},
                  .num_parts = std::int64_t(parts.size()),
                  .num_blocks = 0,
                  .width = width,
                  .lanes = lanes_for(width, vector),
                  .eps = float(eps)};
  for (std::size_t p = 0; p < parts.size(); ++p) {
    work.parts[p] = part_of(parts[p]);
    work.parts[p].first_block = work.num_blocks;
    work.num_blocks += blocks_of_heads(work.parts[p].count, work.lanes);
  }
  launch(work, launch_over_heads(number, vector, work, first.device()));
}

void norm_rotate_all(std::span<const HeadsInto> parts, double eps) {
  constexpr auto kMost = std::size_t(NormRotate::kMostParts);
  for (std::size_t begin = 0; begin < parts.size(); begin += kMost)
    norm_rotate(parts.subspan(begin, std::min(kMost, parts.size() - begin)), eps);
}

// A tensor for the parts' results; `places` gets them with their places in it.
Tensor add_places(std::span<const NormedHeads> parts, const Rope& dense,
                  std::vector<HeadsInto>& places) {
  const auto& first = parts.front().x_BLHD;
  std::int64_t tokens = 0, done = 0;
  for (const auto& part : parts) tokens += part.x_BLHD.size(1);
  const auto y = at::empty({first.size(0), tokens, first.size(2), first.size(3)}, first.options());
  for (const auto& part : parts) {
    const auto count = part.x_BLHD.size(1);
    if (part.x_BLHD.numel() > 0)
      places.push_back({.from = {part.x_BLHD, part.weight_D.contiguous()},
                        .y_BLHD = y.narrow(1, done, count),
                        .rope = {.cos = dense.cos.narrow(0, done, count),
                                 .sin = dense.sin.narrow(0, done, count)}});
    done += count;
  }
  return y;
}

}  // namespace

bool supports(const Tensor& x) {
  const auto dtype = x.scalar_type();
  return x.is_cuda() && (dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf) &&
         x.dim() >= 2 && (x.stride(-1) == 1 || x.size(-1) == 1);
}

bool keeps_rows(std::int64_t width) { return width <= kWidestRow; }
bool keeps_rows(const Tensor& x) { return keeps_rows(x.size(-1)); }

bool supports(const NormedHeads& part) {
  const auto& x = part.x_BLHD;
  return supports(x) && x.size(3) % 2 == 0 && x.size(3) <= kWidestHead &&
         part.weight_D.scalar_type() == x.scalar_type() && part.weight_D.device() == x.device();
}

Tensor gelu(const Tensor& x) {
  const auto rows = as_rows(x);
  return join(rows.narrow(2, 0, 0), rows).view(x.sizes());
}

LayerInput gelu_codes(const Tensor& x) {
  const auto rows = as_rows(x);
  const auto made = join_codes(rows.narrow(2, 0, 0), rows);
  return {made.x.view(x.sizes()), made.scales_M1};
}

Tensor joined_gelu(const Tensor& x_BLC, const Tensor& y_BLC) { return join(x_BLC, y_BLC); }
LayerInput joined_gelu_codes(const Tensor& x_BLC, const Tensor& y_BLC) {
  return join_codes(x_BLC, y_BLC);
}

Tensor modulated_norm(const Tensor& x_BLC, const Modulation& m) {
  const auto y = at::empty(x_BLC.sizes(), x_BLC.options());
  norm_into(x_BLC, m, y);
  return y;
}

LayerInput modulated_norm_codes(const Tensor& x_BLC, const Modulation& m) {
  const auto room = room_for_codes(x_BLC.sizes(), x_BLC);
  norm_into(x_BLC, m, room);
  return room;
}

Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC) {
  const auto sum = at::empty(y_BLC.sizes(), y_BLC.options());
  if (sum.numel() == 0) return sum;
  const auto number = number_of(sum);
  const int vector =
      vector_for(number, kNarrowVector<GatedResidual>, {residual_BLC, gate_B1C, y_BLC, sum});
  const c10::DeviceGuard on(sum.device());
  launch(gated_of(residual_BLC, gate_B1C, y_BLC, sum),
         launch_over_vectors(number, vector, shape_of(sum), sum.device()));
  return sum;
}

namespace {

// The norm goes into `normed`, numbers or codes; returns the sum.
Tensor gated_norm_into(const GatedTensors& gated, const Modulation& m, const LayerInput& normed) {
  const auto& [residual, gate, y] = gated;
  const auto sum = at::empty(y.sizes(), y.options());
  if (sum.numel() == 0) return sum;
  const auto number = number_of(sum);
  const int vector = vector_for(number, kNarrowVector<GatedResidualNorm>,
                                {residual, gate, y, sum, m.scale, m.shift, normed.x});
  const c10::DeviceGuard on(sum.device());
  launch(
      GatedResidualNorm{.gated = gated_of(residual, gate, y, sum), .norm = norm_of(sum, m, normed)},
      launch_over_rows(number, vector, shape_of(sum), sum.device()));
  return sum;
}

}  // namespace

SumAndInput gated_residual_norm(const Tensor& residual_BLC, const Tensor& gate_B1C,
                                const Tensor& y_BLC, const Modulation& m) {
  const auto normed = at::empty(y_BLC.sizes(), y_BLC.options());
  return {gated_norm_into({residual_BLC, gate_B1C, y_BLC}, m, normed), normed};
}

SumAndInput gated_residual_norm_codes(const Tensor& residual_BLC, const Tensor& gate_B1C,
                                      const Tensor& y_BLC, const Modulation& m) {
  const auto room = room_for_codes(y_BLC.sizes(), y_BLC);
  return {gated_norm_into({residual_BLC, gate_B1C, y_BLC}, m, room), room};
}

bool adds(std::size_t num_parts) { return num_parts <= AddParts::kMostParts; }

void add_parts(std::span<const Tensor> parts, const SumEnd& end, const ElementRun& run,
               const Tensor& out) {
  if (out.numel() == 0) return;
  const auto number = number_of(out);
  const auto bias = end.bias_C ? end.bias_C->contiguous() : Tensor();
  const bool is_gated = end.residual_BLC.defined();
  const int full = full_vector(number);
  const auto moves = [&](const Tensor& x) {
    return !x.defined() || vector_for(number, 1, {x}) == full;
  };
  const bool all_move = run.width % full == 0 && run.begin % full == 0 && moves(out) &&
                        moves(bias) && moves(end.residual_BLC) && moves(end.gate_B1C) &&
                        std::all_of(parts.begin(), parts.end(), moves);
  const int vector = all_move ? full : kNarrowVector<AddParts>;
  check((run.begin + out.numel()) / vector <= UINT32_MAX, "a sum of more numbers than a kernel ",
        "counts");
  AddParts work{.parts = {},
                .num_parts = std::int64_t(parts.size()),
                .bias = bias.defined() ? bias.const_data_ptr() : nullptr,
                .residual = is_gated ? rows_of(end.residual_BLC) : Rows{},
                .gate = is_gated ? rows_of(end.gate_B1C) : Rows{},
                .y = out.mutable_data_ptr(),
                .tokens = run.tokens,
                .width = run.width,
                .begin = run.begin,
                .count = out.numel()};
  for (std::size_t p = 0; p < parts.size(); ++p) work.parts[p] = parts[p].const_data_ptr();
  const c10::DeviceGuard on(out.device());
  launch(work, launch_over_numbers(number, vector, out.numel(), out.device()));
}

Tensor normed_rotated(std::span<const NormedHeads> parts, double eps, const Rope& rope) {
  const Rope dense{.cos = rope.cos.contiguous(), .sin = rope.sin.contiguous()};
  std::vector<HeadsInto> places;
  const auto y = add_places(parts, dense, places);
  const c10::DeviceGuard on(y.device());
  norm_rotate_all(places, eps);
  return y;
}

RotatedHeads normed_rotated(std::span<const NormedHeads> q, std::span<const NormedHeads> k,
                            double eps, const Rope& rope) {
  const Rope dense{.cos = rope.cos.contiguous(), .sin = rope.sin.contiguous()};
  std::vector<HeadsInto> places;
  const RotatedHeads rotated{add_places(q, dense, places), add_places(k, dense, places)};
  const c10::DeviceGuard on(rotated.q_BLHD.device());
  norm_rotate_all(places, eps);
  return rotated;
}

Tensor euler_step(const Tensor& x, const Tensor& v, double dt) {
  const auto from = x.contiguous(), along = v.contiguous();
  const auto y = at::empty_like(from);
  if (y.numel() == 0) return y;
  const auto number = number_of(y);
  const auto flat = [](const Tensor& tensor) { return tensor.view({1, -1}); };
  const int vector =
      vector_for(number, kNarrowVector<EulerStep>, {flat(from), flat(along), flat(y)});
  const c10::DeviceGuard on(y.device());
  launch(EulerStep{.x = from.const_data_ptr(),
                   .v = along.const_data_ptr(),
                   .y = y.mutable_data_ptr(),
                   .count = y.numel(),
                   .dt = float(dt)},
         launch_over_numbers(number, vector, y.numel(), y.device()));
  return y;
}

}  // namespace braid::ops::gpu

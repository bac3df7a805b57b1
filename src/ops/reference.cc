#include <ATen/ATen.h>

#include <cmath>

#include "ops/attention_kernel.h"
#include "ops/reference.h"
namespace braid::ops {

Tensor reference::rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const auto width = x.size(-1);
  if (x.scalar_type() == weight.scalar_type()) return at::rms_norm(x, {width}, weight, eps);
  return at::rms_norm(x, {width}, {}, eps).to(weight.scalar_type()) * weight;
}

Tensor rotate(const Tensor& x_BLHD, const Rope& rope) {
  const auto pairs = x_BLHD.to(at::kFloat).unflatten(-1, {-1, 2});
  const auto turned = at::stack({-pairs.select(-1, 1), pairs.select(-1, 0)}, -1).flatten(-2);
  const auto cos_L1D = rope.cos.unsqueeze(1), sin_L1D = rope.sin.unsqueeze(1);
  return (pairs.flatten(-2) * cos_L1D + turned * sin_L1D).to(x_BLHD.scalar_type());
}

namespace reference {

Tensor gelu(const Tensor& x) { return at::gelu(x, "tanh"); }

Tensor modulated_norm(const Tensor& x_BLC, const Modulation& m) {
  auto normed = at::layer_norm(x_BLC, {x_BLC.size(-1)}, {}, {}, 1e-6);
  return normed.mul_(1 + m.scale).add_(m.shift);
}

Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC) {
  auto sum = (gate_B1C * y_BLC).add_(residual_BLC);
  return sum.scalar_type() == at::kHalf ? sum.clamp_(-65504, 65504) : sum;
}

SumAndInput gated_residual_norm(const Tensor& residual_BLC, const Tensor& gate_B1C,
                                const Tensor& y_BLC, const Modulation& m) {
  const auto sum = reference::gated_residual(residual_BLC, gate_B1C, y_BLC);
  return {sum, reference::modulated_norm(sum, m)};
}

namespace {

// A tensor that is like [B L C], or [.. C], at the run's elements; flat, in `out`'s place and
// dtype.
class AtElements {
 public:
  AtElements(const ElementRun& run, const Tensor& out, at::ScalarType dtype)
      : made_(out.options().dtype(dtype)),
        index_(at::arange(run.begin, run.begin + out.numel(), out.options().dtype(at::kLong))),
        column_(at::remainder(index_, run.width)),
        batch_(at::div(index_, run.tokens * run.width, "floor")),
        width_(run.width) {}
  Tensor residual(const Tensor& x_BLC) const { return of(x_BLC, index_); }
  Tensor gate(const Tensor& x_B1C) const {
    return of(x_B1C, x_B1C.size(0) == 1 ? column_ : batch_ * width_ + column_);
  }
  Tensor bias(const Tensor& x_C) const { return of(x_C, column_); }

 private:
  Tensor of(const Tensor& x, const Tensor& index) const {
    return x.flatten().index_select(0, index.to(x.device())).to(made_);
  }
  at::TensorOptions made_;
  Tensor index_, column_, batch_;
  std::int64_t width_;
};

}  // namespace

void add_parts(std::span<const Tensor> parts, const SumEnd& end, const ElementRun& run,
               const Tensor& out) {
  const auto wide = at::promote_types(out.scalar_type(), at::kFloat);
  auto sum = parts.front().to(wide, /*non_blocking=*/false, /*copy=*/true);
  for (const auto& part : parts.subspan(1)) sum.add_(part);
  const AtElements at(run, out, wide);
  if (end.bias_C) sum.add_(at.bias(*end.bias_C));
  if (end.residual_BLC.defined()) {
    sum.mul_(at.gate(end.gate_B1C)).add_(at.residual(end.residual_BLC));
    if (out.scalar_type() == at::kHalf) sum.clamp_(-65504, 65504);
  }
  out.copy_(sum);
}

Tensor llama_rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const auto wide = at::promote_types(x.scalar_type(), at::kFloat);
  const auto normed = at::rms_norm(x.to(wide), {x.size(-1)}, {}, eps);
  return normed.to(x.scalar_type()) * weight;
}

Tensor zero_centred_rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const auto wide = at::promote_types(x.scalar_type(), at::kFloat);
  const auto normed = at::rms_norm(x.to(wide), {x.size(-1)}, weight.to(wide) + 1, eps);
  return normed.to(x.scalar_type());
}

Tensor modulated_rms_norm(const Tensor& x_BLC, const Tensor& weight, const Modulation& m,
                          double eps) {
  return reference::zero_centred_rms_norm(x_BLC, weight, eps).mul_(1 + m.scale).add_(m.shift);
}

Tensor sigmoid_gated(const Tensor& x_BLC, const Tensor& gate_BLC) {
  return at::sigmoid(gate_BLC).mul_(x_BLC);
}

Tensor rotate_halves(const Tensor& x_BLHD, const HalfSplitRope& rope) {
  const auto halves = x_BLHD.chunk(2, -1);
  const auto &a = halves[0], &b = halves[1];
  const auto cos = rope.cos.unsqueeze(1), sin = rope.sin.unsqueeze(1);
  return at::cat({a * cos - b * sin, b * cos + a * sin}, -1).to(x_BLHD.scalar_type());
}

Tensor swiglu(const Tensor& gate_BLC, const Tensor& up_BLC) { return at::silu(gate_BLC) * up_BLC; }

Tensor joined_gelu(const Tensor& x_BLC, const Tensor& y_BLC) {
  return at::cat({x_BLC, reference::gelu(y_BLC)}, -1);
}

Tensor joined_swiglu(const Tensor& x_BLC, const Tensor& gate_BLC, const Tensor& up_BLC) {
  const auto left = x_BLC.size(-1), right = up_BLC.size(-1);
  auto joined = at::empty({x_BLC.size(0), x_BLC.size(1), left + right}, x_BLC.options());
  joined.narrow(-1, 0, left).copy_(x_BLC);
  auto product = joined.narrow(-1, left, right);  // in place, as it is wide
  at::silu_out(product, gate_BLC).mul_(up_BLC);
  return joined;
}

// A 0-dim tensor takes the other factor's dtype, like the noise levels in diffusers' pipelines.
Tensor euler_step(const Tensor& x, const Tensor& v, double dt) {
  return (x.to(at::kFloat) + at::scalar_tensor(dt, at::kFloat) * v).to(v.scalar_type());
}

Tensor normed_rotated(std::span<const NormedHeads> parts, double eps, const Rope& rope) {
  std::vector<Tensor> normed;
  for (const auto& [x, weight] : parts)
    normed.push_back(
        reference::rms_norm(x.to(weight.scalar_type()), weight, eps).to(x.scalar_type()));
  return rotate(at::cat(normed, 1), rope);
}

namespace {

// Backends return [B H L] or [B H L 1], possibly strided; some pad L to their block size.
Tensor three_dims(const Tensor& lse, const Tensor& q_BHLD) {
  const auto lse_BHL = lse.dim() == 4 ? lse.squeeze(-1) : lse;
  return lse_BHL.narrow(2, 0, q_BHLD.size(2)).to(at::kFloat);
}

PartialAttention no_keys(const Tensor& q_BHLD, const Tensor& v_BGLD) {
  const auto rows = q_BHLD.sizes().slice(0, 3);
  auto shape = q_BHLD.sizes().vec();
  shape[3] = v_BGLD.size(3);
  return {.out_BHLD = at::zeros(shape, q_BHLD.options()),
          .lse_BHL = at::full(rows, -INFINITY, q_BHLD.options().dtype(at::kFloat))};
}

bool are_grouped(const Tensor& q_BHLD, const Tensor& k_BGLD) {
  return q_BHLD.size(1) != k_BGLD.size(1);
}

// LibTorch's kernels support grouped queries, except in float32 on GPUs.
bool is_without_groups(const Tensor& q_BHLD, const Tensor& k_BGLD) {
  return are_grouped(q_BHLD, k_BGLD) && !q_BHLD.is_cpu() && q_BHLD.scalar_type() == at::kFloat;
}

// A group's queries as more rows of one head, and back.   [B H L ...] <-> [B G L*H/G ...]
Tensor in_one_head(const Tensor& q_BHLD, const Tensor& k_BGLD) {
  return q_BHLD.unflatten(1, {k_BGLD.size(1), -1}).flatten(2, 3);
}
Tensor in_their_heads(const Tensor& x, const Tensor& q_BHLD) {
  return x.unflatten(2, {q_BHLD.size(1) / x.size(1), q_BHLD.size(2)}).flatten(1, 2);
}

Tensor attended(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD,
                const std::optional<Tensor>& is_seen, bool is_causal) {
  return at::scaled_dot_product_attention(q_BHLD, k_BGLD, v_BGLD, is_seen, 0.0, is_causal,
                                          /*scale=*/{}, are_grouped(q_BHLD, k_BGLD));
}

std::int64_t queries_at_once(const Tensor& q_BHLD, const Tensor& k_BGLD) {
  return ops::queries_at_once(q_BHLD.size(0) * q_BHLD.size(1), k_BGLD.size(2));
}

// Whether LibTorch writes out the scores on this GPU, and too many of them for one go: heads of 512
// numbers on RDNA3, for which it has no other kernel, and GPUs for which it has none at all.
bool needs_chunks(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD,
                  const std::optional<Tensor>& is_seen = {}) {
  return !q_BHLD.is_cpu() && q_BHLD.size(2) > queries_at_once(q_BHLD, k_BGLD) &&
         attention_kernel(q_BHLD, k_BGLD, v_BGLD, is_seen) == AttentionKernel::kMath;
}

// The queries [begin, begin + count) see the keys up to their own.
Tensor causal_chunk(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD,
                    std::int64_t begin) {
  const auto count = q_BHLD.size(2), end = begin + count;
  const auto is_seen = at::ones({count, end}, q_BHLD.options().dtype(at::kBool)).tril(begin);
  return attended(q_BHLD, k_BGLD.narrow(2, 0, end), v_BGLD.narrow(2, 0, end), is_seen, false);
}

// FlashAttention takes heads of whole vectors only: zeros widen them, as LibTorch's
// scaled_dot_product_attention does.
PartialAttention by_flash(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD) {
  constexpr std::int64_t kVector = 8;
  const auto width = q_BHLD.size(3);
  const auto widened = [&](const Tensor& x) {
    return width % kVector == 0 ? x : at::constant_pad_nd(x, {0, kVector - width % kVector});
  };
  const auto made = at::_scaled_dot_product_flash_attention(
      widened(q_BHLD), widened(k_BGLD), widened(v_BGLD), 0.0, /*is_causal=*/false,
      /*return_debug_mask=*/false, 1 / std::sqrt(double(width)));
  return {.out_BHLD = std::get<0>(made).narrow(3, 0, width),
          .lse_BHL = three_dims(std::get<1>(made), q_BHLD)};
}

// LibTorch's kernel for CPUs reads a head's numbers as if they were adjacent, whatever their
// stride.
PartialAttention by_cpu_kernel(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD) {
  const auto adjacent = [](const Tensor& x) { return x.stride(3) == 1 ? x : x.contiguous(); };
  const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
      adjacent(q_BHLD), adjacent(k_BGLD), adjacent(v_BGLD));
  return {.out_BHLD = out, .lse_BHL = three_dims(lse, q_BHLD)};
}

// Attention by the products that define it, some queries at a time. Heads are not grouped.
PartialAttention written_out(const Tensor& q_BHLD, const Tensor& k_BHLD, const Tensor& v_BHLD) {
  const double scale = 1 / std::sqrt(double(q_BHLD.size(3)));
  const auto k_BHDL = k_BHLD.to(at::kFloat).transpose(2, 3), v = v_BHLD.to(at::kFloat);
  std::vector<Tensor> outs, lses;
  for (const auto& q : q_BHLD.split(queries_at_once(q_BHLD, k_BHLD), 2)) {
    auto scores = at::matmul(q.to(at::kFloat), k_BHDL).mul_(scale);
    const auto lse = at::logsumexp(scores, -1);
    scores.sub_(lse.unsqueeze(-1)).exp_();
    outs.push_back(at::matmul(scores, v).to(q.scalar_type()));
    lses.push_back(lse);
  }
  return {.out_BHLD = at::cat(outs, 2), .lse_BHL = at::cat(lses, 2)};
}

}  // namespace

Tensor attention(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD) {
  if (is_without_groups(q_BHLD, k_BGLD))
    return in_their_heads(attention(in_one_head(q_BHLD, k_BGLD), k_BGLD, v_BGLD), q_BHLD);
  if (!needs_chunks(q_BHLD, k_BGLD, v_BGLD)) return attended(q_BHLD, k_BGLD, v_BGLD, {}, false);
  std::vector<Tensor> chunks;
  for (const auto& q : q_BHLD.split(queries_at_once(q_BHLD, k_BGLD), 2))
    chunks.push_back(attended(q, k_BGLD, v_BGLD, {}, false));
  return at::cat(chunks, 2);
}

Tensor causal_attention(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD) {
  const auto L = q_BHLD.size(2);
  const bool is_in_chunks = needs_chunks(q_BHLD, k_BGLD, v_BGLD);
  if (is_without_groups(q_BHLD, k_BGLD) && !is_in_chunks) {
    const auto q = in_one_head(q_BHLD, k_BGLD);
    const auto is_seen = at::ones({L, L}, q.options().dtype(at::kBool)).tril();
    const auto mask = is_seen.repeat({q.size(2) / L, 1});
    return in_their_heads(at::scaled_dot_product_attention(q, k_BGLD, v_BGLD, mask), q_BHLD);
  }
  if (!is_in_chunks) return attended(q_BHLD, k_BGLD, v_BGLD, {}, /*is_causal=*/true);
  std::vector<Tensor> chunks;
  for (const auto& q : q_BHLD.split(queries_at_once(q_BHLD, k_BGLD), 2)) {
    const auto begin = chunks.empty() ? 0 : std::int64_t(chunks.size()) * chunks.front().size(2);
    chunks.push_back(causal_chunk(q, k_BGLD, v_BGLD, begin));
  }
  return at::cat(chunks, 2);
}

Tensor masked_attention(const Tensor& q_BHLD, const Tensor& k_BGSD, const Tensor& v_BGSD,
                        const Tensor& is_seen_LS) {
  if (is_without_groups(q_BHLD, k_BGSD)) {
    const auto group = q_BHLD.size(1) / k_BGSD.size(1);
    return in_their_heads(masked_attention(in_one_head(q_BHLD, k_BGSD), k_BGSD, v_BGSD,
                                           is_seen_LS.repeat({group, 1})),
                          q_BHLD);
  }
  if (!needs_chunks(q_BHLD, k_BGSD, v_BGSD, is_seen_LS))
    return attended(q_BHLD, k_BGSD, v_BGSD, is_seen_LS, /*is_causal=*/false);
  const auto at_once = queries_at_once(q_BHLD, k_BGSD);
  const auto rows = is_seen_LS.split(at_once, 0);
  std::vector<Tensor> chunks;
  for (const auto& q : q_BHLD.split(at_once, 2))
    chunks.push_back(attended(q, k_BGSD, v_BGSD, rows[chunks.size()], /*is_causal=*/false));
  return at::cat(chunks, 2);
}

PartialAttention attention_with_lse(const Tensor& q_BHLD, const Tensor& k_BGLD,
                                    const Tensor& v_BGLD) {
  if (k_BGLD.size(2) == 0 || q_BHLD.numel() == 0) return no_keys(q_BHLD, v_BGLD);
  if (q_BHLD.is_cpu()) return by_cpu_kernel(q_BHLD, k_BGLD, v_BGLD);
  const auto kernel = attention_kernel(q_BHLD, k_BGLD, v_BGLD);
  const bool takes_groups = kernel == AttentionKernel::kCudnn || kernel == AttentionKernel::kFlash;
  if (are_grouped(q_BHLD, k_BGLD) && !(takes_groups && q_BHLD.size(2) > 1)) {
    const auto joined = attention_with_lse(in_one_head(q_BHLD, k_BGLD), k_BGLD, v_BGLD);
    return {.out_BHLD = in_their_heads(joined.out_BHLD, q_BHLD),
            .lse_BHL = in_their_heads(joined.lse_BHL, q_BHLD)};
  }
  // For one query cuDNN has plans of their own, which may fail where an LSE is asked for
  // (NVIDIA/cudnn-frontend, issue 1084).
  if (q_BHLD.size(2) == 1) return written_out(q_BHLD, k_BGLD, v_BGLD);
  switch (kernel) {
    case AttentionKernel::kCudnn: {
      const auto made = at::_scaled_dot_product_cudnn_attention(q_BHLD, k_BGLD, v_BGLD, {},
                                                                /*compute_log_sumexp=*/true);
      return {.out_BHLD = std::get<0>(made), .lse_BHL = three_dims(std::get<1>(made), q_BHLD)};
    }
    case AttentionKernel::kFlash:
      return by_flash(q_BHLD, k_BGLD, v_BGLD);
    case AttentionKernel::kEfficient: {
      const auto made = at::_scaled_dot_product_efficient_attention(q_BHLD, k_BGLD, v_BGLD, {},
                                                                    /*compute_log_sumexp=*/true);
      return {.out_BHLD = std::get<0>(made), .lse_BHL = three_dims(std::get<1>(made), q_BHLD)};
    }
    case AttentionKernel::kMath:
      break;
  }
  return written_out(q_BHLD, k_BGLD, v_BGLD);
}

}  // namespace reference

}  // namespace braid::ops

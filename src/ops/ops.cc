// Runs each operation with the kernel that takes its tensors, otherwise with its definition.
#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "ops/cpu/attention.h"
#include "ops/cpu/cpu.h"
#include "ops/gpu/gpu.h"
#include "ops/record.h"
#include "ops/reference.h"

namespace braid::ops {
namespace {

template <class... Tensors>
bool cpu_supports(const Tensor& first, const Tensors&... others) {
  return cpu::supports(first) &&
         (... && (cpu::supports(others) && others.scalar_type() == first.scalar_type()));
}

template <class... Tensors>
bool gpu_supports(const Tensor& first, const Tensors&... others) {
  return gpu::supports(first) &&
         (... && (gpu::supports(others) && others.scalar_type() == first.scalar_type() &&
                  others.device() == first.device()));
}

void check_modulation(const Tensor& part_B1C, const Tensor& x_BLC) {
  const bool fits = x_BLC.dim() == 3 && part_B1C.dim() == 3 && part_B1C.size(1) == 1 &&
                    part_B1C.size(2) == x_BLC.size(2) &&
                    (part_B1C.size(0) == x_BLC.size(0) || part_B1C.size(0) == 1);
  check(fits, "a modulation of shape ", part_B1C.sizes(), " for tokens of shape ", x_BLC.sizes());
}

void check_gated(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC) {
  check_modulation(gate_B1C, residual_BLC);
  check(y_BLC.sizes() == residual_BLC.sizes(), "a residual of shape ", residual_BLC.sizes(),
        " for tokens of shape ", y_BLC.sizes());
}

void check_halves(const Tensor& x_BLHD, const HalfSplitRope& rope) {
  const auto& [cos, sin] = rope;
  check(x_BLHD.dim() == 4 && cos.sizes() == sin.sizes() && cos.dim() == 2 &&
            cos.size(0) == x_BLHD.size(1) && 2 * cos.size(1) == x_BLHD.size(3),
        "rotary tables of shape ", cos.sizes(), " for halves of heads of shape ", x_BLHD.sizes());
}

// Checks all parts, in the order of the rotary tables' rows.
void check_heads(std::span<const NormedHeads> parts, const Rope& rope) {
  const auto& first = parts.front().x_BLHD;
  std::int64_t tokens = 0;
  for (const auto& part : parts) {
    const auto& x = part.x_BLHD;
    check(x.dim() == 4 && x.sizes().slice(2) == first.sizes().slice(2) &&
              x.size(0) == first.size(0) && part.weight_D.numel() == first.size(3),
          "heads of shape ", x.sizes(), " cannot be joined with ", first.sizes(),
          " under a norm of ", part.weight_D.numel());
    tokens += x.size(1);
  }
  const auto& [cos, sin] = rope;
  check(cos.sizes() == sin.sizes() && cos.device() == first.device(),
        "rotary tables should be two of a shape, on ", first.device());
  check(cos.dim() == 2 && cos.size(0) == tokens && cos.size(1) == first.size(3) &&
            cos.scalar_type() == at::kFloat,
        "rotary tables of shape ", cos.sizes(), " and of ", cos.scalar_type(), " for ", tokens,
        " tokens of width ", first.size(3));
}

void check_norm(const Tensor& x, const Tensor& weight) {
  check(weight.dim() == 1 && weight.size(0) == x.size(-1), "a norm of shape ", weight.sizes(),
        " for rows of shape ", x.sizes());
}

void check_joined(const Tensor& x_BLC, const Tensor& y_BLC) {
  check(x_BLC.dim() == 3 && y_BLC.dim() == 3 &&
            x_BLC.sizes().slice(0, 2) == y_BLC.sizes().slice(0, 2),
        "tokens of shape ", x_BLC.sizes(), " cannot be joined with tokens of shape ",
        y_BLC.sizes());
}

void check_gate(const Tensor& gate_BLC, const Tensor& up_BLC) {
  check(gate_BLC.dim() == 3 && gate_BLC.sizes() == up_BLC.sizes(), "a gate of shape ",
        gate_BLC.sizes(), " for tokens of shape ", up_BLC.sizes());
}

Record recorded_attention(const Tensor& q_BHLD, const Tensor& k_BGLD) {
  return {"braid::attention",
          {q_BHLD.size(0) * q_BHLD.size(1), q_BHLD.size(2), k_BGLD.size(2), q_BHLD.size(3)}};
}

void check_groups(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD) {
  // a rank may have no heads
  const auto are_grouped = [](std::int64_t heads, std::int64_t of_keys) {
    return of_keys > 0 ? heads % of_keys == 0 : heads == 0;
  };
  const bool fits = q_BHLD.dim() == 4 && k_BGLD.dim() == 4 && v_BGLD.dim() == 4 &&
                    q_BHLD.size(0) == k_BGLD.size(0) &&
                    are_grouped(q_BHLD.size(1), k_BGLD.size(1)) &&
                    k_BGLD.sizes().slice(0, 3) == v_BGLD.sizes().slice(0, 3);
  check(fits, "no attention of queries ", q_BHLD.sizes(), " to keys ", k_BGLD.sizes(),
        " and values ", v_BGLD.sizes());
}

std::int64_t bytes_of(const Tensor& x) { return x.numel() * x.element_size(); }

void check_parts(std::span<const Tensor> parts, const SumEnd& end, const ElementRun& run,
                 const Tensor& out) {
  check(!parts.empty() && out.dim() == 1 && out.is_contiguous(), "a sum of ", parts.size(),
        " parts into a tensor of shape ", out.sizes());
  for (const auto& part : parts)
    check(part.sizes() == out.sizes() && part.is_contiguous() &&
              part.scalar_type() == out.scalar_type() && part.device() == out.device(),
          "a sum of parts of shapes ", part.sizes(), " and ", out.sizes());
  check(!end.bias_C || end.bias_C->numel() == run.width, "a bias for sums of width ", run.width);
  if (!end.residual_BLC.defined()) return;
  const auto& x = end.residual_BLC;
  check_modulation(end.gate_B1C, x);
  check(x.size(1) == run.tokens && x.size(2) == run.width && run.begin + out.numel() <= x.numel(),
        "a residual of shape ", x.sizes(), " for a sum of ", run.tokens, " tokens of width ",
        run.width);
}

// Whether `supports` holds of a sum's tensors, all of one dtype.
template <class Supports>
bool all_supported(const SumEnd& end, const Tensor& out, const Supports& supports) {
  const auto fits = [&](const Tensor& x) {
    return supports(x) && x.scalar_type() == out.scalar_type() && x.device() == out.device();
  };
  return fits(out.unsqueeze(0)) && (!end.bias_C || fits(end.bias_C->unsqueeze(0))) &&
         (!end.residual_BLC.defined() || (fits(end.residual_BLC) && fits(end.gate_B1C)));
}
bool cpu_adds(const SumEnd& end, const Tensor& out) {
  return all_supported(end, out, [](const Tensor& x) { return cpu::supports(x); });
}
bool gpu_adds(std::span<const Tensor> parts, const SumEnd& end, const Tensor& out) {
  return gpu::adds(parts.size()) &&
         all_supported(end, out, [](const Tensor& x) { return gpu::supports(x); });
}

}  // namespace

Tensor gelu(const Tensor& x) {
  const Record record("braid::gelu", {2 * bytes_of(x)});
  if (cpu_supports(x)) return cpu::gelu(x);
  return gpu_supports(x) ? gpu::gelu(x) : reference::gelu(x);
}

// Codes are a byte.
LayerInput gelu(const Tensor& x, InputForm form) {
  if (form == InputForm::kNumbers || !gpu_supports(x) || !gpu::keeps_rows(x)) return ops::gelu(x);
  const Record record("braid::gelu", {bytes_of(x) + x.numel()});
  return gpu::gelu_codes(x);
}

LayerInput modulated_norm(const Tensor& x_BLC, const Modulation& m, InputForm form) {
  const bool is_one_kernel =
      form == InputForm::kFloat8 && gpu_supports(x_BLC, m.scale, m.shift) && gpu::keeps_rows(x_BLC);
  if (!is_one_kernel) return modulated_norm(x_BLC, m);
  const Record record("braid::modulated_norm", {bytes_of(x_BLC) + x_BLC.numel()});
  check_modulation(m.scale, x_BLC);
  check_modulation(m.shift, x_BLC);
  return gpu::modulated_norm_codes(x_BLC, m);
}

Tensor modulated_norm(const Tensor& x_BLC, const Modulation& m) {
  const Record record("braid::modulated_norm", {2 * bytes_of(x_BLC)});
  check_modulation(m.scale, x_BLC);
  check_modulation(m.shift, x_BLC);
  if (cpu_supports(x_BLC, m.scale, m.shift)) return cpu::modulated_norm(x_BLC, m);
  return gpu_supports(x_BLC, m.scale, m.shift) && gpu::keeps_rows(x_BLC)
             ? gpu::modulated_norm(x_BLC, m)
             : reference::modulated_norm(x_BLC, m);
}

Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC) {
  const Record record("braid::gated_residual", {3 * bytes_of(y_BLC)});
  check_gated(residual_BLC, gate_B1C, y_BLC);
  if (cpu_supports(residual_BLC, gate_B1C, y_BLC))
    return cpu::gated_residual(residual_BLC, gate_B1C, y_BLC);
  return gpu_supports(residual_BLC, gate_B1C, y_BLC)
             ? gpu::gated_residual(residual_BLC, gate_B1C, y_BLC)
             : reference::gated_residual(residual_BLC, gate_B1C, y_BLC);
}

SumAndInput gated_residual_norm(const Tensor& residual_BLC, const Tensor& gate_B1C,
                                const Tensor& y_BLC, const Modulation& m, InputForm form) {
  const bool is_one_kernel =
      gpu_supports(residual_BLC, gate_B1C, y_BLC, m.scale, m.shift) && gpu::keeps_rows(y_BLC);
  if (!is_one_kernel) {
    const auto sum = gated_residual(residual_BLC, gate_B1C, y_BLC);
    return {sum, modulated_norm(sum, m, form)};
  }
  const bool is_quantized = form == InputForm::kFloat8;
  const auto written = is_quantized ? y_BLC.numel() : bytes_of(y_BLC);
  const Record record("braid::gated_residual_norm", {3 * bytes_of(y_BLC) + written});
  check_gated(residual_BLC, gate_B1C, y_BLC);
  check_modulation(m.scale, residual_BLC);
  check_modulation(m.shift, residual_BLC);
  return is_quantized ? gpu::gated_residual_norm_codes(residual_BLC, gate_B1C, y_BLC, m)
                      : gpu::gated_residual_norm(residual_BLC, gate_B1C, y_BLC, m);
}

void add_parts(std::span<const Tensor> parts, const SumEnd& end, const ElementRun& run,
               const Tensor& out) {
  const auto reads = std::int64_t(parts.size()) + end.residual_BLC.defined();
  const Record record("braid::add_parts", {(reads + 1) * bytes_of(out)});
  check_parts(parts, end, run, out);
  if (cpu_adds(end, out)) return cpu::add_parts(parts, end, run, out);
  gpu_adds(parts, end, out) ? gpu::add_parts(parts, end, run, out)
                            : reference::add_parts(parts, end, run, out);
}

Tensor joined_gelu(const Tensor& x_BLC, const Tensor& y_BLC) {
  const Record record("braid::joined_gelu", {2 * (bytes_of(x_BLC) + bytes_of(y_BLC))});
  check_joined(x_BLC, y_BLC);
  if (cpu_supports(x_BLC, y_BLC)) return cpu::joined_gelu(x_BLC, y_BLC);
  return gpu_supports(x_BLC, y_BLC) ? gpu::joined_gelu(x_BLC, y_BLC)
                                    : reference::joined_gelu(x_BLC, y_BLC);
}

LayerInput joined_gelu(const Tensor& x_BLC, const Tensor& y_BLC, InputForm form) {
  const bool is_one_kernel = form == InputForm::kFloat8 && gpu_supports(x_BLC, y_BLC) &&
                             gpu::keeps_rows(x_BLC.size(-1) + y_BLC.size(-1));
  if (!is_one_kernel) return joined_gelu(x_BLC, y_BLC);
  const auto count = x_BLC.numel() + y_BLC.numel();
  const Record record("braid::joined_gelu", {bytes_of(x_BLC) + bytes_of(y_BLC) + count});
  check_joined(x_BLC, y_BLC);
  return gpu::joined_gelu_codes(x_BLC, y_BLC);
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const Record record("braid::rms_norm", {2 * bytes_of(x)});
  check_norm(x, weight);
  return cpu_supports(x, weight.unsqueeze(0)) ? cpu::rms_norm(x, weight, eps)
                                              : reference::rms_norm(x, weight, eps);
}

Tensor llama_rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const Record record("braid::llama_rms_norm", {2 * bytes_of(x)});
  check_norm(x, weight);
  return cpu_supports(x, weight.unsqueeze(0)) ? cpu::llama_rms_norm(x, weight, eps)
                                              : reference::llama_rms_norm(x, weight, eps);
}

Tensor zero_centred_rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  const Record record("braid::zero_centred_rms_norm", {2 * bytes_of(x)});
  check_norm(x, weight);
  return cpu_supports(x) ? cpu::zero_centred_rms_norm(x, weight, eps)
                         : reference::zero_centred_rms_norm(x, weight, eps);
}

Tensor modulated_rms_norm(const Tensor& x_BLC, const Tensor& weight, const Modulation& m,
                          double eps) {
  const Record record("braid::modulated_rms_norm", {2 * bytes_of(x_BLC)});
  check_norm(x_BLC, weight);
  check_modulation(m.scale, x_BLC);
  check_modulation(m.shift, x_BLC);
  return cpu_supports(x_BLC, m.scale, m.shift)
             ? cpu::modulated_rms_norm(x_BLC, weight, m, eps)
             : reference::modulated_rms_norm(x_BLC, weight, m, eps);
}

Tensor sigmoid_gated(const Tensor& x_BLC, const Tensor& gate_BLC) {
  const Record record("braid::sigmoid_gated", {3 * bytes_of(x_BLC)});
  check_gate(gate_BLC, x_BLC);
  return cpu_supports(x_BLC, gate_BLC) ? cpu::sigmoid_gated(x_BLC, gate_BLC)
                                       : reference::sigmoid_gated(x_BLC, gate_BLC);
}

Tensor rotate_halves(const Tensor& x_BLHD, const HalfSplitRope& rope) {
  const Record record("braid::rotate_halves", {2 * bytes_of(x_BLHD)});
  check_halves(x_BLHD, rope);
  const auto angles = rope.cos.scalar_type();
  const bool all_supported = cpu_supports(rope.cos, rope.sin) && cpu::supports(x_BLHD) &&
                             (angles == x_BLHD.scalar_type() || angles == at::kFloat);
  return all_supported ? cpu::rotate_halves(x_BLHD, rope) : reference::rotate_halves(x_BLHD, rope);
}

Tensor swiglu(const Tensor& gate_BLC, const Tensor& up_BLC) {
  const Record record("braid::swiglu", {3 * bytes_of(up_BLC)});
  check_gate(gate_BLC, up_BLC);
  return cpu_supports(gate_BLC, up_BLC) ? cpu::swiglu(gate_BLC, up_BLC)
                                        : reference::swiglu(gate_BLC, up_BLC);
}

Tensor joined_swiglu(const Tensor& x_BLC, const Tensor& gate_BLC, const Tensor& up_BLC) {
  const Record record("braid::joined_swiglu", {2 * bytes_of(x_BLC) + 3 * bytes_of(up_BLC)});
  check_joined(x_BLC, up_BLC);
  check_gate(gate_BLC, up_BLC);
  return cpu_supports(x_BLC, gate_BLC, up_BLC) ? cpu::joined_swiglu(x_BLC, gate_BLC, up_BLC)
                                               : reference::joined_swiglu(x_BLC, gate_BLC, up_BLC);
}

Tensor euler_step(const Tensor& x, const Tensor& v, double dt) {
  const Record record("braid::euler_step", {3 * bytes_of(x)});
  check(x.sizes() == v.sizes(), "a velocity of shape ", v.sizes(), " for latents of shape ",
        x.sizes());
  return gpu_supports(x, v) ? gpu::euler_step(x, v, dt) : reference::euler_step(x, v, dt);
}

namespace {

bool gpu_supports_all(std::span<const NormedHeads> parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const NormedHeads& part) {
    return gpu::supports(part) && gpu_supports(parts.front().x_BLHD, part.x_BLHD);
  });
}

std::int64_t bytes_of_heads(std::span<const NormedHeads> parts) {
  std::int64_t bytes = 0;
  for (const auto& part : parts) bytes += 2 * bytes_of(part.x_BLHD);
  return bytes;
}

}  // namespace

Tensor normed_rotated(std::span<const NormedHeads> parts, double eps, const Rope& rope) {
  const Record record("braid::normed_rotated", {bytes_of_heads(parts)});
  check_heads(parts, rope);
  const auto& first = parts.front().x_BLHD;
  const auto on_cpu = [&](const NormedHeads& part) {
    return cpu_supports(part.x_BLHD) && part.x_BLHD.size(3) % 2 == 0 &&
           part.x_BLHD.scalar_type() == first.scalar_type() &&
           (part.weight_D.scalar_type() == first.scalar_type() ||
            part.weight_D.scalar_type() == at::kFloat);
  };
  if (std::all_of(parts.begin(), parts.end(), on_cpu)) return cpu::normed_rotated(parts, eps, rope);
  return gpu_supports_all(parts) ? gpu::normed_rotated(parts, eps, rope)
                                 : reference::normed_rotated(parts, eps, rope);
}

RotatedHeads normed_rotated(std::span<const QueriesKeys> parts, double eps, const Rope& rope) {
  std::vector<NormedHeads> q, k;
  for (const auto& part : parts) {
    q.push_back(part.q);
    k.push_back(part.k);
  }
  const bool is_one_kernel = gpu_supports_all(q) && gpu_supports_all(k) &&
                             gpu_supports(q.front().x_BLHD, k.front().x_BLHD) &&
                             q.front().x_BLHD.size(3) == k.front().x_BLHD.size(3);
  if (!is_one_kernel) {
    const auto rotated_q = normed_rotated(q, eps, rope);
    return {rotated_q, normed_rotated(k, eps, rope)};
  }
  const Record record("braid::normed_rotated", {bytes_of_heads(q) + bytes_of_heads(k)});
  check_heads(q, rope);
  check_heads(k, rope);
  return gpu::normed_rotated(q, k, eps, rope);
}

Tensor attention(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD) {
  check_groups(q_BHLD, k_BGLD, v_BGLD);
  const auto record = recorded_attention(q_BHLD, k_BGLD);
  return cpu::attends(q_BHLD, k_BGLD, v_BGLD) ? cpu::attend(q_BHLD, k_BGLD, v_BGLD).out_BHLD
                                              : reference::attention(q_BHLD, k_BGLD, v_BGLD);
}

Tensor causal_attention(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD) {
  check_groups(q_BHLD, k_BGLD, v_BGLD);
  check(q_BHLD.size(2) == k_BGLD.size(2), "causal attention of ", q_BHLD.size(2), " queries to ",
        k_BGLD.size(2), " keys");
  const auto record = recorded_attention(q_BHLD, k_BGLD);
  if (!cpu::attends(q_BHLD, k_BGLD, v_BGLD))
    return reference::causal_attention(q_BHLD, k_BGLD, v_BGLD);
  return cpu::attend(q_BHLD, k_BGLD, v_BGLD, /*kernels=*/nullptr, cpu::SeenKeys::kCausal).out_BHLD;
}

Tensor masked_attention(const Tensor& q_BHLD, const Tensor& k_BGSD, const Tensor& v_BGSD,
                        const Tensor& is_seen_LS) {
  check_groups(q_BHLD, k_BGSD, v_BGSD);
  check(is_seen_LS.dim() == 2 && is_seen_LS.scalar_type() == at::kBool &&
            is_seen_LS.size(0) == q_BHLD.size(2) && is_seen_LS.size(1) == k_BGSD.size(2),
        "a mask of shape ", is_seen_LS.sizes(), " for queries ", q_BHLD.sizes(), " and keys ",
        k_BGSD.sizes());
  const auto record = recorded_attention(q_BHLD, k_BGSD);
  return reference::masked_attention(q_BHLD, k_BGSD, v_BGSD, is_seen_LS);
}

PartialAttention attention_with_lse(const Tensor& q_BHLD, const Tensor& k_BGLD,
                                    const Tensor& v_BGLD) {
  check_groups(q_BHLD, k_BGLD, v_BGLD);
  const auto record = recorded_attention(q_BHLD, k_BGLD);
  return cpu::attends(q_BHLD, k_BGLD, v_BGLD)
             ? cpu::attend(q_BHLD, k_BGLD, v_BGLD)
             : reference::attention_with_lse(q_BHLD, k_BGLD, v_BGLD);
}

}  // namespace braid::ops

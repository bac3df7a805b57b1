// What the GPUs of fake_gpu.cc compute, the CPU computes.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/transformers/attention.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "fake_crossings.h"
#include "fake_gpu.h"
#include "fake_order.h"
#include "kernel_counter.h"
#include "kernel_device.h"

namespace braid::fake_gpu {
namespace {

using at::Tensor, c10::Device;

std::atomic<std::int64_t> float8_products, gelu_products, cudnn_attentions;
std::atomic<ops::AttentionKernel> preferred = ops::AttentionKernel::kMath;
std::atomic<Attends::Heads> taken_heads = Attends::Heads::kOfWholeVectors;

c10::Stream current_stream(Device device) {
  return c10::impl::VirtualGuardImpl(at::kCUDA).getStream(device);
}
void read(const Tensor& x) {
  if (x.defined() && x.is_cuda()) order::read(x.const_data_ptr(), current_stream(x.device()));
}
void written(const Tensor& x) {
  if (x.defined() && x.is_cuda()) order::write(x.const_data_ptr(), current_stream(x.device()));
}

// While it is there, what the host computes is a kernel's work: what it copies is not waited for.
class Kernel {
 public:
  explicit Kernel(Device device) {
    if (depth_++ == 0) order::work(current_stream(device));
  }
  Kernel(const Kernel&) = delete;
  ~Kernel() { --depth_; }
  static bool is_running() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

// Nothing within another kernel's work.
void started(const std::string& name, const std::vector<Tensor>& moved = {}) {
  if (!Kernel::is_running()) counted::kernel(name, moved);
}

// The same memory as a tensor of the host.
Tensor on_host(const Tensor& x) {
  if (!x.is_cuda()) return x;
  return at::from_blob(x.mutable_data_ptr(), x.sizes(), x.strides(), x.options().device(at::kCPU));
}

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::CUDA);

Tensor empty(at::IntArrayRef shape, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
             std::optional<Device> device, std::optional<bool>,
             std::optional<at::MemoryFormat> format) {
  at::globalContext().lazyInitDevice(at::kCUDA);
  const c10::DeviceGuard on(device.value_or(Device(at::kCUDA)));
  return at::detail::empty_generic(shape, memory(), kKeys, at::dtype_or_default(dtype), format);
}

Tensor empty_strided(at::IntArrayRef shape, at::IntArrayRef strides,
                     std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                     std::optional<Device> device, std::optional<bool>) {
  at::globalContext().lazyInitDevice(at::kCUDA);
  const c10::DeviceGuard on(device.value_or(Device(at::kCUDA)));
  return at::detail::empty_strided_generic(shape, strides, memory(), kKeys,
                                           at::dtype_or_default(dtype));
}

// Lets a stream wait for what another one was given.
void follow(const c10::Stream& second, const c10::Stream& first) {
  c10::Event event(at::kCUDA);
  event.record(first);
  event.block(second);
}

// Copies as LibTorch does: on the current stream of the GPU that is read from, between barriers
// with that of the other, in the dtype of the result.
Tensor& copy_between(Tensor& to, const Tensor& from) {
  const auto source = current_stream(from.device()), target = current_stream(to.device());
  follow(source, target);
  order::read(from.const_data_ptr(), source);
  order::write(to.const_data_ptr(), source);
  crossings::copy(source, from.device().index(), to.device().index(),
                  to.numel() * std::int64_t(to.element_size()));
  on_host(to).copy_(on_host(from));
  follow(target, source);
  return to;
}

Tensor& copy_(Tensor& to, const Tensor& from, bool is_asynchronous) {
  if (to.is_cuda() && from.is_cuda() && to.numel() > 0) started("aten::copy_", {to, from});
  if (to.is_cuda() && from.is_cuda() && to.device() != from.device()) return copy_between(to, from);
  const bool waits = !is_asynchronous && !Kernel::is_running() && to.is_cpu() != from.is_cpu();
  if (waits && to.numel() > 0)
    refuse_if_recorded(current_stream(to.is_cuda() ? to.device() : from.device()));
  read(from);
  written(to);
  on_host(to).copy_(on_host(from));
  if (waits) order::host_waits_for_all();
  return to;
}

const Tensor& resize_(const Tensor& x, at::IntArrayRef shape, std::optional<at::MemoryFormat>) {
  if (x.sizes() == shape) return x;
  const auto fresh = at::empty(shape, x.options());
  auto* const impl = x.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(fresh.storage());
  impl->set_sizes_and_strides(shape, fresh.strides(), 0);
  return x;
}

Tensor copy_and_resize(const Tensor& from, const Tensor& to) {
  to.resize_(from.sizes());
  return to.copy_(from);
}

Tensor& set_(Tensor& x, at::Storage storage, std::int64_t offset, at::IntArrayRef shape,
             at::IntArrayRef strides) {
  auto* const impl = x.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(shape, strides);
  return x;
}

// Takes what cuBLAS takes.
Tensor int_mm(const Tensor& a, const Tensor& b) {
  started("aten::_int_mm");
  const Kernel kernel(a.device());
  TORCH_CHECK(a.size(0) > 16 && a.size(1) % 8 == 0 && b.size(1) % 8 == 0, "no int8 product for ",
              a.sizes(), " and ", b.sizes());
  return at::_int_mm(a.cpu(), b.cpu()).to(a.device());
}

// Multiplies as cuBLAS does with a scale per row of each: sums in float32, rounded once.
Tensor scaled_mm(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b,
                 const std::optional<Tensor>& bias, const std::optional<Tensor>&,
                 std::optional<at::ScalarType> dtype, bool) {
  started("aten::_scaled_mm");
  const Kernel kernel(a.device());
  TORCH_CHECK(a.is_contiguous() && b.t().is_contiguous() && a.size(1) % 16 == 0 &&
                  b.size(1) % 16 == 0 && dtype == at::kBFloat16,
              "no float8 product for ", a.sizes(), " and ", b.sizes());
  TORCH_CHECK(scale_a.sizes() == at::IntArrayRef({a.size(0), 1}) && scale_a.is_contiguous() &&
                  scale_b.sizes() == at::IntArrayRef({1, b.size(1)}) && scale_b.t().is_contiguous(),
              "a scale a row of each");
  ++float8_products;
  const auto numbers = [](const Tensor& x, const Tensor& scales) {
    return x.cpu().to(at::kFloat) * scales.cpu();
  };
  auto sums = at::mm(numbers(a, scale_a), numbers(b, scale_b));
  if (bias) sums += bias->cpu();
  return sums.to(*dtype).to(a.device());
}

Tensor& scaled_mm_into(const Tensor& a, const Tensor& b, const Tensor& scale_a,
                       const Tensor& scale_b, const std::optional<Tensor>& bias,
                       const std::optional<Tensor>& scale, std::optional<at::ScalarType> dtype,
                       bool is_fast, Tensor& y) {
  const auto made = scaled_mm(a, b, scale_a, scale_b, bias, scale, dtype, is_fast);
  const Kernel kernel(a.device());
  return y.copy_(made);
}

// cuBLASLt rounds once for a bias of one row, behind the tanh approximation of GELU.
Tensor addmm_activation(const Tensor& bias, const Tensor& a, const Tensor& b, const at::Scalar&,
                        const at::Scalar&, bool is_gelu) {
  started("aten::_addmm_activation");
  const Kernel kernel(a.device());
  TORCH_CHECK(is_gelu && bias.dim() == 1 && bias.is_contiguous() &&
                  bias.scalar_type() == a.scalar_type() && b.scalar_type() == a.scalar_type(),
              "no product with GELU for ", bias.sizes(), ", ", a.sizes(), " and ", b.sizes());
  ++gelu_products;
  const auto wide = [](const Tensor& x) { return x.cpu().to(at::kFloat); };
  const auto sums = at::addmm(wide(bias), wide(a), wide(b));
  return at::gelu(sums, "tanh").to(a.scalar_type()).to(a.device());
}

// Heads that a kernel loads in whole vectors of 16 bytes.
bool has_whole_vectors(const Tensor& q) {
  return taken_heads == Attends::Heads::kOfAnyWidth ||
         q.size(-1) * std::int64_t(q.element_size()) % 16 == 0;
}

// Which of LibTorch's kernels these are for. FlashAttention is chosen for heads of any width, as
// scaled_dot_product_attention pads them for it.
bool may_take(ops::AttentionKernel kernel, const Tensor& q, const Tensor& k, bool has_mask) {
  switch (kernel) {
    case ops::AttentionKernel::kCudnn:
      return !has_mask && q.scalar_type() != at::kFloat && has_whole_vectors(q);
    case ops::AttentionKernel::kFlash:
      return !has_mask && q.scalar_type() != at::kFloat;
    case ops::AttentionKernel::kEfficient:
      return !has_mask && q.size(1) == k.size(1) && has_whole_vectors(q);
    case ops::AttentionKernel::kMath:
      break;
  }
  return false;
}

struct Attended {
  Tensor out, lse;
};

// Each of CUDA's kernels refuses what it is not for, and lays its result out as q is.
Attended attended(ops::AttentionKernel kernel, const Tensor& q, const Tensor& k, const Tensor& v,
                  bool is_causal, std::optional<double> scale) {
  TORCH_CHECK(preferred == kernel && may_take(kernel, q, k, false) && has_whole_vectors(q),
              "this build has no such attention for ", q.sizes(), " in ", q.scalar_type());
  const auto repeated = [&](const Tensor& x) {
    return x.cpu().repeat_interleave(q.size(1) / x.size(1), 1);
  };
  const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
      q.cpu(), repeated(k), repeated(v), 0.0, is_causal, /*attn_mask=*/{}, scale);
  auto there = at::empty_like(q);
  if (out.sizes() == q.sizes()) there.copy_(out);
  return {out.sizes() == q.sizes() ? there : out.to(q.device()), lse};
}

// It pads its LSE.
std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_attention(
    const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& bias,
    bool is_with_lse, double, bool is_causal, std::optional<double> scale) {
  started("aten::_scaled_dot_product_efficient_attention");
  const Kernel kernel(q.device());
  TORCH_CHECK(!bias || !bias->defined(), "no mask is simulated");
  const auto [out, lse] = attended(ops::AttentionKernel::kEfficient, q, k, v, is_causal, scale);
  const auto none = at::zeros({}, at::kLong);
  const auto padded = at::constant_pad_nd(lse, {0, (32 - q.size(2) % 32) % 32}, INFINITY);
  return {out, is_with_lse ? padded.to(q.device()) : Tensor(), none, none};
}

using Flash =
    std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;
Flash flash_attention(const Tensor& q, const Tensor& k, const Tensor& v, double, bool is_causal,
                      bool, std::optional<double> scale) {
  started("aten::_scaled_dot_product_flash_attention");
  const Kernel kernel(q.device());
  const auto [out, lse] = attended(ops::AttentionKernel::kFlash, q, k, v, is_causal, scale);
  return {out, lse.to(q.device()), {}, {}, q.size(2), k.size(2), {}, {}, {}};
}

// Its LSE has a dim more.
Flash cudnn_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                      const std::optional<Tensor>&, bool is_with_lse, double, bool is_causal, bool,
                      std::optional<double> scale) {
  started("aten::_scaled_dot_product_cudnn_attention");
  const Kernel kernel(q.device());
  ++cudnn_attentions;
  const auto [out, lse] = attended(ops::AttentionKernel::kCudnn, q, k, v, is_causal, scale);
  const auto told = is_with_lse ? lse.unsqueeze(-1).to(q.device()) : Tensor();
  return {out, told, {}, {}, q.size(2), k.size(2), {}, {}, {}};
}

std::mutex choices_mutex;
std::vector<std::thread::id> choices;

void note_choice() {
  const std::scoped_lock lock(choices_mutex);
  choices.push_back(std::this_thread::get_id());
}

std::int64_t choose_attention(const Tensor& q, const Tensor& k, const Tensor&,
                              const std::optional<Tensor>& mask, double, bool,
                              std::optional<double>, bool) {
  note_choice();
  if (!may_take(preferred, q, k, mask && mask->defined()))
    return std::int64_t(at::SDPBackend::math);
  switch (ops::AttentionKernel(preferred)) {
    case ops::AttentionKernel::kCudnn:
      return std::int64_t(at::SDPBackend::cudnn_attention);
    case ops::AttentionKernel::kFlash:
      return std::int64_t(at::SDPBackend::flash_attention);
    case ops::AttentionKernel::kEfficient:
      return std::int64_t(at::SDPBackend::efficient_attention);
    case ops::AttentionKernel::kMath:
      break;
  }
  return std::int64_t(at::SDPBackend::math);
}

// Tensors of the host are taken beside a GPU's only where they are numbers.
void compute_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  std::optional<Device> device;
  const auto look = [&](const Tensor& x) {
    if (!x.defined() || (x.is_cpu() && x.dim() == 0)) return;
    if (!device) device = x.device();
    TORCH_CHECK(x.device() == *device, op.operator_name().name, " was given tensors on ", *device,
                " and on ", x.device());
  };
  const auto count = op.schema().arguments().size();
  std::vector<Tensor> moved;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& argument = torch::jit::peek(*stack, i, count);
    std::vector<Tensor> tensors;
    if (argument.isTensor()) tensors = {argument.toTensor()};
    if (argument.isTensorList()) tensors = argument.toTensorVector();
    for (const Tensor& x : tensors) look(x);
    if (!op.schema().arguments()[i].is_out())
      moved.insert(moved.end(), tensors.begin(), tensors.end());
  }
  const bool waits = op.operator_name().name == "aten::_local_scalar_dense";
  if (waits) refuse_if_recorded(current_stream(device.value_or(Device(at::kCUDA, 0))));
  {
    const Kernel kernel(device.value_or(Device(at::kCUDA, 0)));
    at::native::cpu_fallback(op, stack);
  }
  for (const auto& result : torch::jit::last(*stack, op.schema().returns().size()))
    if (result.isTensor()) moved.push_back(result.toTensor());
  if (!waits) started(op.operator_name().name, moved);
  if (waits) order::host_waits_for_all();
}

// The kernels of gpu_on_cpu.cc.
void see_launch(std::span<const void* const> words, const void* overwritten) {
  const auto stream = current_stream(Device(at::kCUDA));
  order::work(stream);
  for (const auto* word : words) order::read(word, stream);
  if (overwritten) order::write(overwritten, stream);
  counted::launch();
}
const bool kSeesLaunches = [] {
  on_launch = see_launch;
  return true;
}();

}  // namespace

std::int64_t num_float8_products() { return float8_products; }
std::int64_t num_gelu_products() { return gelu_products; }
std::vector<std::thread::id> attention_choices() {
  const std::scoped_lock lock(choices_mutex);
  return std::exchange(choices, {});
}
std::int64_t num_cudnn_attentions() { return cudnn_attentions; }
Attends::Attends(ops::AttentionKernel kernel, Heads heads) {
  preferred = kernel;
  taken_heads = heads;
}
Attends::~Attends() {
  preferred = ops::AttentionKernel::kMath;
  taken_heads = Heads::kOfWholeVectors;
}

}  // namespace braid::fake_gpu

using namespace braid::fake_gpu;

namespace at::native {
REGISTER_CUDA_DISPATCH(_fused_sdp_choice_stub, &choose_attention)
}

TORCH_LIBRARY_IMPL(_, CUDA, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&compute_on_host>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("copy_", copy_);
  m.impl("resize_", resize_);
  m.impl("_copy_from_and_resize", copy_and_resize);
  m.impl("set_.source_Storage_storage_offset", set_);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  // LibTorch would spell it for a device without a kernel.
  m.impl("native_group_norm", torch::CppFunction::makeFromBoxedFunction<&compute_on_host>());
  m.impl("_fused_rms_norm", torch::CppFunction::makeFromBoxedFunction<&compute_on_host>());
  m.impl("_int_mm", int_mm);
  m.impl("_scaled_mm", scaled_mm);
  m.impl("_scaled_mm.out", scaled_mm_into);
  m.impl("_addmm_activation", addmm_activation);
  m.impl("_fused_sdp_choice", choose_attention);
  m.impl("_scaled_dot_product_cudnn_attention", cudnn_attention);
  m.impl("_scaled_dot_product_efficient_attention", efficient_attention);
  m.impl("_scaled_dot_product_flash_attention", flash_attention);
}

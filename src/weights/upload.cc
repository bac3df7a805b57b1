#include "weights/upload.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstring>

#include "weights/paging/locked_memory.h"
#include "weights/paging/page_bytes.h"

namespace braid {
namespace {

constexpr std::int64_t kBytesPerTask = 1 << 20;

// All threads copy: they also wait for the file's pages together.
void fill(const at::Tensor& bytes, const std::byte* from, std::int64_t size) {
  auto* const to = static_cast<std::byte*>(bytes.mutable_data_ptr());
  at::parallel_for(0, size, kBytesPerTask, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, std::size_t(end - begin));
  });
}

at::Tensor as_bytes(const at::Tensor& dense) { return dense.view({-1}).view(at::kByte); }

}  // namespace

Upload::~Upload() {
  for (const auto& half : halves_) {
    try {
      if (half.copied) half.copied->synchronize();
    } catch (const std::exception&) {
      // whoever used the tensors has got its error
    }
  }
}

Upload::Half& Upload::next() {
  last_ = 1 - last_;
  auto& half = halves_[last_];
  if (!half.copied) {
    const auto bytes = aligned_bytes(half_);
    half.bytes = locked(bytes).value_or(bytes);
    half.copied.emplace(device_.type());
  }
  half.copied->synchronize();
  return half;
}

void Upload::copy(const at::Tensor& target, const at::Tensor& host) {
  const auto from = as_bytes(host.contiguous()), to = as_bytes(target);
  const auto stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  for (std::int64_t at = 0; at < from.numel(); at += half_) {
    const auto size = std::min(half_, from.numel() - at);
    auto& half = next();
    fill(half.bytes, static_cast<const std::byte*>(from.const_data_ptr()) + at, size);
    to.narrow(0, at, size).copy_(half.bytes.narrow(0, 0, size), /*non_blocking=*/true);
    half.copied->record(stream);
  }
}

at::Tensor Upload::operator()(const at::Tensor& host) {
  const auto target = at::empty(host.sizes(), host.options().device(device_));
  copy(target, host);
  return target;
}

at::Tensor moved(const at::Tensor& x, const Target& target) {
  return target.upload && x.is_cpu() ? (*target.upload)(x) : x.to(target.device);
}

}  // namespace braid

// A stream beside the one that computes, for what is sent meanwhile.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <functional>
#include <vector>

namespace braid {

class SideStream {
 public:
  explicit SideStream(at::Device device);

  // Lets `work` give the stream something to do with `tensors`, after what the current stream has
  // been given. Calling the result lets the current stream wait for it. Until then, and no longer,
  // the tensors are held: their memory is not marked as in use by the stream
  // (Tensor::record_stream), which would keep it from everybody until the host asks again, and
  // inside of a recording until that ends.
  using Work = std::function<void(const c10::Stream& stream)>;
  [[nodiscard]] std::function<void()> start(std::vector<at::Tensor> tensors, const Work& work);

 private:
  class UnderWay;

  c10::impl::VirtualGuardImpl guard_;
  c10::Stream stream_;
};

}  // namespace braid

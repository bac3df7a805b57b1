// A second stream for transfers while the current stream computes.
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

  // Lets `work` queue work on `tensors` on the side stream, after what the current stream has
  // queued so far. Calling the result makes the current stream wait for it. The tensors are held
  // only until then. Tensor::record_stream would keep their memory until the host asks again, and
  // during a capture until its end.
  using Work = std::function<void(const c10::Stream& stream)>;
  [[nodiscard]] std::function<void()> start(std::vector<at::Tensor> tensors, const Work& work);

 private:
  class UnderWay;

  // Lets the current stream wait for all that is queued here.
  void wait_on_current() const noexcept;

  c10::impl::VirtualGuardImpl guard_;
  c10::Stream stream_;
};

}  // namespace braid

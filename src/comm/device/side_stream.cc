#include "comm/device/side_stream.h"

namespace braid {
namespace {

c10::Event mark(const c10::Stream& stream) {
  c10::Event event(stream.device_type());
  event.record(stream);
  return event;
}

}  // namespace

// Work nobody waited for is waited for on destruction: its memory returns to the current stream.
class SideStream::UnderWay {
 public:
  UnderWay(std::vector<at::Tensor> tensors, const c10::Stream& stream)
      : tensors_(std::move(tensors)), device_(stream.device()), done_(mark(stream)) {}
  ~UnderWay() {
    try {
      wait();
    } catch (const std::exception&) {
      // the device has failed; the computation reports it
    }
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  void wait() {
    if (tensors_.empty()) return;
    done_.block(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    tensors_.clear();
  }

 private:
  std::vector<at::Tensor> tensors_;
  at::Device device_;
  c10::Event done_;
};

// The stream has a high priority: a transfer's few blocks take the next free places of the device,
// not those behind all blocks of a kernel that computes meanwhile.
SideStream::SideStream(at::Device device)
    : guard_(device.type()), stream_(guard_.getNewStream(device, /*priority=*/-1)) {}

std::function<void()> SideStream::start(std::vector<at::Tensor> tensors, const Work& work) {
  mark(guard_.getStream(stream_.device())).block(stream_);
  try {
    work(stream_);
  } catch (...) {
    // What it queued before it failed may still use the tensors, which are freed now.
    wait_on_current();
    throw;
  }
  const auto under_way = std::make_shared<UnderWay>(std::move(tensors), stream_);
  return [under_way] { under_way->wait(); };
}

void SideStream::wait_on_current() const noexcept {
  try {
    mark(stream_).block(guard_.getStream(stream_.device()));
  } catch (const std::exception&) {
    // the device has failed, which is what its caller reports
  }
}

}  // namespace braid

// The link between the GPUs of fake_gpu.cc.
#include <ATen/ATen.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "comm/group.h"
#include "comm/process/device_link.h"
#include "comm/process/side_stream.h"

namespace braid {
namespace {

// Messages under way between ranks of one process.
class Mail {
 public:
  void send(int from, int to, const Tensor& x) {
    const std::scoped_lock lock(mutex_);
    boxes_[{from, to}].push_back(x.cpu());
    changed_.notify_all();
  }
  void receive(int from, int to, const Tensor& x) {
    std::unique_lock lock(mutex_);
    auto& box = boxes_[{from, to}];
    changed_.wait(lock, [&] { return !box.empty(); });
    std::memcpy(x.mutable_data_ptr(), box.front().const_data_ptr(), x.nbytes());
    box.pop_front();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<Tensor>> boxes_;
};

class FakeLink : public DeviceLink {
 public:
  FakeLink(const Group& world, at::Device device) : rank_(world.rank()), side_(device) {}

  std::function<void()> start(const std::vector<Message>& sends,
                              const std::vector<Message>& receives) override {
    std::vector<Tensor> tensors;
    for (const auto* messages : {&sends, &receives})
      for (const auto& message : *messages) tensors.push_back(message.x);
    return side_.start(std::move(tensors), [&](const c10::Stream&) {
      for (const auto& [peer, x] : sends) mail().send(rank_, peer, x);
      for (const auto& [peer, x] : receives) mail().receive(peer, rank_, x);
    });
  }
  void abort() noexcept override {}
  void renew(const Group&) override {}

 private:
  static Mail& mail() {
    static Mail mail;
    return mail;
  }

  int rank_;
  SideStream side_;
};

}  // namespace

std::string device_link_name() { return "a fake link"; }

std::shared_ptr<DeviceLink> make_device_link(const Group& world, at::Device device) {
  return std::make_shared<FakeLink>(world, device);
}

}  // namespace braid

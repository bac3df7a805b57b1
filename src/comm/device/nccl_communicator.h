// A communicator of NCCL's that may fail at any time: no call of it blocks for ever, and its end
// waits for nobody but the thread that it has for itself.
#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/device/device_link.h"
#include "comm/device/nccl.h"

namespace braid {

class NcclCommunicator {
 public:
  using Messages = std::vector<DeviceLink::Message>;
  using Sums = std::vector<DeviceLink::Sum>;

  // `patience`: how long ranks may take to connect, which at first use can be many times a
  // deadline.
  NcclCommunicator(const Nccl& nccl, at::Device device,
                   std::chrono::milliseconds patience = std::chrono::minutes(1))
      : nccl_(nccl), device_(device), patience_(patience) {}
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Collective over `group`, after the end of an earlier connection. Throws WorldLost if that, or
  // connecting, takes too long.
  void connect(const Group& group);

  // Aborts the connection, if any, and waits for its end: NCCL ends one when all graphs that
  // recorded its messages are gone. `group` is polled meanwhile. Throws WorldLost if it takes too
  // long.
  void end(const Group& group);

  // Puts all messages on a stream. Throws Error once the connection is aborted.
  void exchange(const Messages& sends, const Messages& receives, void* stream);
  // The same for sums over all ranks of the connection.
  void all_reduce(const Sums& sums, void* stream);
  static bool can_sum(at::ScalarType dtype);

  // Any thread may call this. It returns at once, and kernels that wait for a rank end soon.
  void abort() noexcept;

 private:
  struct Connection;
  std::shared_ptr<Connection> connection() const;
  void start(const Group& group, const std::shared_ptr<Connection>& next);
  // Lets `ask` ask for work, which begins once all of it is asked for; ask(communicator, note)
  // gives `note` the code of each call.
  template <class Ask>
  void put(const char* what, Ask ask);

  Nccl nccl_;
  at::Device device_;
  std::chrono::milliseconds patience_;
  mutable std::mutex mutex_;
  std::shared_ptr<Connection> connection_;
};

}  // namespace braid

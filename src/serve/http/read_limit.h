// How long a client may take to send a head or a body.
#pragma once

#include <algorithm>

#include <boost/beast/core.hpp>

#include "serve/http/alarm.h"
#include "serve/jobs/job.h"

namespace braid::serve {

using boost::beast::error_code;
using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;

constexpr std::uint64_t kSlowestClient = 64 << 10;  // bytes per second

// When a client's next bytes are due.
struct DueTime {
  Clock::time_point began;
  std::chrono::milliseconds time;
  // Bytes per second. 0: `time` is for everything. Otherwise it is the longest silence, and what
  // this rate has fallen short of since the beginning.
  std::uint64_t slowest = 0;
  std::uint64_t received = 0;

  Clock::time_point next(Clock::time_point now) const {
    if (slowest == 0) return began + time;
    return std::min(now, began + std::chrono::seconds(received / slowest)) + time;
  }
};

// Ends the reading of a late client and leaves the stream open for an answer: the stream's own
// limit closes it.
class ReadLimit {
 public:
  explicit ReadLimit(Stream& stream) : stream_(stream), alarm_(stream.get_executor()) {}

  void start(const DueTime& due) {
    due_ = due;
    is_late_ = false;
  }
  std::uint64_t received() const { return due_.received; }

  // Call before each reading, and with its result: error::timeout if it was too late.
  void begin_read() {
    const auto now = Clock::now();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_.next(now) - now);
    stream_.expires_never();
    alarm_.set(std::max(left, std::chrono::milliseconds(0)), [this] { ring(); });
  }
  error_code end_read(error_code error, std::size_t bytes) {
    alarm_.cancel();
    due_.received += bytes;
    return error && is_late_ ? boost::beast::error::timeout : error;
  }

 private:
  // Bytes that have just come are not cancelled, and a head's reader then goes on for more.
  void ring() {
    is_late_ = true;
    stream_.cancel();
    alarm_.set(std::chrono::milliseconds(100), [this] { ring(); });
  }

  Stream& stream_;
  Alarm alarm_;
  DueTime due_ = {};
  bool is_late_ = false;
};

}  // namespace braid::serve

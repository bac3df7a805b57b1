// Two parts of a computation that need nothing of each other: one after the other, or the second at
// the same time on a stream of its own.
//
// The second stream waits for what the current one has been given before (the fork), and the
// current one for the second afterwards (the join), both by events, which a graph that is being
// recorded turns into its own edges. Memory needs no Tensor::record_stream:
//
// - What either part reads must outlive the call. So no memory of the current stream that the
//   second one reads is freed, and given to later work of the current stream, before the join.
// - Memory allocated by the second part is the second stream's. Whenever it is freed, only work of
//   the second stream gets it, and all such work comes after the next fork: after everything that
//   was queued to use it. That is why the second part is queued before the first one: nothing of
//   the first can free memory that the second takes after its fork.
// - Within a recording LibTorch serves a stream from the graph's memory once the fork has made it
//   part of the recording; a block still belongs to one stream.
#pragma once

#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <optional>
#include <type_traits>
#include <utility>

namespace braid {

// The second stream waits for the current one. Joined on destruction, whatever was thrown.
class Fork {
 public:
  explicit Fork(const c10::Stream& second);
  ~Fork();
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;

  // The stream that was current waits for the second one.
  void join();

 private:
  c10::Stream first_, second_;
  bool is_joined_ = false;
};

class TwoStreams {
 public:
  // Without a second stream, both halves run one after the other.
  explicit TwoStreams(std::optional<c10::Stream> second = {}) : second_(second) {}

  bool runs_concurrently() const { return second_.has_value(); }

  // {first(), second()}; neither may read what the other makes.
  template <class First, class Second>
  auto operator()(const First& first, const Second& second) const {
    using Both = std::pair<std::invoke_result_t<First>, std::invoke_result_t<Second>>;
    if (!second_) {
      auto made = first();
      return Both(std::move(made), second());
    }
    std::optional<std::invoke_result_t<Second>> beside;  // outlives the fork
    Fork fork(*second_);
    {
      const c10::StreamGuard on(*second_);
      beside.emplace(second());
    }
    auto made = first();
    fork.join();
    return Both(std::move(made), *std::move(beside));
  }

 private:
  std::optional<c10::Stream> second_;
};

}  // namespace braid

#include "comm/thread.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <thread>

#include "comm/board.h"
#include "comm/reduce.h"

namespace braid {
namespace {

class ThreadTransport : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Board> board, int rank) : board_(std::move(board)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return board_->size(); }
  const Fate& fate() const override { return board_->fate(); }

  std::vector<Note> compare(const Note& mine, Patience patience) override {
    board_->slot(rank_).note = mine;
    board_->meet(rank_, patience);
    std::vector<Note> notes;
    for (int r = 0; r < size(); ++r) notes.push_back(board_->slot(r).note);
    board_->meet(rank_);
    return notes;
  }

  Tensor all_reduce(const Tensor& x) override;
  std::vector<Tensor> all_gather(const Tensor& x,
                                 const std::vector<std::vector<std::int64_t>>& shapes) override;
  std::vector<Tensor> all_to_all(const std::vector<Tensor>& parts,
                                 const std::vector<std::vector<std::int64_t>>& shapes) override;
  Tensor broadcast(const Tensor& x, int root, at::IntArrayRef shape) override;
  std::unique_ptr<Incoming> shift(const Tensor& x, at::IntArrayRef incoming) override;
  std::shared_ptr<Transport> subgroup(std::span<const int> ranks) override;

 private:
  // Posts `tensors` and lets `look` see all ranks' before any rank leaves.
  template <class Look>
  void show(std::vector<Tensor> tensors, Look look) {
    board_->slot(rank_).tensors = std::move(tensors);
    board_->meet(rank_);
    look();
    board_->meet(rank_);
    board_->slot(rank_).tensors.clear();
  }
  const Tensor& shown(int rank, int index = 0) {
    return board_->slot(rank).tensors[std::size_t(index)];
  }

  std::shared_ptr<Board> board_;
  int rank_;
  std::uint64_t epoch_ = 0, num_subgroups_ = 0;  // subgroups requested in this epoch
};

// Each rank sums one share of the elements, in rank order, and all ranks read all shares.
Tensor ThreadTransport::all_reduce(const Tensor& x) {
  const auto share = share_of(x.numel(), rank_, size());
  Tensor sum;
  show({x}, [&] {
    std::vector<Tensor> parts;
    for (int r = 0; r < size(); ++r)
      parts.push_back(shown(r).view({-1}).narrow(0, share.begin, share.count));
    sum = sum_in_order(parts, std::size_t(rank_));
  });
  const auto result = at::empty_like(x);
  show({sum}, [&] {
    for (int r = 0; r < size(); ++r) {
      const auto theirs = share_of(x.numel(), r, size());
      result.view({-1}).narrow(0, theirs.begin, theirs.count).copy_(shown(r));
    }
  });
  return result;
}

std::vector<Tensor> ThreadTransport::all_gather(const Tensor& x,
                                                const std::vector<std::vector<std::int64_t>>&) {
  std::vector<Tensor> all;
  show({x}, [&] {
    for (int r = 0; r < size(); ++r) all.push_back(shown(r).to(x.device(), false, /*copy=*/true));
  });
  return all;
}

std::vector<Tensor> ThreadTransport::all_to_all(const std::vector<Tensor>& parts,
                                                const std::vector<std::vector<std::int64_t>>&) {
  std::vector<Tensor> received;
  show(parts, [&] {
    for (int r = 0; r < size(); ++r)
      received.push_back(shown(r, rank_).to(parts.front().device(), false, /*copy=*/true));
  });
  return received;
}

Tensor ThreadTransport::broadcast(const Tensor& x, int root, at::IntArrayRef) {
  Tensor received;
  show({x}, [&] { received = shown(root).to(x.device(), false, /*copy=*/true); });
  return received;
}

std::unique_ptr<Incoming> ThreadTransport::shift(const Tensor& x, at::IntArrayRef) {
  class FromBoard : public Incoming {
   public:
    FromBoard(std::shared_ptr<Board> board, int rank, at::Device device)
        : board_(std::move(board)), rank_(rank), device_(device) {}
    Tensor wait() override { return board_->receive(rank_).to(device_); }

   private:
    std::shared_ptr<Board> board_;
    int rank_;
    at::Device device_;
  };
  board_->send((rank_ + 1) % size(), x.clone());
  return std::make_unique<FromBoard>(board_, rank_, x.device());
}

std::shared_ptr<Transport> ThreadTransport::subgroup(std::span<const int> ranks) {
  // A failed run may leave the ranks with different counts.
  if (epoch_ != fate().epoch()) num_subgroups_ = 0;
  epoch_ = fate().epoch();
  const auto time = num_subgroups_++;
  const auto here = std::find(ranks.begin(), ranks.end(), rank_);
  if (here == ranks.end()) return nullptr;
  return std::make_shared<ThreadTransport>(board_->subgroup({ranks.begin(), ranks.end()}, time),
                                           int(here - ranks.begin()));
}

}  // namespace

ThreadWorld::ThreadWorld(const WorldOptions& options)
    : fate_(std::make_shared<Fate>(options.deadline)) {
  check(options.size >= 1, "a world of ", options.size, " ranks");
  board_ = std::make_shared<Board>(options.size, fate_);
  for (int rank = 0; rank < options.size; ++rank)
    ranks_.emplace_back(std::make_shared<ThreadTransport>(board_, rank));
}

void ThreadWorld::run_rank(int rank, const std::function<void(const Group&)>& body) {
  const c10::InferenceMode no_autograd;  // thread-local, like all such guards
  try {
    body(ranks_[std::size_t(rank)]);
  } catch (...) {
    fate_->fail(rank, std::current_exception());
  }
}

void ThreadWorld::run_all(const std::function<void(const Group&)>& body) {
  std::vector<std::jthread> others;
  try {
    for (int rank = 1; rank < size(); ++rank)
      others.emplace_back([this, rank, &body] { run_rank(rank, body); });
  } catch (...) {  // ranks already started must not wait for the others
    return fate_->fail(0, std::current_exception());
  }
  run_rank(0, body);
}

void ThreadWorld::run(const std::function<void(const Group&)>& body, std::stop_token stop) {
  fate_->begin(std::move(stop));
  run_all(body);
  const auto cause = fate_->cause();
  if (!cause) return;
  board_->clear();
  fate_->recover();
  std::rethrow_exception(cause);
}

void run_ranks(const WorldOptions& options, const std::function<void(const Group&)>& body) {
  ThreadWorld(options).run(body);
}

}  // namespace braid

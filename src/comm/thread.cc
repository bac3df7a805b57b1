#include "comm/thread.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "base/error.h"
#include "comm/linked_transport.h"
#include "comm/reduce.h"

namespace braid {
namespace {

class ThreadTransport : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Board> board, int rank, std::shared_ptr<DeviceReads> reads)
      : board_(std::move(board)), rank_(rank), reads_(std::move(reads)) {}

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

  std::vector<Tensor> all_reduce(const std::vector<Tensor>& xs, const MakeSum& make) override;
  Tensor all_gather(const Tensor& x, const std::vector<std::vector<std::int64_t>>& shapes) override;
  Tensor all_to_all(const std::vector<Tensor>& parts,
                    const std::vector<std::vector<std::int64_t>>& shapes) override;
  Tensor broadcast(const Tensor& x, int root, at::IntArrayRef shape) override;
  std::unique_ptr<Incoming> shift(const Tensor& x, at::IntArrayRef incoming) override;
  std::shared_ptr<Transport> subgroup(std::span<const int> ranks) override;

 private:
  // Posts `tensors` and lets `look` see all ranks' before any rank leaves.
  template <class Look>
  void show(std::vector<Tensor> tensors, Look look) {
    auto& mine = board_->slot(rank_);
    mine.ready = mark_current(tensors);
    mine.tensors = std::move(tensors);
    board_->meet(rank_);
    mine.reads.assign(std::size_t(size()), nullptr);
    look();
    board_->meet(rank_);
    // What others did not read here may be overwritten when they have.
    for (int r = 0; r < size(); ++r) wait_on_current(board_->slot(r).reads.at(std::size_t(rank_)));
    mine.tensors.clear();
  }
  const Tensor& shown(int rank, int index = 0) {
    return board_->slot(rank).tensors[std::size_t(index)];
  }
  // read(shown), of what a rank shows, for a tensor on `to`.
  template <class Read>
  void read_from(int rank, at::Device to, Read read, int index = 0) {
    auto& mine = board_->slot(rank_);
    const auto& theirs = shown(rank, index);
    mine.reads[std::size_t(rank)] =
        (*reads_)(theirs.device(), to, board_->slot(rank).ready, [&] { read(theirs); });
  }
  // Every rank reads from all, beginning with itself: at any time each is read by one.
  template <class Read>
  void read_in_turn(Read read) {
    for (int i = 0; i < size(); ++i) read((rank_ + i) % size());
  }

  // What each rank shows at `index`, flat, one behind another.
  Tensor read_all(const at::TensorOptions& options,
                  const std::vector<std::vector<std::int64_t>>& shapes, int index) {
    std::vector<Share> places;
    std::int64_t total = 0;
    for (const auto& shape : shapes) {
      places.push_back({.begin = total, .count = c10::multiply_integers(shape)});
      total += places.back().count;
    }
    const auto all = at::empty({total}, options);
    read_in_turn([&](int r) {
      const auto place = elements_of(all, places[std::size_t(r)]);
      const auto take = [&](const Tensor& theirs) { place.copy_(theirs.view({-1})); };
      read_from(r, all.device(), take, index);
    });
    return all;
  }

  std::shared_ptr<Board> board_;
  int rank_;
  std::shared_ptr<DeviceReads> reads_;
  std::uint64_t epoch_ = 0, num_subgroups_ = 0;  // subgroups requested in this epoch
};

// Each rank sums one share of the elements, in rank order, and all ranks read all shares.
std::vector<Tensor> ThreadTransport::all_reduce(const std::vector<Tensor>& xs,
                                                const MakeSum& make) {
  const auto device = xs.front().device();
  const auto runs = runs_of_rank(xs, rank_, size());
  std::vector<Tensor> sums;
  show(xs, [&] {
    for (const auto& run : runs) {
      std::vector<Tensor> parts(board_->size());
      read_in_turn([&](int r) {
        read_from(
            r, device,
            [&](const Tensor& theirs) {
              parts[std::size_t(r)] = elements_of(theirs, run.elements).to(device);
            },
            int(run.tensor));
      });
      sums.push_back(at::empty({run.elements.count}, xs.front().options()));
      make(run, parts, sums.back());
    }
  });
  std::vector<Tensor> results;
  for (const auto& x : xs) results.push_back(at::empty_like(x));
  show(sums, [&] {
    read_in_turn([&](int r) {
      const auto theirs = runs_of_rank(xs, r, size());
      for (std::size_t i = 0; i < theirs.size(); ++i)
        read_from(
            r, device,
            [&](const Tensor& sum) {
              elements_of(results[theirs[i].tensor], theirs[i].elements).copy_(sum);
            },
            int(i));
    });
  });
  return results;
}

Tensor ThreadTransport::all_gather(const Tensor& x,
                                   const std::vector<std::vector<std::int64_t>>& shapes) {
  Tensor all;
  show({x}, [&] { all = read_all(x.options(), shapes, /*index=*/0); });
  return all;
}

Tensor ThreadTransport::all_to_all(const std::vector<Tensor>& parts,
                                   const std::vector<std::vector<std::int64_t>>& shapes) {
  Tensor received;
  show(parts, [&] { received = read_all(parts.front().options(), shapes, rank_); });
  return received;
}

Tensor ThreadTransport::broadcast(const Tensor& x, int root, at::IntArrayRef) {
  Tensor received;
  show({x}, [&] {
    read_from(root, x.device(), [&](const Tensor& theirs) {
      received = theirs.to(x.device(), false, /*copy=*/true);
    });
  });
  return received;
}

std::unique_ptr<Incoming> ThreadTransport::shift(const Tensor& x, at::IntArrayRef) {
  class FromBoard : public Incoming {
   public:
    FromBoard(std::shared_ptr<Board> board, std::shared_ptr<DeviceReads> reads, int rank,
              at::Device device)
        : board_(std::move(board)), reads_(std::move(reads)), rank_(rank), device_(device) {}
    Tensor wait() override {
      const auto [x, ready] = board_->receive(rank_);
      Tensor here;
      // the memory of `x` returns to the stream that made it
      wait_on_current((*reads_)(x.device(), device_, ready, [&] { here = x.to(device_); }));
      return here;
    }

   private:
    std::shared_ptr<Board> board_;
    std::shared_ptr<DeviceReads> reads_;
    int rank_;
    at::Device device_;
  };
  auto sent = x.clone();
  auto ready = mark_current({sent});
  board_->send((rank_ + 1) % size(), {.x = std::move(sent), .ready = std::move(ready)});
  return std::make_unique<FromBoard>(board_, reads_, rank_, x.device());
}

std::shared_ptr<Transport> ThreadTransport::subgroup(std::span<const int> ranks) {
  // A failed run may leave the ranks with different counts.
  if (epoch_ != fate().epoch()) num_subgroups_ = 0;
  epoch_ = fate().epoch();
  const auto time = num_subgroups_++;
  const auto here = std::find(ranks.begin(), ranks.end(), rank_);
  if (here == ranks.end()) return nullptr;
  return std::make_shared<ThreadTransport>(board_->subgroup({ranks.begin(), ranks.end()}, time),
                                           int(here - ranks.begin()), reads_);
}

// Without devices, ranks are on CPUs.
std::string cpu_in_the_way(const WorldOptions& options) {
  for (int rank = 0; rank < options.size; ++rank)
    if (rank >= int(options.devices.size()) || options.devices[std::size_t(rank)].is_cpu())
      return text_of("rank ", rank, " computes on a CPU");
  return {};
}

}  // namespace

ThreadWorld::ThreadWorld(const WorldOptions& options, const LinkMaker& make_link,
                         const std::function<Fate::Clock::time_point()>& now)
    : fate_(std::make_shared<Fate>(options.deadline, now)) {
  check(options.size >= 1, "a world of ", options.size, " ranks");
  board_ = std::make_shared<Board>(options.size, fate_);
  for (int rank = 0; rank < options.size; ++rank) {
    host_transports_.push_back(
        std::make_shared<ThreadTransport>(board_, rank, std::make_shared<DeviceReads>()));
    hosts_.emplace_back(host_transports_.back());
  }
  ranks_ = hosts_;
  if (options.size > 1) link_use_ = {.over = "threads"};
  const auto cpu = cpu_in_the_way(options);
  if (!cpu.empty()) check_collectives(options.collectives, options.size, {.why_not = cpu});
  if (cpu.empty() && options.size > 1) link(options, make_link);
}

void ThreadWorld::link(const WorldOptions& options, const LinkMaker& make_link) {
  std::vector<LinkedDevices> linked(ranks_.size());
  run([&](const Group& world) {
    const auto rank = std::size_t(world.rank());
    linked[rank] = make_link(world, options.devices[rank]);
  });
  check_collectives(options.collectives, size(), linked.front());
  link_use_.why_not = linked.front().why_not;
  if (!linked.front().link) return;
  link_use_ = {.over = device_link_name()};
  link_epochs_.assign(ranks_.size(), fate_->epoch());
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    links_.push_back(std::move(linked[rank].link));
    ranks_[rank] = Group(std::make_shared<LinkedTransport>(host_transports_[rank], links_[rank],
                                                           options.collectives));
  }
}

// A failure has aborted the links of all ranks.
void ThreadWorld::renew_link(int rank) {
  if (links_.empty() || link_epochs_[std::size_t(rank)] == fate_->epoch()) return;
  links_[std::size_t(rank)]->renew(hosts_[std::size_t(rank)]);
  link_epochs_[std::size_t(rank)] = fate_->epoch();
}

void ThreadWorld::run_rank(int rank, const std::function<void(const Group&)>& body) {
  const c10::InferenceMode no_autograd;  // thread-local, like all such guards
  try {
    renew_link(rank);
    body(ranks_[std::size_t(rank)]);
  } catch (...) {
    fate_->fail(rank, std::current_exception());
    for (const auto& link : links_) link->abort();  // nothing else ends a wait for a kernel
  }
}

void ThreadWorld::run(const std::function<void(const Group&)>& body, std::stop_token stop) {
  fate_->begin(std::move(stop));
  crew_.run(size(), [&](int rank) { run_rank(rank, body); });
  const auto cause = fate_->cause();
  if (!cause) return;
  for (int rank = 0; on_failed_run_ && rank < size(); ++rank) on_failed_run_(rank);
  board_->clear();
  fate_->recover();
  std::rethrow_exception(cause);
}

void run_ranks(const WorldOptions& options, const std::function<void(const Group&)>& body) {
  ThreadWorld(options).run(body);
}

}  // namespace braid

// Collectives as messages between processes. Sums are in rank order and rounded once, so that
// processes and threads compute the same bits.
#pragma once

#include "comm/process/courier.h"
#include "comm/process/device_link.h"

namespace braid {

class MessageTransport : public Transport {
 public:
  // The group of all the courier's ranks. Device tensors travel over `link` if given.
  explicit MessageTransport(std::shared_ptr<Courier> courier,
                            std::shared_ptr<DeviceLink> link = nullptr);

  int rank() const override { return rank_; }
  int size() const override { return int(ranks_.size()); }
  const Fate& fate() const override { return courier_->fate(); }
  bool stays_on_device() const override { return link_ != nullptr; }

  std::vector<Note> compare(const Note& mine, Patience patience) override;
  Tensor all_reduce(const Tensor& x) override;
  std::vector<Tensor> all_gather(const Tensor& x,
                                 const std::vector<std::vector<std::int64_t>>& shapes) override;
  std::vector<Tensor> all_to_all(const std::vector<Tensor>& parts,
                                 const std::vector<std::vector<std::int64_t>>& shapes) override;
  Tensor broadcast(const Tensor& x, int root, at::IntArrayRef shape) override;
  std::unique_ptr<Incoming> shift(const Tensor& x, at::IntArrayRef incoming) override;
  std::shared_ptr<Transport> subgroup(std::span<const int> ranks) override;

 private:
  struct Piece {
    int rank;  // of this group
    Tensor x;  // staged
  };

  MessageTransport(std::shared_ptr<Courier> courier, std::shared_ptr<DeviceLink> link,
                   std::vector<int> ranks, int rank, int channel);
  // Contiguous, in the memory messages use: the host's, or that of a linked device.
  Tensor staged(const Tensor& x) const;
  // Calling the result waits until everything has arrived.
  using Wait = std::function<void()>;
  Wait start(const std::vector<Piece>& out, const std::vector<Piece>& in, Patience patience) const;
  void exchange(const std::vector<Piece>& out, const std::vector<Piece>& in,
                Patience patience = Patience::kDeadline) const;
  // Sends `x` to every other rank.
  std::vector<Piece> to_others(const Tensor& x) const;

  std::shared_ptr<Courier> courier_;
  std::shared_ptr<DeviceLink> link_;
  std::vector<int> ranks_;  // of the world
  int rank_, channel_;
};

}  // namespace braid

// Collectives as messages between pairs of ranks. Sums are in rank order and rounded once, so that
// every way of carrying messages computes the same bits.
#pragma once

#include <functional>
#include <vector>

#include "comm/transport.h"

namespace braid {

class PairTransport : public Transport {
 public:
  std::vector<Tensor> all_reduce(const std::vector<Tensor>& xs, const MakeSum& make) override;
  Tensor all_gather(const Tensor& x, const std::vector<std::vector<std::int64_t>>& shapes) override;
  Tensor all_to_all(const std::vector<Tensor>& parts,
                    const std::vector<std::vector<std::int64_t>>& shapes) override;
  Tensor broadcast(const Tensor& x, int root, at::IntArrayRef shape) override;
  std::unique_ptr<Incoming> shift(const Tensor& x, at::IntArrayRef incoming) override;

 protected:
  struct Piece {
    int rank;  // of this group
    Tensor x;  // staged
  };
  // Calling the result waits until everything has arrived.
  using Wait = std::function<void()>;
  virtual Wait start(const std::vector<Piece>& out, const std::vector<Piece>& in,
                     Patience patience) = 0;
  // Where messages find the tensors of a device, and leave what they bring for it.
  virtual at::Device staging_device(at::Device of) const = 0;
  // Contiguous, in the memory that messages use: a copy only where `x` is elsewhere.
  Tensor staged(const Tensor& x) const;
  // The ranks of a group of all, in their order: 0, 1, ...
  static std::vector<int> first_ranks(int count);

  void exchange(const std::vector<Piece>& out, const std::vector<Piece>& in,
                Patience patience = Patience::kDeadline);
  // Sends `x` to every other rank.
  std::vector<Piece> to_others(const Tensor& x) const;

 private:
  // Sends `out`, and returns what came from each rank, with shapes[r], flat, one behind another;
  // `own` is what stays here.
  Tensor trade(const std::vector<Piece>& out, const Tensor& own,
               const std::vector<std::vector<std::int64_t>>& shapes);
};

}  // namespace braid

// Moves bytes from rank to rank. Group, on top, handles strides, agreement and counting; a
// transport gets dense tensors of agreed dtypes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/fate.h"
#include "comm/note.h"
#include "comm/reduce.h"

namespace braid {

using at::Tensor;

// Whether waiting for other ranks ends at the deadline, or only when one of them fails.
enum class Patience { kDeadline, kEndless };

// A tensor on its way to the next rank.
class Incoming {
 public:
  virtual ~Incoming() = default;
  virtual Tensor wait() = 0;  // the previous rank's tensor; throws past the deadline
};

// All tensors are contiguous. Every rank of the group makes the same calls in the same order. Each
// call throws within the deadline if another rank fails, disagrees or does not come.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Fate of the world this group belongs to. In a new epoch a transport works as if new.
  virtual const Fate& fate() const = 0;

  // Whether device tensors are exchanged without the host waiting, so that an exchange can be
  // captured and replayed.
  virtual bool stays_on_device() const { return false; }

  // The notes of all ranks, in rank order.
  virtual std::vector<Note> compare(const Note& mine, Patience patience) = 0;

  // A result of the shape of each of `xs`, which have one dtype and device: each element made by
  // one rank, of all ranks' parts, and sent to all; or made by every rank, of their sum.
  virtual std::vector<Tensor> all_reduce(const std::vector<Tensor>& xs, const MakeSum& make) = 0;
  // Every rank's tensor, flat, one behind another; shapes[r] is rank r's.
  virtual Tensor all_gather(const Tensor& x,
                            const std::vector<std::vector<std::int64_t>>& shapes) = 0;
  // parts[r] goes to rank r; what came from each rank, with shapes[r], flat, one behind another.
  virtual Tensor all_to_all(const std::vector<Tensor>& parts,
                            const std::vector<std::vector<std::int64_t>>& shapes) = 0;
  // The root's tensor, of `shape`; `x` is only read on the root.
  virtual Tensor broadcast(const Tensor& x, int root, at::IntArrayRef shape) = 0;
  // Sends to the next rank and receives from the previous one, a tensor of shape `incoming`, while
  // the caller goes on. `x` may be reused at once.
  virtual std::unique_ptr<Incoming> shift(const Tensor& x, at::IntArrayRef incoming) = 0;

  // The subgroup of `ranks`, or nullptr for ranks outside it. Collective.
  virtual std::shared_ptr<Transport> subgroup(std::span<const int> ranks) = 0;
};

}  // namespace braid

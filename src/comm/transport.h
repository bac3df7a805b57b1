// How bytes get from rank to rank. Group sits on top and sees to strides, agreement and counting;
// a transport gets dense tensors of agreed dtypes, and moves them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/fate.h"
#include "comm/note.h"

namespace braid {

using at::Tensor;

// Whether a wait for the other ranks ends at the deadline, or only when one of them fails.
enum class Patience { kDeadline, kEndless };

// A tensor on its way to the next rank.
class Incoming {
 public:
  virtual ~Incoming() = default;
  virtual Tensor wait() = 0;  // what the previous rank sent; throws past the deadline
};

// All tensors are contiguous. Every call is made by every rank of the group, in the same order;
// each throws within the deadline when another rank fails, disagrees or does not come.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Of the world that this group is part of. In a new epoch a transport works as if new.
  virtual const Fate& fate() const = 0;

  // Whether tensors of a device are exchanged without the host waiting for it, so that an exchange
  // can be recorded and repeated.
  virtual bool stays_on_device() const { return false; }

  // The notes of all ranks, in rank order.
  virtual std::vector<Note> compare(const Note& mine, Patience patience) = 0;

  // Sum in float32 (integers in their own type, bool as `or`), rank by rank, rounded once.
  virtual Tensor all_reduce(const Tensor& x) = 0;
  // What every rank gives; shapes[r] is rank r's.
  virtual std::vector<Tensor> all_gather(const Tensor& x,
                                         const std::vector<std::vector<std::int64_t>>& shapes) = 0;
  // parts[r] goes to rank r; the result's [r] came from rank r, and has shapes[r].
  virtual std::vector<Tensor> all_to_all(const std::vector<Tensor>& parts,
                                         const std::vector<std::vector<std::int64_t>>& shapes) = 0;
  // The root's tensor; `x` is read on the root only. `shape` is the root's.
  virtual Tensor broadcast(const Tensor& x, int root, at::IntArrayRef shape) = 0;
  // Sends to the next rank and receives from the previous, whose tensor has the shape `incoming`,
  // while the caller goes on. `x` may be reused at once.
  virtual std::unique_ptr<Incoming> shift(const Tensor& x, at::IntArrayRef incoming) = 0;

  // The group of some of this group's ranks, or nullptr for the ranks outside. Collective.
  virtual std::shared_ptr<Transport> subgroup(std::span<const int> ranks) = 0;
};

}  // namespace braid

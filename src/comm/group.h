// A group of ranks and its collectives. A cheap value. A group of one is not a special case: every
// collective is the identity there, so callers never ask "am I parallel?".
//
// Collectives cannot be misused silently. Results are [[nodiscard]]. The forms ending in `_` update
// an lvalue in place, whatever its strides, and do not compile for temporaries. Before bytes move,
// ranks compare what they are about to do. Every wait has a deadline. A tensor must own its memory:
// other ranks and the progress thread may still read it after an exception has ended the caller.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <source_location>
#include <vector>

#include "comm/shares.h"
#include "comm/transport.h"

namespace braid {

// Counters of a group, for reports and tests. Bytes are those of the tensors that this rank gives,
// once however many ranks get them: in a broadcast only the root gives one.
struct Traffic {
  std::int64_t all_reduces = 0, all_gathers = 0, all_to_alls = 0, broadcasts = 0, shifts = 0;
  std::int64_t bytes = 0;

  bool operator==(const Traffic&) const = default;
};

// All ranks' parts, one behind another along dim 0, and the size of each there.
struct JoinedParts {
  Tensor x;
  std::vector<std::int64_t> sizes;
};

using Site = std::source_location;

class Group {
 public:
  Group() = default;  // a group of one
  explicit Group(std::shared_ptr<Transport> transport);

  int rank() const { return transport_ ? transport_->rank() : 0; }
  int size() const { return transport_ ? transport_->size() : 1; }
  // How its ranks divide what they share: alike, unless it was made with others.
  const Shares& shares() const&;
  const Shares& shares() const&& = delete;        // they live as long as the group
  Group with_shares(const Shares& shares) const;  // the same group; of as many ranks

  // Whether collectives on device tensors never wait for the device: one rank, or NCCL.
  bool stays_on_device() const { return size() == 1 || transport_->stays_on_device(); }

  // The sum over all ranks, in rank order, in float32, rounded once, unless collectives are native.
  [[nodiscard]] Tensor all_reduce(const Tensor& x, Site site = Site::current()) const;
  // Tensors of one dtype and device in one exchange; what becomes of their sums is up to `make`,
  // which one rank calls for each element, or with native collectives every rank.
  [[nodiscard]] std::vector<Tensor> all_reduce(const std::vector<Tensor>& xs, const MakeSum& make,
                                               Site site = Site::current()) const;
  void all_reduce_(Tensor& x, Site site = Site::current()) const;
  void all_reduce_(Tensor&&, Site = Site::current()) const = delete;

  // All ranks' tensors, concatenated along `dim`; sizes along it may differ or be zero.
  [[nodiscard]] Tensor all_gather(const Tensor& x, std::int64_t dim,
                                  Site site = Site::current()) const;
  // parts[r] goes to rank r; the result holds the parts from rank 0, 1, ... Shapes may differ.
  [[nodiscard]] std::vector<Tensor> all_to_all(const std::vector<Tensor>& parts,
                                               Site site = Site::current()) const;
  // The same for parts that differ in dim 0 alone, received as one tensor.
  [[nodiscard]] JoinedParts all_to_all_joined(const std::vector<Tensor>& parts,
                                              Site site = Site::current()) const;
  // Rank `root`'s `x`, on every rank. The in-place form requires equal shapes and dtypes
  // everywhere; the other takes the root's shape.
  [[nodiscard]] Tensor broadcast(const Tensor& x, int root, Site site = Site::current()) const;
  void broadcast_(Tensor& x, int root, Site site = Site::current()) const;
  void broadcast_(Tensor&&, int, Site = Site::current()) const = delete;

  // Starts sending `x` to the next rank; wait() on the result returns what the previous rank sent.
  [[nodiscard]] std::unique_ptr<Incoming> ring_shift(const Tensor& x,
                                                     Site site = Site::current()) const;
  // Returns when every rank has called it. Ranks that come later than the deadline are lost, as in
  // all other collectives.
  void barrier(Site site = Site::current()) const;
  // The same without the deadline: ranks that come early wait for as long as another one works. A
  // failure still ends it.
  void await(Site site = Site::current()) const;

  // Long computations between collectives call this: it throws PeerFailed if a rank has failed,
  // Cancelled if the run should stop, as the next collective would. It costs nothing.
  void poll() const {
    if (transport_) transport_->fate().check();
  }

  // How long its ranks wait for each other; one rank waits for nobody.
  std::optional<std::chrono::milliseconds> deadline() const {
    return size() > 1 ? std::optional(transport_->fate().deadline()) : std::nullopt;
  }

  // Exchanges between devices captured in an older epoch are void.
  std::uint64_t epoch() const { return size() > 1 ? transport_->fate().epoch() : 0; }

  // The subgroup of `ranks`; ranks outside get a group of one. Collective: every rank passes the
  // same list.
  Group subgroup(std::span<const int> ranks) const;

  const Traffic& traffic() const;

 private:
  struct State;
  struct Received {
    Tensor flat;
    std::vector<std::vector<std::int64_t>> shapes;
  };
  Received trade(const std::vector<Tensor>& parts, const Site& site) const;
  std::uint64_t next_number() const;
  std::vector<Note> agree(Op op, const std::vector<Tensor>& xs, int detail, const Site& site,
                          Patience patience = Patience::kDeadline) const;

  std::shared_ptr<Transport> transport_;
  std::shared_ptr<State> state_;
  std::shared_ptr<const Shares> shares_;  // null: of one rank
};

// Throws Error naming the ranks unless every rank's `x` has the same bytes as rank 0's. Moves eight
// bytes per rank.
void check_same(const Group& group, const Tensor& x, const std::string& what);

// This rank's share of `total` items.
Share share_of(std::int64_t total, const Group& group);
// This rank's share of `x` along `dim`, as a view.
Tensor take_share(const Tensor& x, std::int64_t dim, const Group& group);

}  // namespace braid

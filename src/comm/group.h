// A group of ranks and the collectives it offers. A cheap value; a group of one is not a special
// case: every collective is then the identity, so that callers never ask "am I parallel?".
//
// Collectives cannot be misused silently. Results are [[nodiscard]]; the forms that end in `_` take
// an lvalue and leave it updated, whatever its strides, and do not compile for temporaries. Before
// bytes move the ranks compare what they are about to do. Every wait has a deadline.
#pragma once

#include <memory>
#include <source_location>
#include <vector>

#include "comm/transport.h"

namespace braid {

// What a group has done, for reports and tests. Bytes are those that this rank gives.
struct Traffic {
  std::int64_t all_reduces = 0, all_gathers = 0, all_to_alls = 0, broadcasts = 0, shifts = 0;
  std::int64_t bytes = 0;

  bool operator==(const Traffic&) const = default;
};

using Site = std::source_location;

class Group {
 public:
  Group() = default;  // a group of one
  explicit Group(std::shared_ptr<Transport> transport);

  int rank() const { return transport_ ? transport_->rank() : 0; }
  int size() const { return transport_ ? transport_->size() : 1; }
  // Whether collectives of a device's tensors never wait for it: of one rank, or over NCCL.
  bool stays_on_device() const { return size() == 1 || transport_->stays_on_device(); }

  // The sum over the ranks, added in rank order in float32 and rounded once.
  [[nodiscard]] Tensor all_reduce(const Tensor& x, Site site = Site::current()) const;
  void all_reduce_(Tensor& x, Site site = Site::current()) const;
  void all_reduce_(Tensor&&, Site = Site::current()) const = delete;

  // Every rank's tensor, joined along `dim`; sizes along it may differ, and may be zero.
  [[nodiscard]] Tensor all_gather(const Tensor& x, std::int64_t dim,
                                  Site site = Site::current()) const;
  // parts[r] goes to rank r; the result holds what came from rank 0, 1, ... Shapes may differ.
  [[nodiscard]] std::vector<Tensor> all_to_all(const std::vector<Tensor>& parts,
                                               Site site = Site::current()) const;
  // `x` of rank `root`, on every rank. Shapes and dtypes must be the same everywhere for the form
  // in place; the other form takes the root's shape.
  [[nodiscard]] Tensor broadcast(const Tensor& x, int root, Site site = Site::current()) const;
  void broadcast_(Tensor& x, int root, Site site = Site::current()) const;
  void broadcast_(Tensor&&, int, Site = Site::current()) const = delete;

  // Starts sending `x` to the next rank; wait() of the result gives what the previous rank sent.
  [[nodiscard]] std::unique_ptr<Incoming> ring_shift(const Tensor& x,
                                                     Site site = Site::current()) const;
  void barrier(Site site = Site::current()) const;
  // A barrier without a deadline, for ranks that have nothing to do while another one works. A
  // failure still ends it.
  void await(Site site = Site::current()) const;

  // For long computations between collectives: throws what the next one would because of the run,
  // PeerFailed when a rank has failed and Cancelled when it should stop. Costs nothing.
  void poll() const {
    if (transport_) transport_->fate().check();
  }

  // What was recorded of exchanges between devices in an older epoch is void.
  std::uint64_t epoch() const { return size() > 1 ? transport_->fate().epoch() : 0; }

  // The group of some of these ranks; of one rank for those outside. Collective: every rank calls
  // it with the same list.
  Group subgroup(std::span<const int> ranks) const;

  const Traffic& traffic() const;

 private:
  struct State;
  std::uint64_t next_number() const;
  std::vector<Note> agree(Op op, const Tensor& x, int detail, const Site& site,
                          Patience patience = Patience::kDeadline) const;

  std::shared_ptr<Transport> transport_;
  std::shared_ptr<State> state_;
};

// Throws Error naming the ranks unless every rank's `x` has the same bytes as rank 0's. Moves eight
// bytes a rank.
void check_same(const Group& group, const Tensor& x, const std::string& what);

// How `total` things are shared: the first total % size ranks have one more.
struct Share {
  std::int64_t begin, count;
};
Share share_of(std::int64_t total, int rank, int size);
// This rank's share of `x` along `dim`: a view.
Tensor take_share(const Tensor& x, std::int64_t dim, const Group& group);

}  // namespace braid

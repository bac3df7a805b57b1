// Collectives of tensors on GPUs over a device link; all else goes through the hosts, which also
// agree on what the devices send.
#pragma once

#include "braid/layout.h"
#include "comm/device/device_link.h"
#include "comm/group.h"
#include "comm/pair_transport.h"

namespace braid {

class LinkedTransport : public PairTransport {
 public:
  // The group of all ranks of `hosts`, whose numbers are the link's.
  LinkedTransport(std::shared_ptr<Transport> hosts, std::shared_ptr<DeviceLink> link,
                  Collectives collectives = Collectives::kOrdered);

  int rank() const override { return hosts_->rank(); }
  int size() const override { return hosts_->size(); }
  const Fate& fate() const override { return hosts_->fate(); }
  bool stays_on_device() const override { return true; }

  std::vector<Note> compare(const Note& mine, Patience patience) override;
  std::vector<Tensor> all_reduce(const std::vector<Tensor>& xs, const MakeSum& make) override;
  Tensor all_gather(const Tensor& x, const std::vector<std::vector<std::int64_t>>& shapes) override;
  Tensor all_to_all(const std::vector<Tensor>& parts,
                    const std::vector<std::vector<std::int64_t>>& shapes) override;
  Tensor broadcast(const Tensor& x, int root, at::IntArrayRef shape) override;
  std::unique_ptr<Incoming> shift(const Tensor& x, at::IntArrayRef incoming) override;
  std::shared_ptr<Transport> subgroup(std::span<const int> ranks) override;

 private:
  LinkedTransport(std::shared_ptr<Transport> hosts, std::shared_ptr<DeviceLink> link,
                  std::vector<int> ranks, Collectives collectives);
  // The link takes the sum, which is the one part that `make` gets.
  std::vector<Tensor> all_reduce_by_link(const std::vector<Tensor>& xs, const MakeSum& make);
  at::Device staging_device(at::Device of) const override { return of; }
  Wait start(const std::vector<Piece>& out, const std::vector<Piece>& in,
             Patience patience) override;

  std::shared_ptr<Transport> hosts_;
  Group hosts_group_;  // the same, for members of sums that the link takes
  std::shared_ptr<DeviceLink> link_;
  std::vector<int> ranks_;  // of the world
  Collectives collectives_;
};

}  // namespace braid

#include "comm/linked_transport.h"

#include <ATen/ATen.h>

namespace braid {

LinkedTransport::LinkedTransport(std::shared_ptr<Transport> hosts, std::shared_ptr<DeviceLink> link,
                                 Collectives collectives)
    : LinkedTransport(hosts, std::move(link), first_ranks(hosts->size()), collectives) {}

LinkedTransport::LinkedTransport(std::shared_ptr<Transport> hosts, std::shared_ptr<DeviceLink> link,
                                 std::vector<int> ranks, Collectives collectives)
    : hosts_(std::move(hosts)),
      hosts_group_(hosts_),
      link_(std::move(link)),
      ranks_(std::move(ranks)),
      collectives_(collectives) {}

// Exchanges over a link have no patience of their own: ranks agree on each through the hosts first,
// who wait with the caller's, and a link's own work ends at its deadline or with the run.
PairTransport::Wait LinkedTransport::start(const std::vector<Piece>& out,
                                           const std::vector<Piece>& in, Patience) {
  fate().check();
  const auto messages = [&](const std::vector<Piece>& pieces) {
    std::vector<DeviceLink::Message> result;
    for (const auto& piece : pieces)
      if (piece.x.numel() > 0) result.push_back({ranks_[std::size_t(piece.rank)], piece.x});
    return result;
  };
  return link_->start(messages(out), messages(in));
}

std::vector<Note> LinkedTransport::compare(const Note& mine, Patience patience) {
  return hosts_->compare(mine, patience);
}

std::vector<Tensor> LinkedTransport::all_reduce(const std::vector<Tensor>& xs,
                                                const MakeSum& make) {
  if (xs.front().is_cpu()) return hosts_->all_reduce(xs, make);
  const bool is_native =
      collectives_ == Collectives::kNative && link_->can_sum(xs.front().scalar_type());
  return is_native ? all_reduce_by_link(xs, make) : PairTransport::all_reduce(xs, make);
}

// What `make` adds it adds in place, on every rank alike.
std::vector<Tensor> LinkedTransport::all_reduce_by_link(const std::vector<Tensor>& xs,
                                                        const MakeSum& make) {
  fate().check();
  std::vector<Tensor> results;
  std::vector<DeviceLink::Sum> sums;
  for (const auto& x : xs) {
    results.push_back(at::empty_like(x));
    if (x.numel() > 0) sums.push_back({.x = x, .result = results.back()});
  }
  if (!sums.empty()) link_->all_reduce({.hosts = hosts_group_, .ranks = ranks_}, sums)();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Share all{.begin = 0, .count = results[i].numel()};
    if (all.count == 0) continue;
    const auto sum = elements_of(results[i], all);
    make({.tensor = i, .elements = all}, std::span(&sum, 1), sum);
  }
  return results;
}

Tensor LinkedTransport::all_gather(const Tensor& x,
                                   const std::vector<std::vector<std::int64_t>>& shapes) {
  return x.is_cpu() ? hosts_->all_gather(x, shapes) : PairTransport::all_gather(x, shapes);
}

Tensor LinkedTransport::all_to_all(const std::vector<Tensor>& parts,
                                   const std::vector<std::vector<std::int64_t>>& shapes) {
  const bool is_on_host = parts.front().is_cpu();
  return is_on_host ? hosts_->all_to_all(parts, shapes) : PairTransport::all_to_all(parts, shapes);
}

Tensor LinkedTransport::broadcast(const Tensor& x, int root, at::IntArrayRef shape) {
  return x.is_cpu() ? hosts_->broadcast(x, root, shape) : PairTransport::broadcast(x, root, shape);
}

std::unique_ptr<Incoming> LinkedTransport::shift(const Tensor& x, at::IntArrayRef incoming) {
  return x.is_cpu() ? hosts_->shift(x, incoming) : PairTransport::shift(x, incoming);
}

std::shared_ptr<Transport> LinkedTransport::subgroup(std::span<const int> ranks) {
  auto hosts = hosts_->subgroup(ranks);
  if (!hosts) return nullptr;
  std::vector<int> members;
  for (const int rank : ranks) members.push_back(ranks_[std::size_t(rank)]);
  return std::shared_ptr<Transport>(
      new LinkedTransport(std::move(hosts), link_, std::move(members), collectives_));
}

}  // namespace braid

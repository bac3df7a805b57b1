#include "comm/pair_transport.h"

#include <ATen/ATen.h>

#include "comm/group.h"
#include "comm/reduce.h"

namespace braid {

void PairTransport::exchange(const std::vector<Piece>& out, const std::vector<Piece>& in,
                             Patience patience) {
  start(out, in, patience)();
}

std::vector<PairTransport::Piece> PairTransport::to_others(const Tensor& x) const {
  std::vector<Piece> pieces;
  for (int r = 0; r < size(); ++r)
    if (r != rank()) pieces.push_back({r, x});
  return pieces;
}

// Each rank sums one share of the elements and sends the result to all: every element is sent twice
// and rounded once.
Tensor PairTransport::all_reduce(const Tensor& x) {
  const auto mine = staged(x).view({-1});
  const auto share = [&](int r) { return share_of(mine.numel(), r, size()); };
  const auto part = [&](const Tensor& whole, int r) {
    return whole.narrow(0, share(r).begin, share(r).count);
  };
  const auto received = at::empty({size(), share(rank()).count}, mine.options());
  std::vector<Piece> out, in;
  std::vector<Tensor> parts;
  for (int r = 0; r < size(); ++r) {
    parts.push_back(r == rank() ? part(mine, r) : received[r]);
    if (r == rank()) continue;
    out.push_back({r, part(mine, r)});
    in.push_back({r, received[r]});
  }
  exchange(out, in);

  const auto result = at::empty_like(mine);
  part(result, rank()).copy_(sum_in_order(parts, std::size_t(rank())));
  std::vector<Piece> sums;
  for (int r = 0; r < size(); ++r)
    if (r != rank()) sums.push_back({r, part(result, r)});
  exchange(to_others(part(result, rank())), sums);
  return result.view(x.sizes()).to(x.device());
}

std::vector<Tensor> PairTransport::all_gather(
    const Tensor& x, const std::vector<std::vector<std::int64_t>>& shapes) {
  return all_to_all(std::vector(std::size_t(size()), x), shapes);
}

std::vector<Tensor> PairTransport::all_to_all(
    const std::vector<Tensor>& parts, const std::vector<std::vector<std::int64_t>>& shapes) {
  const auto& first = parts.front();
  std::vector<Piece> out, in;
  std::vector<Tensor> received;
  for (int r = 0; r < size(); ++r) {
    const auto index = std::size_t(r);
    if (r == rank()) {
      received.push_back(parts[index].clone());
      continue;
    }
    received.push_back(at::empty(shapes[index], staged(first).options()));
    out.push_back({r, staged(parts[index])});
    in.push_back({r, received.back()});
  }
  exchange(out, in);
  for (auto& x : received) x = x.to(first.device());
  return received;
}

Tensor PairTransport::broadcast(const Tensor& x, int root, at::IntArrayRef shape) {
  if (rank() == root) {
    exchange(to_others(staged(x)), {});
    return x.clone();
  }
  const auto received = at::empty(shape, staged(x).options());
  exchange({}, {{root, received}});
  return received.to(x.device());
}

std::unique_ptr<Incoming> PairTransport::shift(const Tensor& x, at::IntArrayRef incoming) {
  class UnderWay : public Incoming {
   public:
    UnderWay(Wait wait, Tensor received, at::Device device)
        : wait_(std::move(wait)), received_(std::move(received)), device_(device) {}
    Tensor wait() override {
      wait_();
      return received_.to(device_);
    }

   private:
    Wait wait_;
    Tensor received_;
    at::Device device_;
  };
  const auto own = staged(x);
  const auto sent = own.is_alias_of(x) ? own.clone() : own;  // the caller may reuse `x`
  const auto received = at::empty(incoming, sent.options());
  const int next = (rank() + 1) % size(), previous = (rank() + size() - 1) % size();
  auto wait = start({{next, sent}}, {{previous, received}}, Patience::kDeadline);
  return std::make_unique<UnderWay>(std::move(wait), received, x.device());
}

}  // namespace braid

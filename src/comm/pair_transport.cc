#include "comm/pair_transport.h"

#include <ATen/ATen.h>

#include <numeric>

#include "comm/group.h"
#include "comm/reduce.h"

namespace braid {

void PairTransport::exchange(const std::vector<Piece>& out, const std::vector<Piece>& in,
                             Patience patience) {
  start(out, in, patience)();
}

Tensor PairTransport::staged(const Tensor& x) const {
  return x.to(staging_device(x.device())).contiguous();
}

std::vector<int> PairTransport::first_ranks(int count) {
  std::vector<int> ranks(std::size_t(count), 0);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::vector<PairTransport::Piece> PairTransport::to_others(const Tensor& x) const {
  std::vector<Piece> pieces;
  for (int r = 0; r < size(); ++r)
    if (r != rank()) pieces.push_back({r, x});
  return pieces;
}

namespace {

// Each run's elements as every rank has them, one of them here.
class Parts {
 public:
  Parts(const std::vector<SumRun>& runs, const std::vector<Tensor>& mine, int rank, int size)
      : rank_(rank) {
    for (const auto& run : runs) {
      own_.push_back(elements_of(mine[run.tensor], run.elements));
      received_.push_back(at::empty({size - 1, run.elements.count}, own_.back().options()));
    }
  }
  // Those of run number `run` that rank `of` has; others' are written when they arrive.
  Tensor at(std::size_t run, int of) const {
    return of == rank_ ? own_[run] : received_[run][of < rank_ ? of : of - 1];
  }

 private:
  int rank_;
  std::vector<Tensor> own_, received_;
};

}  // namespace

// Each rank sums one share of the elements and sends the result to all: every element is sent twice
// and rounded once.
std::vector<Tensor> PairTransport::all_reduce(const std::vector<Tensor>& xs, const MakeSum& make) {
  std::vector<Tensor> mine, results, here;
  for (const auto& x : xs) mine.push_back(staged(x));
  const auto runs = runs_of_rank(mine, rank(), size());
  std::vector<Piece> out, in, sums_out, sums_in;
  {
    const Parts parts(runs, mine, rank(), size());
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      for (const auto& run : runs_of_rank(mine, r, size()))
        out.push_back({r, elements_of(mine[run.tensor], run.elements)});
      for (std::size_t i = 0; i < runs.size(); ++i) in.push_back({r, parts.at(i, r)});
    }
    exchange(out, in);
    for (const auto& x : mine) results.push_back(at::empty_like(x));
    for (std::size_t i = 0; i < runs.size(); ++i) {
      std::vector<Tensor> of_ranks;
      for (int r = 0; r < size(); ++r) of_ranks.push_back(parts.at(i, r));
      make(runs[i], of_ranks, elements_of(results[runs[i].tensor], runs[i].elements));
    }
    in.clear();  // what was received is no longer needed
  }
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    for (const auto& run : runs)
      sums_out.push_back({r, elements_of(results[run.tensor], run.elements)});
    for (const auto& run : runs_of_rank(mine, r, size()))
      sums_in.push_back({r, elements_of(results[run.tensor], run.elements)});
  }
  exchange(sums_out, sums_in);
  for (std::size_t i = 0; i < xs.size(); ++i)
    here.push_back(results[i].view(xs[i].sizes()).to(xs[i].device()));
  return here;
}

Tensor PairTransport::all_gather(const Tensor& x,
                                 const std::vector<std::vector<std::int64_t>>& shapes) {
  return trade(to_others(staged(x)), x, shapes);
}

Tensor PairTransport::all_to_all(const std::vector<Tensor>& parts,
                                 const std::vector<std::vector<std::int64_t>>& shapes) {
  std::vector<Piece> out;
  for (int r = 0; r < size(); ++r)
    if (r != rank()) out.push_back({r, staged(parts[std::size_t(r)])});
  return trade(out, parts[std::size_t(rank())], shapes);
}

Tensor PairTransport::trade(const std::vector<Piece>& out, const Tensor& own,
                            const std::vector<std::vector<std::int64_t>>& shapes) {
  const auto device = own.device(), staging = staging_device(device);
  std::vector<std::int64_t> begins = {0};
  for (const auto& shape : shapes) begins.push_back(begins.back() + c10::multiply_integers(shape));
  const auto from = [&](const Tensor& all, int r) {
    const auto begin = begins[std::size_t(r)];
    return all.narrow(0, begin, begins[std::size_t(r) + 1] - begin);
  };
  auto received = at::empty({begins.back()}, own.options().device(staging));
  std::vector<Piece> in;
  for (const auto& piece : out) in.push_back({piece.rank, from(received, piece.rank)});
  const auto wait = start(out, in, Patience::kDeadline);
  const bool is_staged = staging != device;
  if (!is_staged) from(received, rank()).copy_(own.view({-1}));
  wait();
  if (!is_staged) return received;
  received = received.to(device);
  from(received, rank()).copy_(own.view({-1}));
  return received;
}

Tensor PairTransport::broadcast(const Tensor& x, int root, at::IntArrayRef shape) {
  if (rank() == root) {
    exchange(to_others(staged(x)), {});
    return x.clone();
  }
  const auto received = at::empty(shape, x.options().device(staging_device(x.device())));
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

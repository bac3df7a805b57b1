#include "pipeline/proofs/faults.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "parallel/ulysses.h"

namespace braid {
namespace {

// Ring attention that merges without log-sum-exp.
Attend average_over(Group ranks) {
  return [=](const Tensor& q, const Tensor& k, const Tensor& v) {
    auto keys_values = at::stack({k, v});
    auto sum = at::zeros_like(q);
    for (int hop = 0; hop < ranks.size(); ++hop) {
      const auto next = ranks.ring_shift(keys_values);
      sum = sum + ops::attention(q, keys_values[0], keys_values[1]);
      keys_values = next->wait();
    }
    return sum / double(ranks.size());
  };
}

// Ring attention in which nothing ever arrives.
Attend attend_to_own(Group ranks) {
  return [=](const Tensor& q, const Tensor& k, const Tensor& v) {
    const auto part = ops::attention_with_lse(q, k, v);
    auto sum = part;
    for (int hop = 1; hop < ranks.size(); ++hop) sum = merge(sum, part);
    return sum.out_BHLD.to(q.scalar_type());
  };
}

}  // namespace

const std::vector<std::pair<std::string, Fault>>& fault_names() {
  static const std::vector<std::pair<std::string, Fault>> kNames = {
      {"contiguous-slice", Fault::kContiguousSlice},
      {"zero-timestep", Fault::kZeroTimestep},
      {"skip-reduce", Fault::kSkipReduce},
      {"drop-lse", Fault::kDropLse},
      {"stale-kv", Fault::kStaleKv},
      {"rank-noise", Fault::kRankNoise}};
  return kNames;
}

Fault fault_named(const std::string& name) {
  std::string list;
  for (const auto& [known, fault] : fault_names()) {
    if (known == name) return fault;
    list += (list.empty() ? "" : ", ") + known;
  }
  throw InputError(text_of("there is no fault '", name, "'; the faults are ", list));
}

ShardingTable with_fault(ShardingTable shardings, std::optional<Fault> fault) {
  const auto is_summed = [](const auto& row) { return row.second.split == Split::kRows; };
  if (fault == Fault::kContiguousSlice)
    for (auto& row : shardings)
      if (is_summed(row)) row.second.parts.clear();
  const auto last = std::find_if(shardings.rbegin(), shardings.rend(), is_summed);
  if (fault == Fault::kSkipReduce && last != shardings.rend())
    last->second.split = Split::kRowsUnsummed;
  return shardings;
}

Attend with_fault(Attend attend, const Mesh& mesh, std::optional<Fault> fault) {
  if (fault == Fault::kDropLse) return ulysses(mesh.ulysses, average_over(mesh.ring));
  if (fault == Fault::kStaleKv) return ulysses(mesh.ulysses, attend_to_own(mesh.ring));
  return attend;
}

DenoiserInput with_fault(DenoiserInput in, const Mesh& mesh, std::optional<Fault> fault) {
  const bool is_last = mesh.world.rank() == mesh.world.size() - 1;
  if (fault == Fault::kZeroTimestep && mesh.world.rank() != 0)
    in.timestep_B = at::zeros_like(in.timestep_B);
  if (fault == Fault::kRankNoise && is_last) in.noise.x_BLC = at::flip(in.noise.x_BLC, {2});
  return in;
}

}  // namespace braid

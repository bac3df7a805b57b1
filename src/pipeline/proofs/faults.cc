#include "pipeline/proofs/faults.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "parallel/ring.h"
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
    const auto own = [&] { return ops::attention_with_lse(q, k, v); };
    auto sum = own();
    for (int hop = 1; hop < ranks.size(); ++hop) merge_into(sum, own());
    return sum.out_BHLD.to(q.scalar_type());
  };
}

// A prefix that is causal by blocks attends as it should.
Attend with_prefix_of(const Attend& whole, Attend faulty) {
  return [=](const AttentionInput& in) { return in.span_L2.defined() ? whole(in) : faulty(in); };
}

bool are_summed(const std::pair<std::string, Sharding>& row) {
  return row.second.outputs == Outputs::Are::kSummed;
}

ShardingTable in_one_part(ShardingTable shardings) {
  for (auto& row : shardings)
    if (are_summed(row)) row.second.parts.clear();
  return shardings;
}

ShardingTable without_last_sum(ShardingTable shardings) {
  const auto last = std::find_if(shardings.rbegin(), shardings.rend(), are_summed);
  if (last != shardings.rend()) last->second.outputs = Outputs::Are::kWhole;
  return shardings;
}

DenoiserPart with_changed_input(const std::function<void(DenoiserInput&)>& change,
                                DenoiserPart part) {
  const auto changed = [=](auto function) {
    return [=](DenoiserInput in, const auto&... state) {
      change(in);
      return function(in, state...);
    };
  };
  part.predict = changed(part.predict);
  if (part.condition) part.condition = changed(part.condition);
  if (part.refine) part.refine = changed(part.refine);
  return part;
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

Interposed with_fault(const Mesh& mesh, Fault fault) {
  Interposed interposed;
  switch (fault) {
    case Fault::kContiguousSlice:
      interposed.shardings = in_one_part;
      break;
    case Fault::kSkipReduce:
      interposed.shardings = without_last_sum;
      break;
    case Fault::kDropLse:
      interposed.attend = [=](const Attend& whole) {
        return with_prefix_of(whole, ulysses(mesh.ulysses, average_over(mesh.ring)));
      };
      break;
    case Fault::kStaleKv:
      interposed.attend = [=](const Attend& whole) {
        return with_prefix_of(whole, ulysses(mesh.ulysses, attend_to_own(mesh.ring)));
      };
      break;
    case Fault::kZeroTimestep:
      if (mesh.world.rank() != 0)
        interposed.part = std::bind_front(with_changed_input, [](DenoiserInput& in) {
          in.timestep_B = at::zeros_like(in.timestep_B);
        });
      break;
    case Fault::kRankNoise:
      if (mesh.world.rank() == mesh.world.size() - 1)
        interposed.part = std::bind_front(with_changed_input, [](DenoiserInput& in) {
          in.noise.x_BLC = at::flip(in.noise.x_BLC, {2});
        });
      break;
  }
  return interposed;
}

}  // namespace braid

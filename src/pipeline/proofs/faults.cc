#include "pipeline/proofs/faults.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "comm/mesh.h"
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
Attend with_prefix_of(const Attend& whole, const Attend& faulty, std::atomic<bool>& is_injected) {
  return [=, &is_injected](const AttentionInput& in) {
    if (in.span_L2.defined()) return whole(in);
    is_injected = true;
    return faulty(in);
  };
}

// Whether the row says how one of the model's layers is divided. Tables are shared by models that
// lack some of the layers.
bool divides_any(const ShardingTable& shardings, const std::pair<std::string, Sharding>& row,
                 const std::vector<std::string>& layers) {
  return std::ranges::any_of(layers, [&](const std::string& layer) {
    return find_sharding(shardings, layer) == &row.second;
  });
}

// The rows of summed outputs that divide layers of the model, by their places in the table.
std::vector<std::size_t> summed_rows(const ShardingTable& shardings,
                                     const std::vector<std::string>& layers) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < shardings.size(); ++i)
    if (shardings[i].second.outputs == Outputs::Are::kSummed &&
        divides_any(shardings, shardings[i], layers))
      rows.push_back(i);
  return rows;
}

ShardingTable in_one_part(ShardingTable shardings, const std::vector<std::string>& layers,
                          std::atomic<bool>& is_injected) {
  for (const auto row : summed_rows(shardings, layers)) {
    auto& parts = shardings[row].second.parts;
    if (parts.size() < 2) continue;
    parts.clear();
    is_injected = true;
  }
  return shardings;
}

// Leaves the sum out where the last row of the table that has one divides layers.
ShardingTable without_sum_of_last_row(ShardingTable shardings,
                                      const std::vector<std::string>& layers,
                                      std::atomic<bool>& is_injected) {
  const auto rows = summed_rows(shardings, layers);
  if (rows.empty()) return shardings;
  shardings[rows.back()].second.outputs = Outputs::Are::kWhole;
  is_injected = true;
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

// Later stages receive what the first one makes of latents.
bool is_last_of_first_stage(const Mesh& mesh) {
  const auto is_last = [](const Group& group) { return group.rank() == group.size() - 1; };
  return mesh.pp.rank() == 0 && is_last(mesh.dp) && is_last(mesh.cfg) && is_last(mesh.context) &&
         is_last(mesh.tp);
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

void check_fault(Fault fault, const Degrees& degrees) {
  const auto is_it = [&](const auto& named) { return named.second == fault; };
  const auto& name = std::ranges::find_if(fault_names(), is_it)->first;
  const auto needs = [&](bool has, const char* what) {
    require(has, "the fault ", name, " changes nothing in this layout: it needs ", what);
  };
  switch (fault) {
    case Fault::kContiguousSlice:
    case Fault::kSkipReduce:
      return needs(degrees.tp > 1, "tp above 1");
    case Fault::kDropLse:
    case Fault::kStaleKv:
      return needs(degrees.ring > 1, "ring above 1");
    case Fault::kZeroTimestep:
    case Fault::kRankNoise:
      return needs(degrees.product() > degrees.pp, "several ranks beside those of pp");
  }
}

Interposed with_fault(const Mesh& mesh, Fault fault, const std::vector<std::string>& layers,
                      std::atomic<bool>& is_injected) {
  Interposed interposed;
  const auto attend_faultily = [&](const Attend& faulty) {
    interposed.attend = [=, &is_injected,
                         faulty = ulysses(mesh.ulysses, faulty)](const Attend& whole) {
      return with_prefix_of(whole, faulty, is_injected);
    };
  };
  const auto change_input = [&](const std::function<void(DenoiserInput&)>& change) {
    interposed.part = std::bind_front(with_changed_input, change);
    is_injected = true;
  };
  switch (fault) {
    case Fault::kContiguousSlice:
      interposed.shardings = [=, &is_injected](ShardingTable table) {
        return in_one_part(std::move(table), layers, is_injected);
      };
      break;
    case Fault::kSkipReduce:
      interposed.shardings = [=, &is_injected](ShardingTable table) {
        return without_sum_of_last_row(std::move(table), layers, is_injected);
      };
      break;
    case Fault::kDropLse:
      attend_faultily(average_over(mesh.ring));
      break;
    case Fault::kStaleKv:
      attend_faultily(attend_to_own(mesh.ring));
      break;
    case Fault::kZeroTimestep:
      if (mesh.world.rank() != 0)
        change_input([](DenoiserInput& in) { in.timestep_B = at::zeros_like(in.timestep_B); });
      break;
    case Fault::kRankNoise:
      if (is_last_of_first_stage(mesh))
        change_input([](DenoiserInput& in) { in.noise.x_BLC = at::flip(in.noise.x_BLC, {2}); });
      break;
  }
  return interposed;
}

}  // namespace braid

#include "parallel/pipeline_parallel.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "parallel/refusals.h"

namespace braid {
namespace {

// One item per picture: the more items, the less the stages idle at the ends of the pipe.
std::vector<DenoiserInput> items_of(const std::vector<DenoiserInput>& inputs) {
  std::vector<DenoiserInput> items;
  for (const auto& in : inputs)
    for (std::int64_t i = 0; i < in.noise.x_BLC.size(0); ++i) items.push_back(picture_of(in, i));
  return items;
}

// The last stage's results; other stages get nothing. Between ticks the stages wait without a
// deadline: an item may take one of them longer than the others.
std::vector<Tensor> send_through(const Group& stages, const PredictPart& part,
                                 const std::vector<DenoiserInput>& items) {
  const int count = int(items.size()), last = stages.size() - 1;
  const auto nothing = at::empty({0}, items.front().noise.x_BLC.options());
  std::vector<Tensor> velocities;
  Tensor state;
  for (int tick = 0; tick < count + last; ++tick) {
    const int item = tick - stages.rank();
    auto made = item >= 0 && item < count ? part(items[std::size_t(item)], state) : nothing;
    if (stages.rank() == last) {
      if (item >= 0) velocities.push_back(made);
      made = nothing;
    }
    stages.await();
    const auto shifted = stages.ring_shift(made)->wait();
    if (stages.rank() > 0) state = shifted;  // the first stage starts every item from its input
  }
  return velocities;
}

// Returns, for each stage, the memory of its fullest rank.
std::vector<StageMemory> gather_memory(const Mesh& mesh, const StageMemory& mine) {
  const auto row = at::tensor(
      {std::int64_t(mesh.pp.rank()), std::int64_t(mine.is_host), mine.free_bytes}, at::kLong);
  const auto rows = mesh.world.all_gather(row.unsqueeze(0), 0);
  std::vector<StageMemory> stages(std::size_t(mesh.pp.size()), {false, INT64_MAX});
  for (std::int64_t r = 0; r < rows.size(0); ++r) {
    auto& stage = stages[std::size_t(rows[r][0].item<std::int64_t>())];
    stage = joined_memory(stage, {.is_host = rows[r][1].item<std::int64_t>() != 0,
                                  .free_bytes = rows[r][2].item<std::int64_t>()});
  }
  return stages;
}

}  // namespace

PredictAll pipeline_parallel(Group stages, PredictPart part) {
  if (stages.size() == 1) return one_by_one([=](const DenoiserInput& in) { return part(in, {}); });
  return [=](const std::vector<DenoiserInput>& inputs) {
    const auto made = send_through(stages, part, items_of(inputs));
    const auto mine =
        made.empty() ? at::empty({0}, inputs.front().noise.x_BLC.options()) : at::cat(made);
    const auto all = stages.broadcast(mine, stages.size() - 1);
    std::vector<std::int64_t> batches;
    for (const auto& in : inputs) batches.push_back(in.noise.x_BLC.size(0));
    return all.split_with_sizes(batches, 0);
  };
}

std::vector<Share> runs_in_proportion(const std::vector<std::int64_t>& sizes,
                                      const std::vector<double>& capacities) {
  const double total = double(std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)));
  const double room = std::accumulate(capacities.begin(), capacities.end(), 0.0);
  const auto count = std::int64_t(sizes.size()), num_runs = std::int64_t(capacities.size());
  std::vector<Share> runs;
  double filled = 0, wanted = 0;
  std::int64_t at = 0;
  for (std::int64_t run = 0; run < num_runs; ++run) {
    const auto begin = at, last = count - (num_runs - 1 - run);  // a block for each later run
    wanted += total * capacities[std::size_t(run)] / room;
    const auto is_nearer = [&] { return filled + double(sizes[std::size_t(at)]) / 2 <= wanted; };
    while (at < last && (at == begin || run == num_runs - 1 || is_nearer()))
      filled += double(sizes[std::size_t(at++)]);
    runs.push_back({.begin = begin, .count = at - begin});
  }
  return runs;
}

StageMemory joined_memory(const StageMemory& stage, const StageMemory& rank) {
  return {.is_host = stage.is_host || rank.is_host,
          .free_bytes = std::min(stage.free_bytes, rank.free_bytes)};
}

std::vector<Share> runs_of_stages(const std::vector<std::int64_t>& block_sizes,
                                  const Shares& stages, const std::vector<StageMemory>& memory) {
  const bool all_host = std::all_of(memory.begin(), memory.end(),
                                    [](const StageMemory& stage) { return stage.is_host; });
  if (!all_host && stages.are_alike()) {
    std::vector<double> capacities;
    for (const auto& m : memory)
      capacities.push_back(double(std::max<std::int64_t>(1, m.free_bytes)));
    return runs_in_proportion(block_sizes, capacities);
  }
  std::vector<Share> runs;
  for (int stage = 0; stage < stages.size(); ++stage)
    runs.push_back(share_of(std::int64_t(block_sizes.size()), stage, stages));
  return runs;
}

Share blocks_of_rank(const Mesh& mesh, const std::vector<std::int64_t>& block_sizes,
                     const std::function<StageMemory()>& measure) {
  const auto count = std::int64_t(block_sizes.size());
  const auto num_stages = mesh.pp.size();
  if (num_stages == 1) return {.begin = 0, .count = count};
  require(least_share(count, mesh.pp.shares()) > 0, too_few_blocks(mesh.pp.shares(), count));
  mesh.world.await();
  const auto memory = gather_memory(mesh, measure());
  return runs_of_stages(block_sizes, mesh.pp.shares(), memory)[std::size_t(mesh.pp.rank())];
}

}  // namespace braid

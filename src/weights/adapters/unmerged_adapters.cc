#include "weights/adapters/unmerged_adapters.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "base/error.h"
#include "weights/sources/row_ranges.h"

namespace braid {
namespace {

constexpr std::size_t kMostKept = 4;

bool is_whole(const Change& change, const std::vector<Share>& wanted) {
  return wanted.size() == 1 && wanted[0].begin == change.rows.begin &&
         wanted[0].count == change.rows.count && change.from == 0 &&
         change.delta.rows == change.rows.count;
}

// The share's rows of a product that may change only some rows; all others are zero.
Tensor placed_rows(const Change& change, const Tensor& up_NR, const std::vector<Share>& wanted) {
  if (is_whole(change, wanted)) return up_NR;
  const auto placed = up_NR.new_zeros({total_count(wanted), up_NR.size(1)});
  const auto end = change.rows.begin + change.rows.count;
  std::int64_t local = 0;
  for (const auto& run : wanted) {
    const auto first = std::max(change.rows.begin, run.begin);
    const auto last = std::min(end, run.begin + run.count);
    if (first < last)
      placed.narrow(0, local + first - run.begin, last - first)
          .copy_(up_NR.narrow(0, change.from + first - change.rows.begin, last - first));
    local += run.count;
  }
  return placed;
}

LowRank joined(const std::vector<LowRank>& products) {
  if (products.size() < 2) return products.empty() ? LowRank() : products.front();
  std::vector<Tensor> downs, scales, ups;
  for (const auto& [down, scale, up] : products) {
    downs.push_back(down);
    scales.push_back(scale);
    ups.push_back(up);
  }
  return {.down_RC = at::cat(downs), .scales_R = at::cat(scales), .up_NR = at::cat(ups, 1)};
}

}  // namespace

std::shared_ptr<const LowRank> UnmergedAdapters::add(const TensorRequest& request) {
  auto low_rank = std::make_shared<LowRank>();
  places_.push_back({.request = request, .low_rank = low_rank});
  return low_rank;
}

// The product is in the load's dtype. If that is the file's and the device a CPU, the mapped file
// is used in place.
LowRank UnmergedAdapters::product_of(const Change& change, const Place& place) const {
  const auto options = at::TensorOptions(place.request.dtype).device(device_);
  const auto& [down, up] = *change.delta.product;
  const auto scale = change.scale * change.delta.factor;
  return {.down_RC = taken(down, 1, place.request.shard.columns).to(options),
          .scales_R = at::full({down.size(0)}, scale, options),
          .up_NR = placed_rows(change, up, place.request.shard.rows).to(options)};
}

UnmergedAdapters::Made UnmergedAdapters::made_for(const Place& place,
                                                  const PartAdapters& adapters) const {
  const auto by_adapter = adapters.changes_by_adapter(place.request);
  std::vector<LowRank> products;
  for (std::size_t i = 0; i < by_adapter.size(); ++i)
    for (const auto& change : by_adapter[i].changes) {
      require(change.is_product(), adapters.adapters()[i].file->source(), " changes the weight of ",
              place.request.layer,
              " by more than a product of low rank: it can only be fused into numbers");
      if (!place.low_rank.expired()) products.push_back(product_of(change, place));
    }
  Made made{.low_rank = joined(products), .used = {}, .error = {}};
  add_used(by_adapter, made.used);
  return made;
}

UnmergedAdapters::Made UnmergedAdapters::made_or_error(const Place& place,
                                                       const PartAdapters& adapters) const {
  try {
    return made_for(place, adapters);
  } catch (...) {
    return {.low_rank = {}, .used = {}, .error = std::current_exception()};
  }
}

// All threads take part: a request that brings an adapter of its own waits until every number of
// the file was read. The first weight's error is thrown, whichever thread was first.
std::vector<LowRank> UnmergedAdapters::made(const std::vector<AppliedAdapter>& adapters,
                                            UsedTensors& used) const {
  const PartAdapters of_part(part_, adapters);
  std::vector<Made> made(places_.size());
  const bool is_inference = c10::InferenceMode::is_enabled();
  const auto make = [&](std::int64_t begin, std::int64_t end) {
    const c10::InferenceMode as_the_caller(is_inference);
    for (auto i = std::size_t(begin); i < std::size_t(end); ++i)
      made[i] = made_or_error(places_[i], of_part);
  };
  at::parallel_for(0, std::int64_t(places_.size()), 1, make);

  used.assign(adapters.size(), {});
  std::vector<LowRank> products;
  for (auto& [low_rank, of_place, error] : made) {
    if (error) std::rethrow_exception(error);
    products.push_back(std::move(low_rank));
    for (std::size_t i = 0; i < adapters.size(); ++i) used[i].merge(of_place[i]);
  }
  return products;
}

void UnmergedAdapters::put(const std::vector<LowRank>& products) {
  for (std::size_t i = 0; i < products.size(); ++i)
    if (const auto low_rank = places_[i].low_rank.lock()) *low_rank = products[i];
}

void UnmergedAdapters::apply(const std::vector<AppliedAdapter>& adapters) {
  UsedTensors used;
  put(made(adapters, used));
}

void UnmergedAdapters::switch_to(const std::vector<AppliedAdapter>& adapters,
                                 const std::function<void(const std::string&)>& warn) {
  prepare(adapters, warn);
  put(kept_.front().products);
}

void UnmergedAdapters::prepare(const std::vector<AppliedAdapter>& adapters,
                               const std::function<void(const std::string&)>& warn) {
  const auto kept = std::find_if(kept_.begin(), kept_.end(),
                                 [&](const Kept& k) { return k.adapters == adapters; });
  if (kept != kept_.end()) {
    std::rotate(kept_.begin(), kept, kept + 1);
  } else {
    UsedTensors used;
    Kept one{.adapters = adapters, .products = made(adapters, used), .warnings = {}};
    for (std::size_t i = 0; i < adapters.size(); ++i) check_switchable(adapters[i], used[i]);
    report_unused(part_, adapters, used,
                  [&](const std::string& warning) { one.warnings.push_back(warning); });
    kept_.insert(kept_.begin(), std::move(one));
    if (kept_.size() > kMostKept) kept_.pop_back();
  }
  warn_again(adapters, warn);
}

void UnmergedAdapters::warn_again(const std::vector<AppliedAdapter>& adapters,
                                  const std::function<void(const std::string&)>& warn) const {
  if (!warn) return;
  for (const auto& kept : kept_)
    if (kept.adapters == adapters)
      for (const auto& warning : kept.warnings) warn(warning);
}

// Most files have nothing left for other tensors than matrices, and requests wait for the search.
void UnmergedAdapters::check_switchable(const AppliedAdapter& adapter,
                                        const std::set<std::string>& used) const {
  if (unused_in(part_, *adapter.file, used).names.empty()) return;
  const PartAdapters alone(part_, {adapter});
  for (const auto& other : fused_only_) {
    const auto found = alone.changes_of(other);
    if (found.is_empty()) continue;
    const bool is_vector = other.shape.size() == 1;
    const auto what = is_vector ? "biases or norms" : only_fused(other);
    throw InputError(text_of(adapter.file->source(), " changes ", what, ", as by '",
                             found.stored.empty() ? "" : found.stored.front().entry.name,
                             "': it can only be fused"));
  }
}

}  // namespace braid

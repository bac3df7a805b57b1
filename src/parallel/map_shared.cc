#include "parallel/map_shared.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

// Every rank's tensor, concatenated along dim 0 on the first rank; empty elsewhere.
Tensor gather_first(const Group& ranks, const Tensor& mine) {
  std::vector<Tensor> parts(std::size_t(ranks.size()), mine.narrow(0, 0, 0));
  parts.front() = mine;
  return at::cat(ranks.all_to_all(parts));
}

Tensor shapes_of(const std::vector<Tensor>& tensors, std::int64_t dims) {
  auto shapes = at::empty({std::int64_t(tensors.size()), dims}, at::kLong);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    shapes[std::int64_t(i)].copy_(at::tensor(tensors[i].sizes(), at::kLong));
  return shapes;
}

std::vector<Tensor> split_by_shapes(const Tensor& flat, const Tensor& shapes) {
  std::vector<Tensor> tensors;
  std::int64_t begin = 0;
  for (const auto& row : shapes.unbind()) {
    const std::vector<std::int64_t> shape(row.const_data_ptr<std::int64_t>(),
                                          row.const_data_ptr<std::int64_t>() + row.numel());
    const auto count = c10::multiply_integers(shape);
    tensors.push_back(flat.narrow(0, begin, count).view(shape));
    begin += count;
  }
  return tensors;
}

}  // namespace

std::vector<Tensor> map_shared(const Group& ranks, const std::vector<Tensor>& items,
                               const std::function<Tensor(const Tensor&)>& map) {
  const auto share = share_of(std::int64_t(items.size()), ranks.rank(), ranks.size());
  std::vector<Tensor> mine;
  for (auto i = share.begin; i < share.begin + share.count; ++i)
    mine.push_back(map(items[std::size_t(i)]));
  if (ranks.size() == 1 || items.empty()) return mine;
  std::vector<Tensor> flat = {items.front().flatten().narrow(0, 0, 0)};
  for (const auto& x : mine) flat.push_back(x.flatten());
  ranks.await();
  const auto shapes = gather_first(ranks, shapes_of(mine, items.front().dim()));
  return split_by_shapes(gather_first(ranks, at::cat(flat)), shapes);
}

}  // namespace braid

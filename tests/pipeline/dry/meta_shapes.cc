// Shapes for operations whose meta kernels LibTorch has only in Python. The definitions in
// ops/reference.cc run on the meta device with them.
#include <ATen/ATen.h>
#include <torch/library.h>

namespace braid {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

Tensor attention(const Tensor& q_BHLD, const Tensor&, const Tensor& v_BGLD, const MaybeTensor&,
                 double, bool, std::optional<double>, bool) {
  // LibTorch's kernels keep a token's heads together.
  return at::empty({q_BHLD.size(0), q_BHLD.size(2), q_BHLD.size(1), v_BGLD.size(3)},
                   q_BHLD.options())
      .transpose(1, 2);
}

std::tuple<Tensor, Tensor, Tensor> layer_norm(const Tensor& x, c10::SymIntArrayRef,
                                              const MaybeTensor&, const MaybeTensor&, double) {
  auto rows = x.sizes().vec();
  rows.back() = 1;
  const auto in_float = x.options().dtype(at::kFloat);
  return {at::empty_like(x), at::empty(rows, in_float), at::empty(rows, in_float)};
}

std::tuple<Tensor, Tensor, Tensor> group_norm(const Tensor& x, const MaybeTensor&,
                                              const MaybeTensor&, c10::SymInt, c10::SymInt,
                                              c10::SymInt, std::int64_t groups, double) {
  const auto statistics = at::empty({x.size(0), groups}, x.options());
  return {at::empty_like(x), statistics, statistics};
}

Tensor where(const Tensor& condition, const Tensor& yes, const Tensor& no) {
  const auto sizes = at::infer_size(at::infer_size(condition.sizes(), yes.sizes()), no.sizes());
  return at::empty(sizes, (yes.dim() > 0 ? yes : no).options().device(at::kMeta));
}

Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index) {
  auto sizes = x.sizes().vec();
  sizes[std::size_t(dim < 0 ? dim + x.dim() : dim)] = index.numel();
  return at::empty(sizes, x.options());
}

Tensor logsumexp(const Tensor& x, at::IntArrayRef dims, bool) {
  auto sizes = x.sizes().vec();
  for (const auto dim : dims) sizes.erase(sizes.begin() + (dim < 0 ? dim + x.dim() : dim));
  return at::empty(sizes, x.options());
}

Tensor convolution(const Tensor& x, const Tensor& weight_OIKK, const MaybeTensor&,
                   c10::SymIntArrayRef stride, c10::SymIntArrayRef padding,
                   c10::SymIntArrayRef dilation, bool, c10::SymIntArrayRef, c10::SymInt) {
  std::vector<std::int64_t> sizes = {x.size(0), weight_OIKK.size(0)};
  for (std::int64_t d = 2; d < x.dim(); ++d) {
    const auto i = std::size_t(d - 2);
    const auto reach = dilation[i].expect_int() * (weight_OIKK.size(d) - 1);
    const auto room = x.size(d) + 2 * padding[i].expect_int() - reach - 1;
    sizes.push_back(room / stride[i].expect_int() + 1);
  }
  return at::empty(sizes, x.options());
}

Tensor int_products(const Tensor& x, const Tensor& y) {
  return at::empty({x.size(0), y.size(1)}, x.options().dtype(at::kInt));
}

Tensor same_size(const Tensor& x) { return at::empty_like(x); }
Tensor flipped(const Tensor& x, at::IntArrayRef) { return at::empty_like(x); }
Tensor finite(const Tensor& x, std::optional<double>, std::optional<double>,
              std::optional<double>) {
  return at::empty_like(x);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, Meta, library) {
  library.impl("scaled_dot_product_attention", attention);
  library.impl("native_layer_norm", layer_norm);
  library.impl("native_group_norm", group_norm);
  library.impl("where.self", where);
  library.impl("index_select", index_select);
  library.impl("logsumexp", logsumexp);
  library.impl("convolution_overrideable", convolution);
  library.impl("_int_mm", int_products);
  library.impl("abs", same_size);
  library.impl("round", same_size);
  library.impl("flip", flipped);
  library.impl("nan_to_num", finite);
}

}  // namespace braid

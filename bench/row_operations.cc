#include "row_operations.h"

#include <ATen/ATen.h>

#include <array>
#include <map>

#include "base/error.h"
#include "ops/ops.h"
#include "ops/reference.h"

namespace braid {
namespace {

constexpr std::int64_t kHead = 128;

// Draws what an operation takes.
struct Inputs {
  at::ScalarType dtype;
  RowShape shape;

  Tensor draw(at::IntArrayRef sizes) const { return at::randn(sizes).to(dtype); }
  Tensor tokens(std::int64_t times = 1) const {
    return draw({1, shape.tokens, times * shape.width});
  }
  // Columns of a wider product, as blocks cut them: strided.
  Tensor cut(std::int64_t times) const {
    return tokens(times + 3).narrow(2, 0, times * shape.width);
  }
  Tensor heads() const { return cut(1).unflatten(-1, {-1, kHead}); }
  Tensor weight() const { return draw({shape.width}); }
  Tensor shared() const { return draw({1, 1, shape.width}); }
  Modulation modulation() const { return {shared(), shared(), shared()}; }
  Tensor angles() const { return at::randn({shape.tokens, kHead / 2}); }
  std::int64_t bytes(std::int64_t tensors) const {
    return tensors * shape.tokens * shape.width * std::int64_t(at::elementSize(dtype));
  }
};

using Make = RowOperation (*)(const Inputs&);

RowOperation modulated_norm(const Inputs& in) {
  const auto x = in.tokens();
  const auto m = in.modulation();
  return {{},
          in.bytes(2),
          [=] { return ops::modulated_norm(x, m); },
          [=] { return ops::reference::modulated_norm(x, m); }};
}

RowOperation gated_residual(const Inputs& in) {
  const auto x = in.tokens(), y = in.tokens(), gate = in.shared();
  return {{},
          in.bytes(3),
          [=] { return ops::gated_residual(x, gate, y); },
          [=] { return ops::reference::gated_residual(x, gate, y); }};
}

RowOperation llama_rms_norm(const Inputs& in) {
  const auto x = in.tokens(), weight = in.weight();
  return {{},
          in.bytes(2),
          [=] { return ops::llama_rms_norm(x, weight, 1e-6); },
          [=] { return ops::reference::llama_rms_norm(x, weight, 1e-6); }};
}

RowOperation rms_norm(const Inputs& in) {
  const auto x = in.tokens(), weight = in.weight();
  return {{},
          in.bytes(2),
          [=] { return ops::rms_norm(x, weight, 1e-6); },
          [=] { return ops::reference::rms_norm(x, weight, 1e-6); }};
}

RowOperation modulated_rms_norm(const Inputs& in) {
  const auto x = in.tokens(), weight = at::randn({in.shape.width});
  const auto m = in.modulation();
  return {{},
          in.bytes(2),
          [=] { return ops::modulated_rms_norm(x, weight, m, 1e-6); },
          [=] { return ops::reference::modulated_rms_norm(x, weight, m, 1e-6); }};
}

RowOperation normed_rotated(const Inputs& in) {
  const std::array parts = {ops::NormedHeads{in.heads(), in.draw({kHead})}};
  const auto angles = in.angles().repeat_interleave(2, 1);
  const Rope rope{.cos = angles.cos(), .sin = angles.sin()};
  return {{},
          in.bytes(2),
          [=] { return ops::normed_rotated(parts, 1e-6, rope); },
          [=] { return ops::reference::normed_rotated(parts, 1e-6, rope); }};
}

RowOperation rotate_halves(const Inputs& in) {
  const auto heads = in.heads(), angles = in.angles();
  const HalfSplitRope rope{.cos = angles.cos().to(in.dtype), .sin = angles.sin().to(in.dtype)};
  return {{},
          in.bytes(2),
          [=] { return ops::rotate_halves(heads, rope); },
          [=] { return ops::reference::rotate_halves(heads, rope); }};
}

RowOperation gelu(const Inputs& in) {
  const auto x = in.tokens(4);
  return {{}, in.bytes(8), [=] { return ops::gelu(x); }, [=] { return ops::reference::gelu(x); }};
}

RowOperation joined_gelu(const Inputs& in) {
  const auto x = in.tokens(), y = in.cut(4);
  return {{},
          in.bytes(10),
          [=] { return ops::joined_gelu(x, y); },
          [=] { return ops::reference::joined_gelu(x, y); }};
}

RowOperation swiglu(const Inputs& in) {
  const auto gate = in.cut(3), up = in.cut(3);
  return {{},
          in.bytes(9),
          [=] { return ops::swiglu(gate, up); },
          [=] { return ops::reference::swiglu(gate, up); }};
}

RowOperation joined_swiglu(const Inputs& in) {
  const auto x = in.tokens(), gate = in.cut(3), up = in.cut(3);
  return {{},
          in.bytes(11),
          [=] { return ops::joined_swiglu(x, gate, up); },
          [=] { return ops::reference::joined_swiglu(x, gate, up); }};
}

RowOperation sigmoid_gated(const Inputs& in) {
  const auto x = in.tokens(), gate = in.cut(1);
  return {{},
          in.bytes(3),
          [=] { return ops::sigmoid_gated(x, gate); },
          [=] { return ops::reference::sigmoid_gated(x, gate); }};
}

const std::map<std::string, Make>& makers() {
  static const std::map<std::string, Make> all = {{"gated_residual", gated_residual},
                                                  {"gelu", gelu},
                                                  {"joined_gelu", joined_gelu},
                                                  {"joined_swiglu", joined_swiglu},
                                                  {"llama_rms_norm", llama_rms_norm},
                                                  {"modulated_norm", modulated_norm},
                                                  {"modulated_rms_norm", modulated_rms_norm},
                                                  {"normed_rotated", normed_rotated},
                                                  {"rms_norm", rms_norm},
                                                  {"rotate_halves", rotate_halves},
                                                  {"sigmoid_gated", sigmoid_gated},
                                                  {"swiglu", swiglu}};
  return all;
}

}  // namespace

const std::vector<std::string>& row_operation_names() {
  static const auto names = [] {
    std::vector<std::string> list;
    for (const auto& [name, make] : makers()) list.push_back(name);
    return list;
  }();
  return names;
}

RowOperation row_operation(const std::string& name, at::ScalarType dtype, RowShape shape) {
  const auto found = makers().find(name);
  check(found != makers().end(), "no operation on rows is called ", name);
  auto operation = found->second({dtype, shape});
  operation.name = name;
  return operation;
}

bool is_right(const RowOperation& operation) {
  const auto got = operation.kernel(), want = operation.definition();
  return ((got - want).abs().max() / want.abs().max()).item<double>() < 0.02;
}

}  // namespace braid

// Weights drawn at random, and the layers that definitions in float64 are written with.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <string>

namespace braid {

using at::Tensor;

inline Tensor swish(const Tensor& x) { return x / (1 + at::exp(-x)); }

inline Tensor gelu_by_tanh(const Tensor& x) {  // its approximation by tanh
  return 0.5 * x * (1 + at::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3))));
}

// Draws tensors by name; the definitions read them in float64.
class Drawn {
 public:
  Tensor add(const std::string& name, at::IntArrayRef shape, double scale = 0.5) {
    return all_[name] = at::randn(shape) * scale;
  }
  void add_layer(const std::string& name, std::int64_t in, std::int64_t out) {
    add(name + ".weight", {out, in}, 1 / std::sqrt(double(in)));
    add(name + ".bias", {out});
  }
  void add_convolution(const std::string& name, std::int64_t in, std::int64_t out,
                       std::int64_t kernel) {
    add(name + ".weight", {out, in, kernel, kernel}, 1 / std::sqrt(double(in * kernel * kernel)));
    add(name + ".bias", {out});
  }
  void add_norm(const std::string& name, std::int64_t width) {
    all_[name + ".weight"] = 1 + at::randn({width}) * 0.3;
    add(name + ".bias", {width});
  }
  void add_scale(const std::string& norm, std::int64_t width) {
    all_[norm + ".weight"] = 1 + at::randn({width}) * 0.3;
  }
  Tensor operator()(const std::string& name) const { return all_.at(name).to(at::kDouble); }
  Tensor layer(const std::string& name, const Tensor& x) const {
    return at::linear(x, (*this)(name + ".weight"), (*this)(name + ".bias"));
  }
  Tensor norm(const std::string& name, const Tensor& x, double eps) const {
    const auto centred = x - x.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + eps).sqrt() * (*this)(name + ".weight") +
           (*this)(name + ".bias");
  }
  Tensor convolution(const std::string& name, const Tensor& x, std::int64_t stride,
                     std::int64_t padding) const {
    return at::conv2d(x, (*this)(name + ".weight"), (*this)(name + ".bias"), stride, padding);
  }
  const std::map<std::string, Tensor>& all() const { return all_; }

 private:
  std::map<std::string, Tensor> all_;
};

}  // namespace braid

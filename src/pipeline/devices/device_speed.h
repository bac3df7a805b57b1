// How fast a device multiplies, measured once: shares of devices that are not alike go by it.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <string>

namespace braid {

// Tokens [rows width] times an MLP's weight [4 width, width].
struct TimedProduct {
  std::int64_t rows, width;
  at::ScalarType dtype;
  int threads = 1;  // of a CPU

  double flops() const { return 8.0 * double(rows) * double(width) * double(width); }
};

// The product has as many rows as a short measurement of such a device takes.
TimedProduct product_for(at::Device device, std::int64_t width, at::ScalarType dtype, int threads);

// FLOP/s that the device reaches in the product: the fastest of a few runs, now.
double measure_product(at::Device device, const TimedProduct& product);

// What `measure` returned when it was first asked about this kind of device ("NVIDIA L4, 24.0 GB")
// and product: kept in a file of its own in `folder`, which users may delete. Calls it where there
// is no such file, or a damaged one. Keeps nothing in an empty folder, or where nothing can be
// written. Throws Error if the speed is not a number above 0.
double kept_speed(const std::filesystem::path& folder, const std::string& kind,
                  const TimedProduct& product, const std::function<double()>& measure);

}  // namespace braid

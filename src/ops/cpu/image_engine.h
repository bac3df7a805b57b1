// The fastest way to convolve an image on this machine: Winograd's filtering, our products of
// pairs or tiles, or LibTorch.
#pragma once

#include <functional>

#include "ops/cpu/image.h"
#include "ops/cpu/pixel_run.h"
#include "ops/cpu/tensor_rows.h"

namespace braid::ops::cpu {

// One image [I H W], the input of a convolution, computed while it is read.
struct ImageInput {
  std::int64_t height, width;
  // Writes rows to a tensor [1 I H W] of that size, in its dtype.
  std::function<void(RowRange rows, const Tensor& to)> make;
  TakePixels take;
  PrefetchPixels prefetch = {};
};

// What one image gets: y [1 O H' W'] and, unless undefined, the residual to add. Its rows are read
// before they are written, so y may be the same tensor.
struct ImageResult {
  Tensor y, residual;
};

class ImageEngine {
 public:
  // The engine is made for results of the size and dtype of y. At stride 1 the convolution keeps
  // the image's size; at stride 2 a column and a row of zeros are on the right and below.
  ImageEngine(const Convolution& conv, const Tensor& y);

  void convolve(const ImageInput& input, const ImageResult& result, const Band& band) const;

 private:
  // Convolves rows of an image, given with their surrounding rows, or zeros at its borders.
  struct Way {
    at::ScalarType dtype;              // of the rows
    std::int64_t left = 0, right = 0;  // columns of zeros beside an image
    std::int64_t tile = 1;             // rows come in multiples of this
    std::function<void(const Tensor& in_1IHW, RowRange rows, const ImageResult& result)> rows;
    // Convolves pixels as the input gathers them itself, where it can.
    std::function<void(const ImageInput& input, const ImageResult& result)> taken = {};
  };

  static Way by_libtorch(const Convolution& conv);
  static Way by_winograd(const Convolution& conv, const Tensor& y);
  static Way by_tiles(const Convolution& conv, const Tensor& y);
  static Way by_pairs(const Convolution& conv);
  static Way best_way(const Convolution& conv, const Tensor& y);

  Way way_;
  std::int64_t inputs_, kernel_, stride_, padding_;
};

}  // namespace braid::ops::cpu

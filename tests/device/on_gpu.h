// Tests of what only a GPU has. Where there is none they are skipped and say so; built a second
// time they run on the made ones of fake_gpu.cc.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gtest/gtest.h>

#include "weights/matrix.h"

namespace braid {

inline int num_gpus() {
  const bool is_built = c10::impl::hasDeviceGuardImpl(at::kCUDA);
  return is_built ? c10::impl::getDeviceGuardImpl(at::kCUDA)->deviceCount() : 0;
}

inline Matrix on_device(const Matrix& matrix, at::Device device) {
  return map_tensors(matrix, [&](const Tensor& tensor) { return tensor.to(device); });
}

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "there is no GPU";
  }
  static at::Device gpu() { return {at::kCUDA, 0}; }
};

}  // namespace braid

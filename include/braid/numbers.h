// In which numbers a pipeline computes, and how steps are given to a device.
#pragma once

namespace braid {

enum class Dtype { kAuto, kFloat32, kBfloat16, kFloat16 };

// Whether a step is recorded once and then repeated by the device alone: kAuto where that is
// possible, which is on an NVIDIA GPU that holds all of the transformer's weights.
enum class Graphs { kAuto, kOff };

}  // namespace braid

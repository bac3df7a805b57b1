// The dtype a pipeline computes in, and how steps are submitted to a device.
#pragma once

namespace braid {

enum class Dtype { kAuto, kFloat32, kBfloat16, kFloat16 };

// Whether a step is captured once and replayed on the device. kAuto: where possible, that is on an
// NVIDIA GPU that holds all of the transformer's weights.
enum class Graphs { kAuto, kOff };

// The GPU stream of the text half of double blocks. kOwn: a second one, so that it runs beside the
// image half, where neither half communicates or copies weights. Not measured yet.
enum class TextStream { kShared, kOwn };

}  // namespace braid

// Four GPUs for machines without one: to LibTorch they are CUDA's, their memory is the host's, and
// they have done what they are asked when it is asked. Like real ones they keep no statistics
// before they are made ready and take no tensors of two devices.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "ops/attention_kernel.h"

namespace braid::fake_gpu {

c10::Allocator* memory();             // of the current one
std::int64_t num_streams_recorded();  // by Tensor::record_stream()
std::int64_t num_locked_bytes();      // of the host
std::int64_t num_float8_products();
std::int64_t num_gelu_products();
std::int64_t num_cudnn_attentions();
// The threads that had a kernel for attention chosen since the last call, one after another.
std::vector<std::thread::id> attention_choices();

// While it is there this thread is of a process that sees no GPU before this one.
class SeesFrom {
 public:
  explicit SeesFrom(int gpu);
  ~SeesFrom();
};

// While it is there all GPUs are parts of one (MIG).
class ArePartsOfOne {
 public:
  ArePartsOfOne();
  ~ArePartsOfOne();
};

// While it is there all streams are recorded in graphs, or one is. As with CUDA's the host may not
// wait for such a stream, nor for a GPU with one, nor copy between itself and a GPU on one.
class AreRecording {
 public:
  AreRecording();
  explicit AreRecording(const c10::Stream& only);
  ~AreRecording();
};
// Throw if the stream, or any stream, is recorded.
void refuse_if_recorded(const c10::Stream& stream);
void refuse_if_any_is_recorded();

// While it is there the GPUs never finish what they are given. Who waits for that without looking
// is refused, as the test would not end.
class AreStuck {
 public:
  AreStuck();
  ~AreStuck();
};

// While it is there the GPUs are of compute capability 8.0, or this one, not 9.0.
class IsOlder {
 public:
  explicit IsOlder(int capability = 80);
  ~IsOlder();
};

// While it is there LibTorch takes this kernel for attention where it could: cuDNN and
// FlashAttention in 16 bits, memory-efficient attention of heads that share no keys. Otherwise it
// takes separate products, as it does everywhere else. A kernel that it does not take refuses to
// run.
class Attends {
 public:
  // Kernels load heads in whole vectors; a fixture's narrower heads may stand for a model's.
  enum class Heads { kOfWholeVectors, kOfAnyWidth };
  explicit Attends(ops::AttentionKernel kernel, Heads heads = Heads::kOfWholeVectors);
  ~Attends();
};

// While it is there the system locks at most so many bytes.
class LocksAtMost {
 public:
  explicit LocksAtMost(std::int64_t bytes);
  ~LocksAtMost();
};
class RefuseLocks : public LocksAtMost {
 public:
  RefuseLocks() : LocksAtMost(0) {}
};

}  // namespace braid::fake_gpu

// The link between the GPUs of fake_gpu.cc is the one that GPUs have, over a stand-in for NCCL.
#include "comm/fake_nccl.h"

namespace braid {
namespace {

[[maybe_unused]] const auto& kLoaded = fake_nccl();

}  // namespace
}  // namespace braid

#include "pipeline/loaded/text_stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace braid {
namespace {

bool has_sides(const Family& family) {
  const auto& kinds = family.shape().blocks;
  return std::any_of(kinds.begin(), kinds.end(),
                     [](const BlockCost& kind) { return kind.has_sides && kind.count > 0; });
}

}  // namespace

std::string why_text_shares_stream(const Deployment& deployment, at::Device device) {
  const auto& options = deployment.options;
  if (options.text_stream == TextStream::kShared) return "no second stream was asked for";
  if (device.is_cpu()) return "a CPU has no streams";
  if (!has_sides(*deployment.family)) return "the model has no double blocks";
  if (options.layout.tp > 1) return "tensor parallel ranks sum the outputs of both halves";
  const auto offload = options.memory.offload.transformer;
  if (offload == OffloadMode::kLeaf || offload == OffloadMode::kSequential)
    return "weights are copied layer by layer";
  return "";
}

std::optional<c10::Stream> text_stream(const Deployment& deployment, at::Device device,
                                       const Warn& warn) {
  const auto why = why_text_shares_stream(deployment, device);
  if (why.empty())
    return c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
  if (deployment.options.text_stream == TextStream::kOwn && warn)
    warn("the text half of double blocks gets no stream of its own: " + why);
  return {};
}

}  // namespace braid

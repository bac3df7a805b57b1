// What the parts of a model are loaded with, on one rank. Encoders, denoisers and autoencoder each
// have a constructor that takes it.
#pragma once

#include "nn/attention.h"
#include "nn/denoiser_part.h"
#include "pipeline/memory/offload.h"
#include "pipeline/model_weights.h"

namespace braid {

// What a proof puts between a denoiser and its layout: a watch, or a fault. Empty: nothing.
struct Interposed {
  std::function<ShardingTable(ShardingTable)> shardings = {};
  std::function<Attend(Attend)> attend = {};
  std::function<DenoiserPart(DenoiserPart)> part = {};
};

struct Loading {
  const Deployment& deployment;
  Mesh mesh;
  std::shared_ptr<ModelWeights> weights;
  std::shared_ptr<OffloadedParts> offloaded;
  LoadOptions options;  // dtype, device, second stream, and who is told of bytes
  Interposed interposed = {};

  const Family& family() const { return *deployment.family; }
  const PipelineOptions& asked() const { return deployment.options; }
  at::Device device() const { return options.device; }
};

// Who hears of a load.
struct LoadHooks {
  std::function<void(std::int64_t bytes)> on_bytes = {};
  std::function<void(const BytesRead& read)> on_read = {};
  Warn warn = {};
};

// For this rank of the mesh, in the deployment's dtype.
Loading loading_on(const Mesh& mesh, const Deployment& deployment, const LoadHooks& hooks = {});

// Runs an encoder of pictures, which `load` builds, on the first rank alone: it is needed at most
// once per request, and in between takes no memory. All ranks get what it makes of each picture
// [1 3 H W]. Collective over the world.
using EncodePicture = std::function<Tensor(const Tensor& picture_13HW)>;
std::vector<Tensor> encode_on_first(const Mesh& mesh, const at::TensorOptions& like,
                                    const std::vector<Tensor>& pictures,
                                    const std::function<EncodePicture()>& load);

}  // namespace braid

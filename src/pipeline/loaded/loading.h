// What the parts of a model are loaded with, on one rank. Encoders, denoisers and autoencoder each
// have a constructor that takes it.
#pragma once

#include "nn/attention.h"
#include "nn/denoiser_part.h"
#include "pipeline/loaded/encoded_cache.h"
#include "pipeline/loaded/model_weights.h"
#include "pipeline/memory/offload.h"

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
  // What encoders made for earlier requests; used on the first rank.
  std::shared_ptr<EncodedCache> encoded = std::make_shared<EncodedCache>(0);
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

// Prepares the loads of this rank of the mesh, in the deployment's dtype.
Loading loading_on(const Mesh& mesh, const Deployment& deployment, const LoadHooks& hooks = {});

// Encodes pictures [1 C H W] on the first rank alone, with an encoder that `load` builds: it is
// needed at most once per request, for pictures that are not in the cache, and in between takes no
// memory. `how` names what is made of them. All ranks get the results. Collective over the world.
using EncodePicture = std::function<Tensor(const Tensor& picture_13HW)>;
struct PictureEncoding {
  Mesh mesh;
  at::TensorOptions like;  // dtype and device of the encoder
  std::shared_ptr<EncodedCache> encoded;

  std::vector<Tensor> encode(const std::vector<Tensor>& pictures, const std::string& how,
                             const std::function<EncodePicture()>& load) const;
};
PictureEncoding picture_encoding(const Loading& loading);

}  // namespace braid

// A model of any family, loaded on one rank. Each rank of a layout has its own.
#pragma once

#include "pipeline/loaded/autoencoder.h"
#include "pipeline/loaded/denoisers.h"
#include "pipeline/loaded/encoders.h"

namespace braid {

class Model {
 public:
  // Collective over the world of the mesh. The denoisers come last: the memory that is left decides
  // which of their blocks a stage of pipeline parallelism gets.
  Model(const Deployment& deployment, const Mesh& mesh, const LoadHooks& hooks)
      : Model(deployment, mesh, hooks, std::make_shared<BytesRead>()) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Family& family() const { return *family_; }
  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const { return device_; }
  const Mesh& mesh() const { return mesh_; }
  const BytesRead& bytes_read() const { return *bytes_read_; }  // of the files, by this rank

  const Encoders& encoders() const { return encoders_; }
  // What was encoded before, of prompts and pictures; on the first rank.
  const EncodedUse& encoded_use() const { return encoded_->use(); }
  const Denoisers& denoisers() const { return denoisers_; }
  const Autoencoder& autoencoder() const { return autoencoder_; }

  // Does what Autoencoder::decode() does, without the recorded steps if memory asks for that.
  void decode(const Tensor& tokens_BNC, PictureSize size, Tiles tiles,
              const std::function<void(const Tensor&)>& on_picture) const;

  // Does what ModelWeights::adapt() does.
  void adapt(const std::vector<AppliedAdapter>& adapters, const Warn& warn) {
    weights_->adapt(adapters, warn);
  }
  // Gives back recorded steps: their memory, and the links to other devices that they keep. Call on
  // all ranks or on none.
  void forget_graphs() const;

 private:
  Model(const Deployment& deployment, const Mesh& mesh, const LoadHooks& hooks,
        std::shared_ptr<BytesRead> sum);
  Model(const Loading& loading, const Warn& warn, std::shared_ptr<const BytesRead> bytes_read);

  std::shared_ptr<const Family> family_;
  Mesh mesh_;
  at::ScalarType dtype_;
  at::Device device_;
  RecordedStep recorded_step_;
  std::shared_ptr<ModelWeights> weights_;
  std::shared_ptr<const EncodedCache> encoded_;
  std::shared_ptr<const BytesRead> bytes_read_;
  Autoencoder autoencoder_;
  Encoders encoders_;
  Denoisers denoisers_;
};

}  // namespace braid

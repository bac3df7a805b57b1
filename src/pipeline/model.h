// A model of any family, loaded on one rank: its parts, where their weights live, and the layout
// around its denoiser. Each rank of a layout has its own.
#pragma once

#include "comm/mesh.h"
#include "models/vae/model.h"
#include "pipeline/denoisers/denoisers.h"
#include "pipeline/encoded_cache.h"
#include "pipeline/families/paged.h"
#include "pipeline/part_tensors.h"
#include "pipeline/sampling/latent_colors.h"

namespace braid {

class Model {
 public:
  // Loads this rank's share of the transformer; text encoders on the first rank or, sharded, on its
  // tensor parallel ranks; the autoencoder on all ranks or the first.
  Model(const ModelFiles& files, const Mesh& mesh, const ModelOptions& options);

  const Family& family() const { return *family_; }
  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const { return device_; }
  const Mesh& mesh() const { return mesh_; }

  // Collective: the ranks that hold the encoders encode, or the first one remembers; all ranks get
  // the result. A batch of one.
  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const;
  const EncodedUse& encoded_use() const { return encoded_.use(); }
  const Denoisers& denoisers() const { return *denoisers_; }
  // Collective: the first rank reads the autoencoder's encoder, encodes pictures [1 3 H W], -1..1,
  // and releases it; all ranks get the result.
  std::vector<VaeMoments> encode_pictures(const std::vector<Tensor>& pictures, Tiles tiles) const;
  // The means of these, as latents in the denoiser's form.
  std::vector<Tensor> encode_means(const std::vector<Tensor>& pictures, Tiles tiles) const;
  // The same for the encoder that embeds references, in sizes of its own: [1 L C].
  std::vector<Tensor> embed_pictures(const std::vector<Tensor>& pictures) const;
  // Collective: ranks that hold the autoencoder share tiles, or several pictures. `on_picture` is
  // called on the first rank, for each picture in order, with [1 3 H W], -1..1.
  void decode(const Tensor& tokens_BNC, PictureSize size, Tiles tiles,
              const std::function<void(const Tensor&)>& on_picture) const;

  // A rough preview of latents, on ranks that hold the autoencoder: [B 3 h w] in float32 on the
  // CPU, about -1 .. 1, one pixel per decoder input. The first call decodes noise.
  Tensor colors_of(const Tensor& tokens_BNC, PictureSize size) const;

  // Replaces all adapters. Throws InputError, changing nothing, unless they fit beside the weights.
  void adapt(const std::vector<AppliedAdapter>& adapters);

  // Gives back recorded steps: their memory, and the links to other devices that they keep. Call on
  // all ranks or on none.
  void forget_graphs() const;
  // Of the model's files, by this rank.
  const BytesRead& bytes_read() const { return *bytes_read_; }

 private:
  Model(const ModelFiles& files, at::ScalarType stored, const Mesh& mesh,
        const ModelOptions& options);
  Weights weights_of(const ModelFiles& files, const Part& part, const LoadOptions& load);
  void load_decoder(const ModelFiles& files, LoadOptions load);
  void load_text(const ModelFiles& files, LoadOptions load, const ModelOptions& options);
  using Encode = std::function<Tensor(const Tensor&)>;
  Condition encode_now(const Prompt& prompt, int max_sequence_length, const Warn& warn) const;
  Condition encode_or_recall(const Prompt& prompt, int max_sequence_length, const Warn& warn) const;
  // `how` names what is made of the pictures.
  std::vector<Tensor> encode_on_first(const std::vector<Tensor>& pictures, const std::string& how,
                                      const std::function<Encode(const WeightsOf&)>& load) const;
  std::vector<Tensor> encode_with(
      const std::vector<Tensor>& pictures, const std::string& how,
      const std::function<Tensor(const Vae&, const Tensor&)>& encode) const;
  void decode_together(const Tensor& latents, Tiles tiles,
                       const std::function<void(const Tensor&)>& on_picture) const;

  ModelFiles files_;
  std::shared_ptr<const Family> family_;
  AdaptedModel adapted_;  // with the current adapters
  std::vector<std::shared_ptr<UnmergedAdapters>> unmerged_;
  std::shared_ptr<std::uint64_t> switches_ = std::make_shared<std::uint64_t>(0);
  Mesh mesh_;
  std::shared_ptr<OffloadedParts> offloaded_;
  at::ScalarType dtype_;
  at::Device device_;
  SharedModulation modulation_;
  RecordedStep recorded_step_;
  std::unique_ptr<const TextEncoders> text_;
  mutable EncodedCache encoded_;  // used on the first rank
  Group decoders_;                // the ranks that hold the autoencoder
  std::optional<Paged<Vae>> vae_;
  mutable std::optional<LatentColors> colors_;  // fitted at the first preview
  std::shared_ptr<BytesRead> bytes_read_ = std::make_shared<BytesRead>();
  std::unique_ptr<const Denoisers> denoisers_;
};

// The dtype asked for, else the checkpoint's if the device has instructions for it, else float32.
at::ScalarType choose_dtype(Dtype asked, at::ScalarType stored, at::Device device);

}  // namespace braid

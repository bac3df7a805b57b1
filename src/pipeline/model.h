// A model of any family, loaded on one rank: its parts, where their weights live, and the layout
// around its denoiser. Each rank of a layout has its own.
#pragma once

#include "comm/mesh.h"
#include "models/vae/model.h"
#include "pipeline/families/family.h"
#include "pipeline/families/paged.h"
#include "pipeline/graphs/part_graphs.h"
#include "pipeline/memory/offload.h"
#include "pipeline/model_options.h"
#include "pipeline/part_tensors.h"
#include "pipeline/pictures/kept_references.h"
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

  // Collective: the ranks that hold the encoders encode, all ranks get the result. A batch of one.
  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const;
  // Collective over the ranks that work on the same pictures.
  const PredictAll& predict() const { return predict_; }
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

  // Computes this rank's modulations, ControlNets included, for all steps at once; refine() as
  // refine_over(). Collective over the ranks of a picture; empty where each step computes its own.
  const Modulate& modulate() const { return modulate_; }
  const PredictAll& refine() const { return refine_; }
  const Controls& controls() const { return controls_; }
  StepCache* cache() const { return cache_.get(); }  // null without options.cache
  KeptReferences& references() const { return *references_; }
  // A rough preview of latents, on ranks that hold the autoencoder: [B 3 h w] in float32 on the
  // CPU, about -1 .. 1, one pixel per decoder input. The first call decodes noise.
  Tensor colors_of(const Tensor& tokens_BNC, PictureSize size) const;

  // Replaces all adapters. Throws InputError, changing nothing, unless they fit beside the weights.
  void adapt(const std::vector<AppliedAdapter>& adapters);

  // Gives back recorded steps: their memory, and the links to other devices that they keep. Call on
  // all ranks or on none.
  void forget_graphs() const;
  GraphUse graph_use() const { return part_graphs_ ? part_graphs_->use() : steps_->use(); }
  const BytesRead& bytes_read() const { return bytes_read_; }  // of the model's files, by this rank

 private:
  Model(const ModelFiles& files, at::ScalarType stored, const Mesh& mesh,
        const ModelOptions& options);
  Weights weights_of(const ModelFiles& files, const Part& part, const LoadOptions& load);
  void load_decoder(const ModelFiles& files, LoadOptions load);
  void load_text(const ModelFiles& files, LoadOptions load, const ModelOptions& options);
  void load_controls(const ModelFiles& files, LoadOptions load, const ModelOptions& options);
  void load_denoiser(const ModelFiles& files, LoadOptions load, const ModelOptions& options);
  DenoiserPart load_blocks(const ModelFiles& files, const LoadOptions& load, BlockRange range,
                           RingForm form);
  CachedParts load_in_parts(const ModelFiles& files, const LoadOptions& load, BlockRange here,
                            RingForm form, DenoiserPart& whole);
  using Encode = std::function<Tensor(const Tensor&)>;
  std::vector<Tensor> encode_on_first(const std::vector<Tensor>& pictures,
                                      const std::function<Encode(const WeightsOf&)>& load) const;
  std::vector<Tensor> encode_with(
      const std::vector<Tensor>& pictures,
      const std::function<Tensor(const Vae&, const Tensor&)>& encode) const;
  void decode_together(const Tensor& latents, Tiles tiles,
                       const std::function<void(const Tensor&)>& on_picture) const;

  ModelFiles files_;
  std::shared_ptr<const Family> family_;
  AdaptedModel adapted_;  // with the current adapters
  std::vector<std::shared_ptr<BesideWeights>> beside_;
  std::shared_ptr<std::uint64_t> switches_ = std::make_shared<std::uint64_t>(0);
  Mesh mesh_;
  std::shared_ptr<OffloadedParts> offloaded_;
  at::ScalarType dtype_;
  at::Device device_;
  SharedModulation modulation_;
  RecordedStep recorded_step_;
  std::unique_ptr<const TextEncoders> text_;
  Group decoders_;  // the ranks that hold the autoencoder
  std::optional<Paged<Vae>> vae_;
  std::shared_ptr<StepCache> cache_;
  mutable std::optional<LatentColors> colors_;  // fitted at the first preview
  Controls controls_;
  Modulate modulate_;
  std::shared_ptr<KeptReferences> references_ = std::make_shared<KeptReferences>();
  std::shared_ptr<StepGraph> steps_;
  std::optional<PartGraphs> part_graphs_;  // instead, where a cache decides within a step
  PredictAll predict_, refine_;
  BytesRead bytes_read_;
};

// Whether a rank's evaluations are recorded, given its device, memory and graph options.
StepGraphOptions graph_options(const Mesh& mesh, const ModelOptions& options);

// The blocks of this rank. Collective over the world: ranks exchange their free memory.
BlockRange blocks_of_rank(const Family& family, const Mesh& mesh, at::Device device,
                          int ranks_on_device);

// Evaluates one part of a model while its weights are present, checking the order of copies.
DenoiserPart with_pages(DenoiserPart part, Page page, std::shared_ptr<const OffloadedParts> parts);

// The dtype asked for, else the checkpoint's if the device has instructions for it, else float32.
at::ScalarType choose_dtype(Dtype asked, at::ScalarType stored, at::Device device);

}  // namespace braid

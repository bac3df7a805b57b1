// The FLUX.1 family: which text encoders it asks, how a prompt becomes the transformer's input, and
// which autoencoder makes pictures of latents. Each rank of a layout has one of its own.
#pragma once

#include "models/flux/model.h"
#include "models/flux/sharding.h"
#include "models/vae/model.h"
#include "parallel/layout.h"
#include "pipeline/families/flux_text.h"
#include "pipeline/graphs/step_graph.h"
#include "pipeline/memory/offload.h"
#include "pipeline/sampling/schedule.h"

namespace braid {

enum class SharedText { kYes, kNo };  // the encoders, among tensor parallel ranks

enum class SharedDecode { kYes, kNo };

struct FamilyOptions {
  at::Device device = at::kCPU;
  Dtype dtype = Dtype::kAuto;
  std::function<void(std::int64_t bytes)> on_bytes = {};
  RingForm ring_form = RingForm::kShift;
  SharedModulation modulation = SharedModulation::kYes;
  SharedText text = SharedText::kNo;
  SharedDecode decode = SharedDecode::kYes;
  int ranks_on_device = 1;
  Memory memory = {};
  Graphs graphs = Graphs::kAuto;
};

class FluxFamily {
 public:
  // Loads this rank's share of the transformer; the text encoders on the first rank, or shares of
  // them on the tensor parallel ranks that it belongs to; the autoencoder on all or the first.
  FluxFamily(const ModelFiles& files, const Mesh& mesh, const FamilyOptions& options);

  ModelLimits limits() const;
  const ScheduleConfig& schedule_config() const { return schedule_config_; }
  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const { return device_; }
  const Mesh& mesh() const { return mesh_; }

  // Collective: the ranks that have the encoders encode, all ranks get the result.
  Conditioning encode(const PromptPair& prompt, int max_sequence_length,
                      const std::function<void(const std::string&)>& warn) const;
  // Collective over the ranks that work on the same pictures.
  const PredictAll& predict() const { return predict_; }
  // Collective: tiles, or several pictures, are shared out among the ranks that have the
  // autoencoder. On the first rank `on_picture` hears each picture in order, [1 3 H W], -1..1.
  void decode(const Tensor& tokens_BNC, LatentShape shape, Tiles tiles,
              const std::function<void(const Tensor&)>& on_picture) const;

  // What became of options.graphs so far.
  const GraphUse& graph_use() const { return steps_->use(); }

  // Of all files of the model, by this rank.
  const BytesRead& bytes_read() const { return bytes_read_; }

 private:
  FluxFamily(const ModelFiles& files, Checkpoint transformer, const Mesh& mesh,
             const FamilyOptions& options);
  void load_text(const ModelFiles& files, LoadOptions load, const FamilyOptions& options);
  void decode_together(const Tensor& latents, Tiles tiles,
                       const std::function<void(const Tensor&)>& on_picture) const;
  void check_fit(const ModelFiles& files) const;

  Mesh mesh_;
  std::shared_ptr<OffloadedParts> offloaded_;
  at::ScalarType dtype_;
  at::Device device_;
  FluxConfig flux_config_;
  VaeConfig vae_config_;
  ScheduleConfig schedule_config_;
  ModelDefaults defaults_;
  std::optional<FluxText> text_;
  Group decoders_;  // the ranks that have the autoencoder
  std::optional<Paged<Vae>> vae_;
  std::shared_ptr<StepGraph> steps_;
  PredictAll predict_;
  BytesRead bytes_read_;
};

// The blocks of this rank. Collective over the world: the ranks tell each other what is free.
FluxRun run_of_rank(const FluxConfig& config, const Mesh& mesh, at::Device device,
                    int ranks_on_device);

// From transformer/config.json, or for a single file without one from its shapes.
FluxConfig read_transformer_config(const ModelFiles& files, const Checkpoint& checkpoint);

// The dtype to compute in: what was asked for, else the checkpoint's where the device has
// instructions for it, else float32 (bfloat16 for 8-bit checkpoints).
at::ScalarType choose_dtype(Dtype asked, at::ScalarType stored, at::Device device);

}  // namespace braid

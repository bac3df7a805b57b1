// The FLUX.1 family: which text encoders it asks, how a prompt becomes the transformer's input, and
// which autoencoder makes pictures of latents.
#pragma once

#include <memory>

#include "models/clip/model.h"
#include "models/flux/model.h"
#include "models/t5/model.h"
#include "models/vae/model.h"
#include "pipeline/schedule.h"
#include "pipeline/settings.h"
#include "text/tokenizer.h"

namespace braid {

// One embedded prompt, batch 1.
struct Conditioning {
  Tensor text_1TC, pooled_1C;
};

struct FamilyOptions {
  LoadOptions load;
  Dtype dtype = Dtype::kAuto;
};

class FluxFamily {
 public:
  // Loads every part. `options.load.dtype` is set here, from `options.dtype` and the checkpoint.
  FluxFamily(const ModelFiles& files, FamilyOptions options);

  ModelLimits limits() const;
  const ScheduleConfig& schedule_config() const { return schedule_config_; }
  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const { return device_; }

  // Throws InputError for text that is not UTF-8; tells `warn` of text that does not fit.
  Conditioning encode(const PromptPair& prompt, int max_sequence_length,
                      const std::function<void(const std::string&)>& warn) const;
  const Predict& predict() const { return predict_; }
  Tensor decode(const Tensor& tokens_BNC, LatentShape shape,
                Tiles tiles) const;  // [B 3 H W], -1..1

 private:
  FluxFamily(const ModelFiles& files, const Checkpoint& transformer, const FamilyOptions& options);

  at::ScalarType dtype_;
  at::Device device_;
  std::unique_ptr<const Tokenizer> clip_tokenizer_, t5_tokenizer_;
  Clip clip_;
  T5 t5_;
  Vae vae_;
  FluxConfig flux_config_;
  ScheduleConfig schedule_config_;
  ModelDefaults defaults_;
  Predict predict_;
};

// The dtype to compute in: what was asked for, else the checkpoint's where the device has
// instructions for it, else float32 (bfloat16 for 8-bit checkpoints).
at::ScalarType choose_dtype(Dtype asked, at::ScalarType stored, at::Device device);

}  // namespace braid

// Descriptions of models, from their config files alone.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/inputs.h"
#include "braid/memory.h"
#include "braid/model_info.h"
#include "image/mask.h"
#include "models/vae/config.h"
#include "nn/denoiser_shape.h"
#include "nn/predict.h"
#include "pipeline/families/pictures_taken.h"
#include "pipeline/request/limits.h"
#include "pipeline/request/picture_size.h"
#include "pipeline/sampling/grids.h"
#include "pipeline/sampling/guidance.h"
#include "pipeline/sampling/schedule.h"
#include "weights/adapters/adapter_names.h"
#include "weights/sources/widened.h"
#include "weights/weights.h"

namespace braid {

// The evaluations that one of a model's denoisers serves: noise levels in [from, to), where 1 is
// noise alone, and branches of guidance. What lies beyond 0 and 1, by a rounding, belongs to them.
struct Served {
  double from = 0, to = 1;
  enum class BranchSet { kAll, kPrompt, kOthers } branches = BranchSet::kAll;

  // `all`: the timestep of noise alone (ScheduleConfig::num_train_timesteps).
  bool includes(const StepInfo& step, int all) const;
  double middle() const { return (from + to) / 2; }  // a noise level in the middle
  bool operator==(const Served&) const = default;
};

// One network of a model, as its files describe it.
struct Part {
  enum class Role { kText, kPicture, kDenoiser, kControl, kDecoder } role;
  std::string folder;             // in the diffusers layout: "text_encoder_2"
  std::string label;              // for messages: "the transformer"
  std::string class_name = {};    // in diffusers, if conversion writes its config
  std::int64_t num_heads = 0;     // split among tensor parallel ranks; 0: never split
  std::int64_t num_kv_heads = 0;  // shared by those; copied where there are more ranks. 0: as many
  std::vector<std::string> lists = {};  // name prefixes of block lists, in order of use
  bool is_large = true;                 // worth quantizing

  std::function<Names(const Checkpoint&)> names = {};
  std::function<ShardingTable(SharedModulation)> sharding = {};  // unset: whole on every rank
  std::optional<WidenedLayer> widened = {};                      // by an adapter
  AdapterNames adapters = {};                     // no prefixes: adapters have no tensors for it
  std::function<void(const Weights&)> make = {};  // builds and drops the network: for surveys
  std::vector<BlockCost> costs = {};              // blocks of a ControlNet
  Served serves = {};                             // by a denoiser
  // A text encoder counts the most numbers live at once while `tokens` pass, with so many ranks.
  std::function<std::int64_t(std::int64_t tokens, int ranks)> live = {};
  // And beside these, for each token of pictures that it looks at, what its vision tower made.
  std::int64_t kept_of_picture_token = 0;
  // Both, for tokens of text and of pictures.
  std::int64_t live_with(std::int64_t text, std::int64_t pictures, int ranks) const;

  // What the memory options say of its weights: their form, and those of the layers named there
  // that stay dense.
  Quantize form(const Memory& memory) const;
  std::vector<std::string> dense_layers(const std::vector<std::string>& named) const;
  // The options with both.
  LoadOptions quantized(LoadOptions load, const Memory& memory) const;
};

constexpr int kUsualTextTokens = 512;      // the default max_sequence_length of most families
constexpr int kLongestTextTokens = 16384;  // the longest of any

// What a request takes where it says nothing.
struct RequestDefaults {
  int width = 1024, height = 1024, steps = 28, frames = 1;
  double guidance = 3.5;
  int max_sequence_length = 512;
  Sampling sampling = {};  // what the model's files name, and adapters loaded with it
  // The number that was stated beside a list of levels in `sampling`, which overrules it unless a
  // request turns the list off.
  std::optional<int> stated_steps = {};
  int steps_without_list() const { return stated_steps.value_or(steps); }
  // The same without those adapters; null: there are none.
  std::shared_ptr<const RequestDefaults> without_adapters = {};
};
// Which multiple of pixels is drawn in place of a size that is none, if that is not refused.
enum class SizeRounding { kDown, kUp, kNever };
// What is drawn at once: clips of 1 + k `step` frames, of which there are at most `most`. Or layers
// that a reference is taken apart into, each a frame. They stand behind a first one of the whole
// picture, which counts as a frame but is not returned.
enum class FrameKind { kMoment, kLayer };
struct FramesDrawn {
  int most = 1, step = 1;
  double per_second = 0;
  FrameKind kind = FrameKind::kMoment;

  int unreturned() const { return kind == FrameKind::kLayer ? 1 : 0; }
};
// Whether an empty prompt is drawn like any other.
enum class EmptyPrompt { kDrawn, kRefused };
// Whether the lengths of guided latents are kept, unless the request says otherwise.
enum class KeptLengths { kUsually, kIfAsked };
struct RequestLimits {
  RequestDefaults defaults = {};
  FramesDrawn frames = {};
  int size_multiple = 16;  // pixels
  SizeRounding size_rounding = SizeRounding::kDown;
  // The trained size to draw instead of the given one; empty: the model draws any size.
  std::function<PictureSize(PictureSize)> nearest_size = {};
  int largest_side = kMaxSide;                   // pixels
  int max_text_tokens = kUsualTextTokens;        // the longest max_sequence_length
  int planned_text_tokens = kLongestTextTokens;  // as many as prompts usually have at most
  int num_texts = 1;                             // per prompt: 2 with a second text encoder
  EmptyPrompt empty_prompt = EmptyPrompt::kDrawn;
  // A prompt with Request::boxes, beside so many references. Throws InputError. Empty: the model
  // was not trained to follow layouts.
  std::function<std::string(const std::string& prompt, const std::string& boxes, int references)>
      laid_out = {};
  GuidanceKind guidance = GuidanceKind::kEmbeddedOrTrue;
  bool embeds_guidance = true;  // a transformer or ControlNet has the input of embedded guidance
  GuidedFrom guided_from = GuidedFrom::kNegative;
  GuidedScales guided_scales = GuidedScales::kAboveNeutral;
  std::int64_t guided_channels = 0;  // TrueGuidance::kept_channels, where lengths are kept
  KeptLengths kept_lengths = KeptLengths::kUsually;
  float guided_way_from = 0;         // TrueGuidance::way_from
  std::string negative_prompt = {};  // if a request has none
  SamplingLimits sampling = {};      // the family's constructor sets them by the scheduler
  bool may_keep_prefix = false;      // the constructor sets it: Family::keeps_prefix
  PicturesTaken pictures = {};

  // Forecasts and probes count on so many, where a request does not say how many it has.
  int usual_text_tokens() const {
    return std::min(defaults.max_sequence_length, planned_text_tokens);
  }
};

// Everything known of a model from its config files alone.
struct Description {
  std::string family;  // "FLUX.1"
  std::vector<Part> parts;
  DenoiserShape shape;  // of every denoiser
  RequestLimits limits;
  ScheduleConfig schedule;
  // Whether its pipeline leaves the levels to a scheduler with use_flow_sigmas; others give theirs.
  bool honours_flow_sigmas = false;
  VaeConfig vae;
  bool latents_in_float = false;    // between steps, whatever dtype the denoiser computes in
  bool noise_in_float = false;      // drawn in float32, then cast
  std::string pipeline_class = {};  // of diffusers, if adapters change it from the one in the files
};

// What may be asked of the model.
ModelInfo info_of(const Description& description);

}  // namespace braid

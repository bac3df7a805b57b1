// What is known of a model from its config files alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "braid/inputs.h"
#include "braid/model_info.h"
#include "models/vae/config.h"
#include "nn/denoiser_shape.h"
#include "pipeline/picture_size.h"
#include "pipeline/sampling/guidance.h"
#include "pipeline/sampling/schedule.h"
#include "weights/adapters/adapter_names.h"
#include "weights/sources/widened.h"
#include "weights/weights.h"

namespace braid {

// What the ranks of tensor parallelism share of a model, beyond what its heads are.
struct Sharing {
  int ranks = 1;
  SharedModulation modulation = SharedModulation::kYes;
};

// One network of a model, as its files describe it.
struct Part {
  enum class Role { kText, kPicture, kDenoiser, kControl, kDecoder } role;
  std::string folder;           // in the diffusers layout: "text_encoder_2"
  std::string label;            // for messages: "the transformer"
  std::string class_name = {};  // of diffusers, where conversion writes its config
  std::int64_t num_heads = 0;   // that tensor parallel ranks share; 0: never shared
  enum class Heads { kEven, kAny } heads = Heads::kEven;  // whether all get as many
  std::vector<std::string> lists = {};  // of blocks, as their names begin, in the order of use
  bool is_large = true;                 // worth 8 bits

  std::function<Names(const Checkpoint&)> names = {};
  std::function<ShardingTable(const Sharing&)> sharding = {};  // throws InputError
  std::optional<WidenedLayer> widened = {};                    // by an adapter
  AdapterNames adapters = {};  // no prefixes: files of adapters have nothing for it
  std::function<void(const Weights&)> make = {};  // makes the network and drops it: for surveys
  std::vector<BlockCost> costs = {};              // of a ControlNet's blocks
  // Of a text encoder: the most numbers that live while `tokens` pass, with so many ranks.
  std::function<std::int64_t(std::int64_t tokens, int ranks)> live = {};
};

// What a request is checked against, and what it gets where it says nothing.
constexpr int kMaxTextTokens = 512;    // the longest max_sequence_length of most families
constexpr int kMostTextTokens = 4096;  // and of any
constexpr int kMaxSide = 1 << 14;      // pixels
struct RequestDefaults {
  int width = 1024, height = 1024, steps = 28;
  double guidance = 3.5;
  int max_sequence_length = 512;
};
// Pictures that a family takes beside prompts.
struct PicturesTaken {
  enum class Init { kNever, kMaybe, kWithMask } init = Init::kNever;  // to start from
  // What the initial picture is: a sample of what the encoder makes of it; or its mean, which is
  // then the first reference, too, or the reference where there is no other. A mask of latents is
  // the nearest of its pixels, with the first reference bilinear.
  enum class InitAs { kSample, kReference, kReferenceAlone } init_as = InitAs::kSample;
  std::int64_t most_init_pixels = 0;                // a larger one is scaled down first; 0: none is
  double strength = 0.6, strength_with_mask = 0.6;  // unless the request says
  // What lies beside a token of latents: nothing, the latents of the control picture, or those of
  // the initial picture without what is drawn anew, then the mask. The last two are then needed.
  enum class Beside { kNothing, kControl, kMasked } beside = Beside::kNothing;
  std::vector<int> controlnet_modes = {};  // by ControlNet; 0: its pictures are of one kind
  bool controlnets_see_pixels = false;     // not what the autoencoder makes of pictures
  int most_references = 0;
  // As tokens beside the noise's, or as text behind the prompt's, of which each has a scale.
  enum class References { kBesideNoise, kBehindPrompt } references = References::kBesideNoise;
  std::int64_t tokens_behind_prompt = 0;  // that they are there, however many they are
  // A reference in the size that the encoder sees. Throws InputError for one that is no use.
  std::function<Pixels(const Pixels&)> fit_reference = {};
  // In its place where references get the size of what is drawn.
  std::function<Pixels(const Pixels&, PictureSize)> cut_reference = {};
  // Of which reference what is drawn has the size, unless asked for another.
  enum class SizeFrom { kFirst, kLast } size_from = SizeFrom::kFirst;
  // What of the encoder's distribution is looked at; a sample is drawn behind the noise.
  enum class ReferenceLatents { kMean, kSample } reference_latents = ReferenceLatents::kMean;
  // Whether the model sees references in every step, or was trained to attend what it made of them
  // before the first.
  enum class Seen { kInEveryStep, kOnce } references_seen = Seen::kInEveryStep;
};
struct RequestLimits {
  RequestDefaults defaults = {};
  int size_multiple = 16;  // pixels: sizes are rounded down to it
  // Of sizes that a model was trained for, the one to draw instead; none: it draws any.
  std::function<PictureSize(PictureSize)> nearest_size = {};
  int largest_side = kMaxSide;           // pixels
  int max_text_tokens = kMaxTextTokens;  // the longest max_sequence_length
  int num_texts = 1;                     // that a prompt has: 2 with a second text encoder
  GuidanceKind guidance = GuidanceKind::kEmbeddedOrTrue;
  GuidedFrom guided_from = GuidedFrom::kNegative;
  std::int64_t guided_channels = 0;  // TrueGuidance::kept_channels
  std::string negative_prompt = {};  // where a request has none
  PicturesTaken pictures = {};
};

// What is told of a model from its config files alone.
struct Description {
  std::string family;  // "FLUX.1"
  std::vector<Part> parts;
  DenoiserShape shape;
  RequestLimits limits;
  ScheduleConfig schedule;
  VaeConfig vae;
  bool latents_in_float = false;    // between steps, whatever the denoiser computes in
  std::string pipeline_class = {};  // of diffusers, where adapters make it another than its files'
};

}  // namespace braid

// A request with every default filled in and every value checked.
#pragma once

#include <string>
#include <vector>

#include "braid/braid.h"
#include "comm/mesh.h"
#include "pipeline/families/family.h"

namespace braid {

// How a ControlNet follows a picture, as in ControlPicture.
struct FollowedPicture {
  int net = 0;  // from 0 on
  double scale = 1, from = 0, to = 1;
  std::optional<int> mode = {};
};

struct Settings {
  std::vector<Prompt> prompts;
  std::optional<Prompt> negative;  // set exactly if true guidance runs
  TrueGuidance true_guidance = {};
  double true_cfg = 1;  // its scale, unless it is the model's own guidance
  int width = 0, height = 0, steps = 0;
  int frames = 1, first_frame = 0;  // those drawn, and the first of them that is returned
  int num_steps = 0;                // of the grid, which may have fewer levels than `steps`
  Sampling sampling = {};           // settled: with its sampler
  double guidance = 0;
  GuidanceKind guidance_kind = GuidanceKind::kEmbeddedOrTrue;  // what that is to the model
  int max_sequence_length = 0;
  std::uint64_t seed = 0;
  int num_images = 1, batch_size = 1;
  VaeTiling vae_tiling = VaeTiling::kAuto;
  Output output = Output::kBytes;
  std::optional<double> strength = {};  // set exactly if pictures start from another one
  int first_step = 0;                   // of `num_steps`; earlier ones are skipped
  std::vector<FollowedPicture> followed = {};
  std::optional<Region> returned = {};     // the part of what is drawn; unset: all of it
  std::optional<bool> cfg_normalize = {};  // as asked; unset where it is not used
  double mask_blur = 0;
  std::optional<int> padding_crop = {};
  PictureSize crop_shape = {};  // with padding_crop: the region takes its aspect ratio
  ReferenceCache reference_cache = ReferenceCache::kAuto;
  std::vector<double> reference_scales = {};  // of references appended to the prompt

  bool starts_from_noise_alone() const { return !strength && followed.empty(); }
  int steps_taken() const { return num_steps - first_step; }
  PictureSize size() const { return {.width = width, .height = height, .frames = frames}; }
  // What a request says to draw the same: a region has the shape that was asked for.
  PictureSize requested_size() const { return padding_crop ? crop_shape : size(); }
  int returned_frames() const { return frames - first_frame; }
  int layers() const { return first_frame > 0 ? returned_frames() : 0; }  // 0: draws none
  int num_pictures() const { return int(prompts.size()) * num_images; }
  const Prompt& prompt_of(int picture) const { return prompts[picture / num_images]; }
};

// Frames drawn of each picture; checks nothing.
int drawn_frames(const Request& request, const RequestLimits& limits);
// Throws InputError if the model does not draw so many frames, or layers.
void check_frames(const Request& request, const RequestLimits& limits);

// Throws InputError for a size that the model neither draws nor rounds.
void check_size(const Request& request, const RequestLimits& limits);

// Evaluations of the denoiser per step: 2 with true guidance, for the prompt and the negative one.
int num_branches(const Request& request, const RequestLimits& limits);
// The most that a request may have.
int most_branches(const RequestLimits& limits);

// The size that is drawn: the request's or that of its pictures, else the model's; as multiples, at
// least one, or as the nearest size the model was trained for. Checks nothing.
PictureSize drawn_size(const Request& request, const RequestLimits& limits);

// Pictures denoised at the same time: one batch per data-parallel rank and, under pipeline
// parallelism, per stage, which fills the pipe.
std::int64_t pictures_per_round(int batch_size, const Degrees& degrees);
// The same, kMostPictures at most.
int pictures_per_round(const Settings& settings, const Degrees& degrees);

// Whether a picture is decoded in tiles.
bool is_tiled(VaeTiling tiling, PictureSize size);

// The limits for a request that may bring adapters of its own: its defaults are then what their
// files name, not what those name that were loaded with the model. Throws InputError.
RequestLimits limits_for(const Request& request, const RequestLimits& limits);

// Sizes are rounded or refused as the model says (ModelInfo::size_multiple), with a warning.
// Throws InputError naming the field, its range and the value.
Settings settle(const Request& request, const RequestLimits& limits, const Warn& warn);

// A request that spells out all settings.
Request completed(const Request& request, const Settings& settings);

// The noise levels of all steps, those that a strength skips included.
Schedule schedule_of(const Settings& settings, const Family& family);

// The two shapes that a request's initial latents may have.
struct LatentShapes {
  std::vector<std::int64_t> packed, unpacked;  // [pictures, tokens, width]; [pictures, ...]
};
LatentShapes latent_shapes(const Settings& settings, const Family& family);
// Throws InputError if the request has initial latents, but of neither shape.
void check_initial_latents(const Request& request, const Settings& settings, const Family& family);

}  // namespace braid

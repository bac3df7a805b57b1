// The only interface to a family of models. Engine, planner, proofs, conversion and program ask
// here for all they need to know of a model; families.cc lists the families.
//
// Shape letters: B batch, N tokens of latents, T text tokens, C widths, A axes of a position.
#pragma once

#include <memory>

#include "nn/attention.h"
#include "nn/block_list.h"
#include "nn/denoiser_part.h"
#include "pipeline/families/description.h"
#include "pipeline/families/prompt_tokens.h"
#include "pipeline/families/text_encoders.h"
#include "pipeline/files/model_files.h"
#include "pipeline/sampling/noise.h"

namespace braid {

// The source of a part's weights when it is loaded.
using WeightsOf = std::function<Weights(const Part&)>;

// Whether a picture is started from or followed; other pipelines of the reference do that.
enum class StartsFrom { kNoise, kPicture };

// A model of some family, described but not loaded.
class Family {
 public:
  explicit Family(Description description);
  virtual ~Family() = default;
  const Description& description() const { return description_; }
  const DenoiserShape& shape() const { return description_.shape; }
  const Part& part(Part::Role role) const;  // the only one of this role
  std::vector<const Part*> parts(Part::Role role) const;
  std::vector<const Part*> text_parts() const { return parts(Part::Role::kText); }
  std::vector<const Part*> denoisers() const { return parts(Part::Role::kDenoiser); }
  // Which of denoisers() serves the evaluation.
  std::size_t denoiser_for(const StepInfo& step) const;
  at::ScalarType latents_dtype(at::ScalarType of_denoiser) const {
    return description_.latents_in_float ? at::kFloat : of_denoiser;
  }

  // The same with other block counts, one per kind; 0 leaves a kind unchanged.
  virtual std::shared_ptr<const Family> with_blocks(const std::vector<int>& counts) const = 0;

  // The same with a layer wider than stored, if an adapter widens one; else null.
  virtual std::shared_ptr<const Family> widened_by(const std::vector<AppliedAdapter>&) const {
    return nullptr;
  }

  // Loading. The denoiser `part` gets the blocks of `run`, by default all.
  virtual DenoiserPart load_denoiser(const Part& part, const Weights& w, Attend attend,
                                     std::optional<BlockRange> run = {}) const = 0;
  // The ControlNets listed as parts of the description; empty if it has none.
  virtual Controls load_controls(const WeightsOf& weights, const Attend& attend) const;
  // `folder` is the model's; `warn` reports files that differ from what the family expects.
  virtual std::unique_ptr<const TextEncoders> load_text(const std::filesystem::path& folder,
                                                        at::Device device, const WeightsOf& weights,
                                                        const Warn& warn) const = 0;

  // How the text encoders read prompts, in order.
  virtual std::vector<PromptReader> prompt_readers() const { return {}; }

  // Families that append references to the prompt have these: what embeds them, and the prompt with
  // them.
  virtual EmbedPicture load_picture_embedder(const WeightsOf& weights) const;
  virtual Condition behind_prompt(const Condition& embedded, const Prompt& prompt,
                                  const EmbeddedPictures& pictures) const;

  // Latents as tokens, in latents_dtype(); noise [B N C] drawn on the CPU as in the reference. What
  // a stochastic step from `in` adds is float32, drawn in the shape of what the reference steps.
  virtual std::int64_t num_tokens(PictureSize size) const = 0;
  Tensor draw(Generators generators, PictureSize size, at::ScalarType dtype) const;
  virtual Tensor draw_for_step(Generators, PictureSize size, const DenoiserInput& in) const;
  // The shape of the autoencoder's latents; packing them to tokens, and unpacking.
  virtual std::vector<std::int64_t> latent_shape(PictureSize size) const = 0;  // of one picture
  virtual Tensor pack(const Tensor& latents) const = 0;
  virtual Tensor unpack(const Tensor& tokens_BNC, PictureSize size) const = 0;
  // Reference `number`, from 0 on, from latents [1 Z H W] in a size of their own. Then all of them
  // as an input with batch 1, for a model that sees them once.
  virtual Tokens reference(const Tensor& latents, int number) const;
  virtual DenoiserInput references_alone(const std::vector<Tokens>& references) const;

  // A step's input: `begin` fills what all steps share, `set_step` what each brings. `like` gives
  // the denoiser's device and dtype.
  virtual DenoiserInput begin(const Condition& condition, PictureSize size, double guidance,
                              const at::TensorOptions& like) const = 0;
  virtual void set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const = 0;
  // Once an input has its references: for models causal by blocks, the spans of its prefix, and
  // the positions that depend on what stands before.
  virtual void arrange(DenoiserInput& /*in*/) const {}
  // Whether its keys and values are computed before the first step, and not in each one.
  bool keeps_prefix(ReferenceCache cache) const {
    return shape().text == TextTokens::kPrefix && !shape().prefix_has_time &&
           cache == ReferenceCache::kAuto;
  }
  // ControlNet `net`'s input beside one that has begun; without its picture and scale.
  virtual ControlInput control(const DenoiserInput& in, int net, std::optional<int> mode,
                               double guidance) const;

  virtual Schedule schedule(int steps, PictureSize size, StartsFrom /*start*/) const {
    return make_schedule(description_.schedule,
                         {.steps = steps, .image_tokens = num_tokens(size), .mu = mu(size, steps)});
  }
  // The dynamic shift that the pipeline passes to its scheduler.
  virtual double mu(PictureSize size, int /*steps*/) const {
    return dynamic_shift(description_.schedule, num_tokens(size));
  }
  // schedule(), or the levels that a settled sampling chooses instead.
  Schedule schedule_as(const Sampling& sampling, int steps, PictureSize size,
                       StartsFrom start) const;

  // Conversion: names and config.json as in diffusers, and the denoiser's names in a single file.
  virtual Names written_names(const Part& part) const = 0;
  virtual Names single_file_names() const = 0;
  virtual std::string config_text(const Part& denoiser) const = 0;

 private:
  Description description_;
};

// A family as families.cc lists it.
struct FamilyEntry {
  std::string pipeline_class;  // in model_index.json
  // Other classes of the same model, for pictures; a directory names the one that it was saved by.
  std::vector<std::string> kin_classes = {};
  std::string transformer_class = {};              // of diffusers: each denoiser's
  std::vector<std::string> folders;                // that a model directory contains
  std::vector<std::string> optional_folders = {};  // that it may contain if its index names them
  std::vector<std::string> denoisers = {"transformer"};  // of these: its denoisers'
  std::vector<std::string> single_file_has;  // tensors; any of them identifies a single file
  std::vector<std::string> published;        // names of models of known sizes: "flux1-dev"
  std::string publisher = {};                // of those whose configurations come with Braid
  bool takes_controlnets = false, takes_redux = false;

  // Throws InputError naming file and field, also if parts do not match each other.
  std::function<std::shared_ptr<const Family>(const ModelFiles&)> open;
  std::function<std::shared_ptr<const Family>(const std::string& name)> named;
};

// Defined in families.cc, and by tests that bring their own family.
const std::vector<FamilyEntry>& known_families();

// Whether the part of a directory of this family is a denoiser.
bool is_denoiser(const FamilyEntry& family, const std::string& folder);
// The folders of all known families' denoisers, each once.
std::vector<std::string> denoiser_folders();

std::shared_ptr<const Family> open_family(const ModelFiles& files);
// A model known by name, with published sizes; null for other names.
std::shared_ptr<const Family> named_family(const std::string& name);
std::string list_of_named_models();  // "flux1-dev or flux1-schnell"

}  // namespace braid

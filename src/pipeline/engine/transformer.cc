// The public interface over denoisers alone.
#include "braid/transformer.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/InferenceMode.h>

#include "base/error.h"
#include "pipeline/deployment/ranks.h"
#include "pipeline/devices/cached_memory.h"
#include "pipeline/devices/rank_threads.h"
#include "pipeline/engine/turns.h"
#include "pipeline/loaded/once_per_picture.h"
#include "pipeline/request/latents.h"

namespace braid {

// An input on the host, checked.
struct InputTensors {
  Tensor latents_BNC = {}, beside_BNC = {}, text_BTC = {}, pooled_BC = {}, timestep_B = {},
         target_timestep_B = {}, guidance_B = {}, latent_ids_NA = {}, text_ids_TA = {};
  std::int64_t num_references = 0;  // of the tokens, behind those with a velocity
  std::vector<ReferencePlace> reference_places = {};
  BlockResiduals residuals = {};
  PictureSize size = {};

  std::int64_t num_drawn() const { return latents_BNC.size(1) - num_references; }
};

namespace {

// [B] in float32.
Tensor per_picture(const char* name, const std::vector<float>& values, std::int64_t pictures) {
  require(std::int64_t(values.size()) == pictures, name, " should have one value for each of ",
          pictures, " pictures, they have ", values.size());
  check_finite(name, values);
  return at::tensor(values);
}

void check_width(const char* name, const Tensor& x, std::int64_t width) {
  require(x.size(-1) == width, name, " should be ", width, " wide, they are ", x.size(-1));
}

void check_num_pictures(const char* name, const Tensor& x, std::int64_t pictures) {
  require(x.size(0) == pictures, "there are latents of ", pictures, " pictures, but ", name, " of ",
          x.size(0));
}

bool is_given(const Latents& x) { return !x.shape.empty() || !x.values.empty(); }

bool takes_residuals(const Deployment& deployment) {
  return deployment.files && deployment.files->family->takes_controlnets;
}

std::vector<Tensor> residuals_in(const char* name, const std::vector<Latents>& residuals,
                                 const Tensor& latents_BNC, const Deployment& deployment) {
  std::vector<Tensor> tensors;
  const std::vector<std::int64_t> shape = {latents_BNC.size(0), latents_BNC.size(1),
                                           deployment.family->shape().hidden};
  require(residuals.empty() || takes_residuals(deployment), name,
          " are for models with ControlNets, which this one is not");
  for (const auto& values : residuals) {
    tensors.push_back(tensor_in(name, values, 3));
    require(tensors.back().sizes() == shape, name, " should have the shape ",
            at::IntArrayRef(shape), ", one has ", tensors.back().sizes());
  }
  return tensors;
}

void check_reference_places(const TransformerInput& e, const Family& family) {
  const auto& places = e.reference_places;
  const bool are_amid_text = family.shape().text == TextTokens::kPrefix;
  require(
      are_amid_text || places.empty(),
      "places of references are for models that read them amid the text, which this one is not");
  require(!are_amid_text || !places.empty() || e.num_references == 0,
          "this model reads references amid the text: their places are missing");
  const auto num_text = e.text.shape[1];
  std::int64_t tokens = 0, before = 0;
  for (const auto& place : places) {
    require(place.num_tokens > 0, "a reference should have tokens, one has ", place.num_tokens);
    require(place.text_before >= before && place.text_before <= num_text,
            "references should stand in their order amid ", num_text,
            " tokens of text, one stands behind ", place.text_before, ", the one before it behind ",
            before);
    tokens += place.num_tokens;
    before = place.text_before;
  }
  require(places.empty() || tokens == e.num_references, "there are places of ", tokens,
          " tokens of references, but ", e.num_references, " such tokens");
}

// The positions of all tokens: the caller's, or those of a picture of the given size.
void place_tokens(InputTensors& c, const TransformerInput& e, const Family& family) {
  const auto num_tokens = c.latents_BNC.size(1);
  if (is_given(e.latent_ids) || is_given(e.text_ids)) {
    c.latent_ids_NA = tensor_in("positions of latents", e.latent_ids, 2);
    c.text_ids_TA = tensor_in("positions of text", e.text_ids, 2);
    require(c.latent_ids_NA.size(0) == num_tokens && c.text_ids_TA.size(0) == c.text_BTC.size(1),
            "there should be a position for each token");
    return;
  }
  require(e.num_references == 0, "there are ", e.num_references,
          " tokens of references: they need positions");
  require(e.width > 0 && e.height > 0, "a picture's width and height should be above 0, they are ",
          e.width, " and ", e.height);
  require(family.num_tokens(c.size) == num_tokens, "a picture of ", e.width, "x", e.height, " has ",
          family.num_tokens(c.size), " tokens, not ", num_tokens);
}

InputTensors tensors_of_input(const TransformerInput& e, const Deployment& deployment) {
  const auto& family = *deployment.family;
  const auto& shape = family.shape();
  InputTensors c{.text_BTC = tensor_in("text embeddings", e.text, 3),
                 .size = {.width = e.width, .height = e.height}};
  const auto latents = tensor_in("latents", e.latents, 3);
  const auto pictures = latents.size(0);
  require(latents.numel() > 0, "latents of shape ", latents.sizes(), " have 0 values");
  check_width("latents", latents, shape.in_width + shape.extra_width);
  check_width("text embeddings", c.text_BTC, shape.text_width);
  check_num_pictures("text embeddings", c.text_BTC, pictures);
  c.latents_BNC = latents.narrow(2, 0, shape.in_width);
  if (shape.extra_width > 0) c.beside_BNC = latents.narrow(2, shape.in_width, shape.extra_width);
  if (shape.pooled_width > 0) {
    c.pooled_BC = tensor_in("pooled embeddings", e.pooled, 2);
    check_width("pooled embeddings", c.pooled_BC, shape.pooled_width);
    check_num_pictures("pooled embeddings", c.pooled_BC, pictures);
  }
  require(e.num_references >= 0 && e.num_references < latents.size(1), "there are ",
          latents.size(1), " tokens, of which ", e.num_references, " should be references");
  c.num_references = e.num_references;
  check_reference_places(e, family);
  c.reference_places = e.reference_places;
  c.timestep_B = per_picture("timesteps", e.timesteps, pictures);
  if (!e.target_timesteps.empty())
    c.target_timestep_B = per_picture("target timesteps", e.target_timesteps, pictures);
  if (!e.guidance.empty()) c.guidance_B = per_picture("guidance scales", e.guidance, pictures);
  c.residuals = {.doubles = residuals_in("residuals of double blocks", e.double_residuals, latents,
                                         deployment),
                 .singles = residuals_in("residuals of single blocks", e.single_residuals, latents,
                                         deployment)};
  place_tokens(c, e, family);
  return c;
}

// What all ranks have to be given alike, with its name. The residuals of nets are left out: they
// are made of the same, and a gigabyte of them in each step would take longer to hash than to use.
std::vector<std::pair<std::string, Tensor>> compared_tensors(const InputTensors& c) {
  std::vector<std::int64_t> numbers = {c.num_references, c.size.width, c.size.height};
  for (const auto& place : c.reference_places)
    numbers.insert(numbers.end(), {place.num_tokens, place.text_before});
  return {
      {"latents", c.latents_BNC},           {"latents beside those that are drawn", c.beside_BNC},
      {"text embeddings", c.text_BTC},      {"pooled embeddings", c.pooled_BC},
      {"timesteps", c.timestep_B},          {"target timesteps", c.target_timestep_B},
      {"guidance scales", c.guidance_B},    {"positions of latents", c.latent_ids_NA},
      {"positions of text", c.text_ids_TA}, {"sizes and references", at::tensor(numbers)}};
}

// Tokens of text before each reference [R]; undefined where references have no places in the text.
Tensor places_in_text(const std::vector<ReferencePlace>& references) {
  if (references.empty()) return {};
  std::vector<std::int64_t> before;
  for (const auto& reference : references) before.push_back(reference.text_before);
  return at::tensor(before, at::kLong);
}

// The references' tokens and positions: by reference where each has a place, else in one run.
std::vector<Tokens> references_of(const InputTensors& c, const at::TensorOptions& like) {
  std::vector<Tokens> references;
  auto first = c.num_drawn();
  const auto add = [&](std::int64_t count) {
    references.push_back({.x_BLC = c.latents_BNC.narrow(1, first, count).to(like),
                          .ids_LA = c.latent_ids_NA.narrow(0, first, count).to(like.device())});
    first += count;
  };
  for (const auto& place : c.reference_places) add(place.num_tokens);
  if (c.reference_places.empty() && c.num_references > 0) add(c.num_references);
  return references;
}

// The caller's positions, instead of the family's.
void set_ids(DenoiserInput& in, const InputTensors& c, at::Device device) {
  in.noise.ids_LA = c.latent_ids_NA.narrow(0, 0, c.num_drawn()).to(device);
  in.text.ids_LA = c.text_ids_TA.to(device);
  auto first = c.num_drawn();
  for (auto& reference : in.references) {
    const auto count = reference.x_BLC.size(1);
    reference.ids_LA = c.latent_ids_NA.narrow(0, first, count).to(device);
    first += count;
  }
}

// What the caller says of the step, instead of a schedule.
void set_step_of(DenoiserInput& in, const InputTensors& c) {
  in.timestep_B = c.timestep_B.to(in.timestep_B.options());
  require(in.target_timestep_B.defined() == c.target_timestep_B.defined(), "target timesteps are ",
          "for flow maps, and for those they are needed");
  if (in.target_timestep_B.defined())
    in.target_timestep_B = c.target_timestep_B.to(in.target_timestep_B.options());
  if (!in.guidance_B.defined()) return;
  require(c.guidance_B.defined(), "this model was distilled for guidance: its scale is missing");
  in.guidance_B = c.guidance_B.to(in.guidance_B.options());
}

DenoiserInput input_of(const InputTensors& c, const Family& family, at::ScalarType dtype,
                       at::Device device) {
  const auto like = at::TensorOptions(dtype).device(device);
  const auto there = [&](const Tensor& x) { return x.defined() ? x.to(like) : Tensor(); };
  const auto latents = c.latents_BNC.to(device, family.latents_dtype(dtype));
  const int multiple = family.description().limits.size_multiple;
  const auto size =
      c.latent_ids_NA.defined() ? PictureSize{.width = multiple, .height = multiple} : c.size;
  auto in = family.begin({.text_BTC = there(c.text_BTC),
                          .pooled_BC = there(c.pooled_BC),
                          .places_R = places_in_text(c.reference_places)},
                         size, /*guidance=*/1, like);
  const auto axes = in.noise.ids_LA.size(1);
  require(!c.latent_ids_NA.defined() ||
              (c.latent_ids_NA.size(1) == axes && c.text_ids_TA.size(1) == axes),
          "positions should have ", axes, " axes");
  in.references = references_of(c, like);
  family.arrange(in);
  if (c.latent_ids_NA.defined()) set_ids(in, c, device);
  family.set_step(in, latents.narrow(1, 0, c.num_drawn()), /*timestep=*/0);
  set_step_of(in, c);
  in.extra_BLC = there(c.beside_BNC);
  for (const auto& residual : c.residuals.doubles) in.residuals.doubles.push_back(there(residual));
  for (const auto& residual : c.residuals.singles) in.residuals.singles.push_back(there(residual));
  return in;
}

// A caller brings one branch at a time, and does not say which evaluations follow each other.
Deployment deployed_alone(const PipelineOptions& options, const Warn& warn) {
  auto deployment = deploy(
      {.pipeline = options, .needed = WeightsNeeded::kTransformer, .say = warn, .warn = warn});
  require(deployment.degrees().cfg == 1,
          "a transformer alone evaluates one branch of guidance at a time: its layout should have "
          "no CFG parallelism, it has a degree of ",
          deployment.degrees().cfg);
  deployment.options.cache = {};
  return deployment;
}

}  // namespace

class Transformer::State {
 public:
  State(const PipelineOptions& options, const Hooks& hooks)
      : deployment_(deployed_alone(options, hooks.warning)),
        world_(make_world(deployment_, hooks.warning)),
        threads_(threads_per_rank(deployment_.options, world_->ranks_on_these_cores())),
        denoisers_(std::size_t(world_->size())) {
    world_->on_failed_run([this](int rank) {
      const c10::DeviceGuard on(deployment_.devices[std::size_t(rank)]);
      if (const auto& mine = denoisers_[std::size_t(rank)]) mine->forget_graphs();
    });
    on_ranks(hooks, [&](const Group& group, std::size_t rank) {
      group.poll();
      group.await();
      const auto mesh = make_mesh(group, deployment_.degrees());
      const LoadHooks polling{.on_bytes = [&](std::int64_t) { group.poll(); }};
      denoisers_[rank] = std::make_unique<const Denoisers>(loading_on(mesh, deployment_, polling));
    });
  }

  Latents velocity(const TransformerInput& evaluation, const Hooks& hooks) const {
    const auto turn = turns_.take(hooks.stop);
    const auto& family = *deployment_.family;
    const c10::InferenceMode guard;
    const auto tensors =
        made_before_run(*world_, [&] { return tensors_of_input(evaluation, deployment_); });
    Latents velocity;
    on_ranks(hooks, [&](const Group& group, std::size_t rank) {
      check_same_input(group, tensors);
      const auto mine = velocity_on(tensors, family, rank);
      group.await();
      if (rank == 0 || has_own_caller()) velocity = latents_of(mine);
    });
    return velocity;
  }

  bool is_here() const { return turns_.is_here(); }

 private:
  // Ranks that are processes are called each by its own, with an input that should be everyone's,
  // and each caller goes on with the velocity.
  bool has_own_caller() const { return !world_->has_all_ranks(); }

  void check_same_input(const Group& group, const InputTensors& input) const {
    if (!has_own_caller()) return;
    for (const auto& [what, x] : compared_tensors(input))
      check_same(group, x.defined() ? x : at::empty({0}), what);
  }

  void on_ranks(const Hooks& hooks,
                const std::function<void(const Group&, std::size_t rank)>& body) const {
    const auto run = [&](const Group& group) {
      const auto rank = std::size_t(group.rank());
      const c10::DeviceGuard on(deployment_.devices[rank]);
      const UseThreads threads(threads_);
      body(group, rank);
    };
    world_->run(run, hooks.stop);
  }

  Tensor velocity_on(const InputTensors& evaluation, const Family& family, std::size_t rank) const {
    const auto& denoisers = *denoisers_[rank];
    const std::vector<DenoiserInput> branches = {
        input_of(evaluation, family, deployment_.dtype, deployment_.devices[rank])};
    const OncePerPicture once(denoisers, {branches});
    return once.predict(branches).front().narrow(1, 0, evaluation.num_drawn());
  }

  Deployment deployment_;
  const GivesBackMemory gives_back_{deployment_.devices};
  std::unique_ptr<World> world_;
  int threads_;
  std::vector<std::unique_ptr<const Denoisers>> denoisers_;  // by rank; those in this process
  const Turns turns_{"transformer"};
};

Transformer::Transformer(const PipelineOptions& options, const Hooks& hooks)
    : state_(std::make_unique<State>(options, hooks)) {}
Transformer::Transformer(Transformer&&) noexcept = default;
Transformer& Transformer::operator=(Transformer&& other) noexcept {
  replace_where_made(state_, other.state_);
  return *this;
}
Transformer::~Transformer() { end_where_made(state_); }

Latents Transformer::velocity(const TransformerInput& evaluation, const Hooks& hooks) const {
  return held(state_, "transformer").velocity(evaluation, hooks);
}

}  // namespace braid

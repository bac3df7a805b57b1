// LoRAs in every spelling, fused into the transformers of other fixtures, against diffusers with
// merged weights, on one rank and in every layout.
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "comm/thread.h"
#include "denoiser_inputs.h"
#include "models/flux/model.h"
#include "models/flux/names.h"
#include "models/flux/sharding.h"
#include "models/flux2/model.h"
#include "models/flux2/names.h"
#include "models/flux2/sharding.h"
#include "models/flux3/model.h"
#include "models/flux3/names.h"
#include "models/flux3/sharding.h"
#include "models/joy/model.h"
#include "models/joy/names.h"
#include "models/joy/sharding.h"
#include "models/krea2/model.h"
#include "models/krea2/names.h"
#include "models/krea2/sharding.h"
#include "models/qwen21/model.h"
#include "models/qwen21/names.h"
#include "models/qwen21/sharding.h"
#include "models/qwen_image/model.h"
#include "models/qwen_image/names.h"
#include "models/zimage/model.h"
#include "models/zimage/names.h"
#include "models/zimage/sharding.h"
#include "parallel/layout.h"
#include "weights/adapters/adapted_tensors.h"

namespace braid::adapter_parity_test {

namespace fs = std::filesystem;

// Ranks share an adapter as they share its matrices: by columns and rows, and by blocks.
const std::vector<Degrees> kLayouts = {{.ulysses = 2}, {.pp = 2, .tp = 2}};
const std::vector<Degrees> kMoreLayouts = {{.tp = 2}, {.ring = 2}, {.pp = 2}};

// A transformer whose adapters are in a folder of tests/data/parity/adapters.
struct Base {
  Checkpoint checkpoint;
  Names names;
  AdapterNames adapter_names;
  ShardingTable shardings;
  std::function<DenoiserPart(const Weights&, Attend, const Mesh&)> load;
  DenoiserInput input;
  std::function<Tensor(const Tensor& tokens)> velocity;  // from the fixture
};

// The blocks of this rank's stage.
Share run_of(const Mesh& mesh, std::int64_t all) {
  return share_of(all, mesh.pp.rank(), mesh.pp.size());
}

Tensor same(const Tensor& tokens) { return tokens; }

Base flux_base() {
  const auto folder = kParity / "basic";
  const auto config = config_of(folder / "model/transformer", read_flux_config);
  const auto checkpoint = Checkpoint::open(folder / "model/transformer", "diffusion_pytorch_model");
  const Dump dump(folder / "components.safetensors");
  const auto load = [config](const Weights& w, Attend attend, const Mesh& mesh) -> DenoiserPart {
    const auto run = run_of(mesh, config.num_double + config.num_single);
    return part_of(
        std::make_shared<const Flux>(config, w, attend, BlockRange{run.begin, run.count}));
  };
  return {
      .checkpoint = checkpoint,
      .names = flux_names(checkpoint),
      .adapter_names = flux_adapter_names(),
      .shardings = flux_sharding(config, SharedModulation::kYes),
      .load = load,
      .input = {.noise = {dump["transformer.hidden_states"], dump["transformer.img_ids"]},
                .text = {dump["transformer.encoder_hidden_states"], dump["transformer.txt_ids"]},
                .pooled_BC = dump["transformer.pooled_projections"],
                .timestep_B = dump["transformer.timestep"],
                .guidance_B = dump["transformer.guidance"]},
      .velocity = same};
}

Base flux2_base() {
  const PartFixture fixture("klein");
  const auto config = config_of(fixture.folder(), read_flux2_config);
  const auto load = [config](const Weights& w, Attend attend, const Mesh& mesh) -> DenoiserPart {
    const auto all = flux2_shape(config).num_blocks();
    const auto run = run_of(mesh, all);
    const auto model = std::make_shared<Flux2>(config, w, attend, BlockRange{run.begin, run.count});
    return {.predict = [=](const DenoiserInput& in, const Tensor& state) {
      return model->advance(in, state);
    }};
  };
  return {.checkpoint = fixture.weights(),
          .names = flux2_names(fixture.weights()),
          .adapter_names = flux2_adapter_names(),
          .shardings = flux2_sharding(config, SharedModulation::kYes),
          .load = load,
          .input = denoiser_input(fixture.dump(), at::kFloat),
          .velocity = same};
}

Base zimage_base() {
  const PartFixture fixture("zimage-32");
  const auto config = config_of(fixture.folder(), read_zimage_config);
  const auto latents = fixture.dump()["latents"];
  const auto load = [config](const Weights& w, Attend attend, const Mesh& mesh) -> DenoiserPart {
    const auto all = zimage_shape(config).num_blocks();
    const auto run = run_of(mesh, all);
    return part_of(
        std::make_shared<const ZImage>(config, w, attend, BlockRange{run.begin, run.count}));
  };
  return {.checkpoint = with_left_out(fixture.weights()),
          .names = zimage_names(fixture.weights()),
          .adapter_names = zimage_adapter_names(),
          .shardings = zimage_sharding(config),
          .load = load,
          .input = zimage_input(fixture.dump(), at::kFloat),
          .velocity = [rows = latents.size(2) / 2, columns = latents.size(3) / 2](
                          const Tensor& tokens) { return unpack(tokens, rows, columns); }};
}

Base joy_base() {
  const auto folder = kParity / "joy";
  const auto config = config_of(folder / "model/transformer", read_joy_config);
  const auto load = [config](const Weights& w, Attend attend, const Mesh& mesh) -> DenoiserPart {
    const auto run = run_of(mesh, joy_shape(config).num_blocks());
    const auto model =
        std::make_shared<const Joy>(config, w, attend, BlockRange{run.begin, run.count});
    return {.predict = [=](const DenoiserInput& in, const Tensor& state) {
      return model->advance(in, state);
    }};
  };
  return {.checkpoint = Checkpoint::open(folder / "model/transformer", "diffusion_pytorch_model"),
          .names = {},
          .adapter_names = joy_adapter_names(),
          .shardings = joy_sharding(config, SharedModulation::kYes),
          .load = load,
          .input = joy_input(Dump(folder / "components.safetensors"), 3, at::kFloat),
          .velocity = [](const Tensor& tokens) {
            return joy_latents(tokens, {2, 16, 4, 6});
          }};
}

Base krea2_base() {
  const PartFixture fixture("krea2");
  const auto config = config_of(fixture.folder(), read_krea2_config);
  const auto load = [config](const Weights& w, Attend attend, const Mesh& mesh) -> DenoiserPart {
    const auto run = run_of(mesh, config.num_blocks());
    const auto model =
        std::make_shared<const Krea2>(config, w, attend, BlockRange{run.begin, run.count});
    auto part = part_of(model);
    part.refine = [=](const DenoiserInput& in, const Tensor& text_BTC) {
      return model->refine(in, text_BTC);
    };
    return part;
  };
  return {.checkpoint = fixture.weights(),
          .names = krea2_names(fixture.weights()),
          .adapter_names = krea2_adapter_names(),
          .shardings = krea2_sharding(config, SharedModulation::kYes),
          .load = load,
          .input = denoiser_input(fixture.dump(), at::kFloat),
          .velocity = same};
}

Base flux3_base() {
  const PartFixture fixture("flux3");
  const auto config = config_of(fixture.folder(), read_flux3_config);
  const auto load = [config](const Weights& w, Attend attend, const Mesh& mesh) -> DenoiserPart {
    const auto run = run_of(mesh, config.num_blocks());
    return part_of(
        std::make_shared<const Flux3>(config, w, attend, BlockRange{run.begin, run.count}));
  };
  return {.checkpoint = fixture.weights(),
          .names = flux3_names(fixture.weights()),
          .adapter_names = flux3_adapter_names(),
          .shardings = flux3_sharding(config, SharedModulation::kYes),
          .load = load,
          .input = denoiser_input(fixture.dump(), at::kFloat),
          .velocity = same};
}

Base qwen21_base() {
  const PartFixture fixture("qwen21");
  const auto config = config_of(fixture.folder(), read_qwen21_config);
  const auto load = [config](const Weights& w, Attend attend, const Mesh& mesh) {
    const auto run = run_of(mesh, config.num_layers);
    return part_of(
        std::make_shared<const Qwen21>(config, w, attend, BlockRange{run.begin, run.count}));
  };
  return {.checkpoint = fixture.weights(),
          .names = qwen21_names(fixture.weights()),
          .adapter_names = qwen21_adapter_names(),
          .shardings = qwen21_sharding(config, SharedModulation::kYes),
          .load = load,
          .input = denoiser_input(fixture.dump(), at::kFloat),
          .velocity = same};
}

Base qwen_image_base() {
  const PartFixture fixture("qwen-image");
  const auto config = config_of(fixture.folder(), read_qwen_image_config);
  const auto load = [config](const Weights& w, Attend attend, const Mesh& mesh) {
    const auto run = run_of(mesh, config.num_layers);
    return part_of(
        std::make_shared<const QwenImage>(config, w, attend, BlockRange{run.begin, run.count}));
  };
  return {.checkpoint = fixture.weights(),
          .names = qwen_image_names(fixture.weights()),
          .adapter_names = qwen_image_adapter_names(),
          .shardings = flux_sharding(blocks_of(config), SharedModulation::kYes),
          .load = load,
          .input = denoiser_input(fixture.dump(), at::kFloat),
          .velocity = same};
}

class AdapterParity : public testing::TestWithParam<std::string> {
 protected:
  AdapterParity()
      : family_(GetParam().substr(0, GetParam().find('/'))),
        name_(GetParam().substr(GetParam().find('/') + 1)),
        folder_(kParity / "adapters" / family_),
        expected_(Dump(folder_ / "expected.safetensors")[name_]),
        base_(family_ == "flux"         ? flux_base()
              : family_ == "flux2"      ? flux2_base()
              : family_ == "flux3"      ? flux3_base()
              : family_ == "joy"        ? joy_base()
              : family_ == "krea2"      ? krea2_base()
              : family_ == "qwen21"     ? qwen21_base()
              : family_ == "qwen-image" ? qwen_image_base()
                                        : zimage_base()) {
    const auto manifest = nlohmann::json::parse(read_file(folder_ / "manifest.json"));
    // peft draws new DoRA magnitudes each time, so its spread was not measured: rslora's stands in.
    spread_ = manifest["float32_spread"].at(name_ == "peft-dora" ? "peft-rslora" : name_);
  }

  Weights weights(const LoadOptions& options, AdapterMode mode) const {
    AdaptedPart part{.names = base_.adapter_names,
                     .shardings = base_.shardings,
                     .warn = [](const std::string& warning) { ADD_FAILURE() << warning; }};
    return {adapted_tensors(stored_tensors(base_.checkpoint, base_.names),
                            open_adapters({{.file = folder_ / (name_ + ".safetensors")}}), mode,
                            std::make_shared<UnmergedAdapters>(std::move(part), at::kCPU)),
            options, base_.shardings};
  }
  Tensor velocity(const Group& world, const Degrees& degrees,
                  AdapterMode mode = AdapterMode::kFused) const {
    const c10::InferenceMode no_autograd;
    const auto mesh = make_mesh(world, degrees);
    const auto part =
        base_.load(weights({.tensor_parallel = mesh.tp}, mode), attend_over(mesh), mesh);
    auto in = base_.input;
    if (part.refine) in.refined_BTC = refine_over(mesh, part)({in}).front();
    return base_.velocity(predict_over(mesh, part)({in}).front());
  }
  void expect_merged_in(const std::vector<Degrees>& layouts, AdapterMode mode) const {
    for (const auto& degrees : layouts)
      run_ranks({.size = degrees.product()}, [&](const Group& world) {
        EXPECT_LT(largest_error(velocity(world, degrees, mode), expected_), bound(2e-5))
            << to_string(degrees) << (mode == AdapterMode::kFused ? ", fused" : ", unmerged");
      });
  }
  // The bound is at least 1.5 times the reference's difference from itself on another processor.
  double bound(double usual) const { return std::max(usual, 1.5 * spread_); }
  // Adapters that are more than low-rank products.
  bool is_fused_only() const {
    for (const auto* const word :
         {"dora", "rslora", "control", "lokr", "loha", "onetrainer", "whole"})
      if (name_.find(word) != std::string::npos) return true;
    return false;
  }

  std::string family_, name_;
  fs::path folder_;
  Tensor expected_;
  Base base_;
  double spread_ = 0;
};

TEST_P(AdapterParity, FusedIsTheMergedReference) {
  const auto got = velocity({}, {});
  ASSERT_EQ(got.sizes(), expected_.sizes());
  EXPECT_LT(largest_error(got, expected_), bound(1e-5));
}

TEST_P(AdapterParity, FusedIsTheSameInEveryLayout) {
  expect_merged_in(kLayouts, AdapterMode::kFused);
}

TEST_P(AdapterParity, BesideIsTheMergedReferenceInEveryLayout) {
  if (is_fused_only()) {
    EXPECT_THROW(velocity({}, {}, AdapterMode::kUnmerged), InputError);
    return;
  }
  EXPECT_LT(largest_error(velocity({}, {}, AdapterMode::kUnmerged), expected_), bound(1e-5));
  expect_merged_in(kLayouts, AdapterMode::kUnmerged);
}

class SlowAdapterParity : public AdapterParity {};

TEST_P(SlowAdapterParity, IsTheMergedReferenceInMoreLayouts) {
  expect_merged_in(kMoreLayouts, AdapterMode::kFused);
  if (!is_fused_only()) expect_merged_in(kMoreLayouts, AdapterMode::kUnmerged);
}

const auto kFiles = testing::Values(
    "flux/peft", "flux/peft-rslora", "flux/peft-dora", "flux/kohya", "flux/comfyui",
    "flux/comfyui-down", "flux/mixed", "flux/fal", "flux/xlabs", "flux/control", "flux/lokr",
    "flux/loha", "flux/diffsynth", "flux/onetrainer", "flux/fused", "flux/peft-lokr",
    "flux/peft-loha", "flux2/peft", "flux2/kohya", "flux2/comfyui", "flux2/base-model", "flux2/cut",
    "flux2/lokr", "flux2/fused", "flux2/lycoris-dora", "zimage/peft", "zimage/kohya",
    "zimage/comfyui", "zimage/default", "zimage/fused", "zimage/lokr", "joy/peft", "joy/kohya",
    "joy/diffsynth", "joy/lycoris-dora", "krea2/peft", "krea2/comfyui", "krea2/base-model",
    "krea2/diffusers", "krea2/bare", "krea2/kohya", "krea2/lycoris-dora", "krea2/lokr",
    "krea2/whole", "flux3/peft", "flux3/comfyui", "flux3/base-model", "flux3/diffusers",
    "flux3/bare", "flux3/kohya", "flux3/lycoris-dora", "flux3/lokr", "qwen21/peft",
    "qwen21/diffusers", "qwen21/comfyui", "qwen21/bare", "qwen21/kohya", "qwen21/mixed",
    "qwen21/joined", "qwen21/lycoris-dora", "qwen21/lokr", "qwen-image/peft",
    "qwen-image/diffusers", "qwen-image/comfyui", "qwen-image/bare", "qwen-image/kohya",
    "qwen-image/default", "qwen-image/joined", "qwen-image/lycoris-dora", "qwen-image/lokr");
const auto kNameOf = [](const auto& test) {
  auto name = test.param;
  std::erase_if(name, [](char c) { return c == '/' || c == '-'; });
  return name;
};
INSTANTIATE_TEST_SUITE_P(Files, AdapterParity, kFiles, kNameOf);
INSTANTIATE_TEST_SUITE_P(Files, SlowAdapterParity, kFiles, kNameOf);

}  // namespace braid::adapter_parity_test

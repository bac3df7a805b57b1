// Pictures followed through ControlNets and a LoRA, and references appended to the prompt: layouts
// change nothing; what is refused.
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "edit_json.h"
#include "picture_requests.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/deployment/deployment.h"
#include "pipeline/families/family.h"
#include "pipeline/files/found_files.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/costs/traffic.h"
#include "pipeline/planner/planner.h"
#include "pipeline/planner/traffic_text.h"
#include "pipeline/proofs/bench.h"
#include "temporary_folder.h"

namespace braid::followed_pictures_test {

using testing::HasSubstr;

const std::filesystem::path kFixtures =
    std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity";

class FollowedLayouts : public testing::TestWithParam<Layout> {};

// Two nets, one of them with kinds of pictures, each active in a part of the steps.
PipelineOptions with_controlnets() {
  const auto model = kFixtures / "controlnets/model";
  return {.model = model, .controlnets = {model / "controlnet_1", model / "controlnet_2"}};
}

Request following(double scale = 0.8) {
  return request_with({.controls = {{.picture = waves(64, 48), .scale = scale, .mode = 1},
                                    {.picture = half(50, 40), .scale = scale, .to = 0.5}}});
}

TEST_P(FollowedLayouts, FollowWhatOneRankFollows) {
  auto options = with_controlnets();
  static const auto one = recording_of(options, following());
  options.layout = GetParam();
  expect_near(one, recording_of(options, following()));
}

// This ControlNet sees pixels through convolutions of its own.
PipelineOptions with_pixels() {
  return {.model = kFixtures / "controlnets/model",
          .controlnets = {kFixtures / "controlnet-pixels/model/controlnet_1"}};
}

TEST_P(FollowedLayouts, FollowPixelsAsOneRankDoes) {
  auto options = with_pixels();
  const auto request = request_with({.controls = {{.picture = waves(64, 48), .scale = 0.8}}});
  static const auto one = recording_of(options, request);
  options.layout = GetParam();
  expect_near(one, recording_of(options, request));
}

TEST(ControlNets, OfPixelsStandBesideTheirLikeAlone) {
  auto options = with_pixels();
  options.controlnets.push_back(kFixtures / "controlnets/model/controlnet_2");
  EXPECT_THAT(message_of([&] { (void)open_family(find_model(options).files); }),
              HasSubstr("they cannot be used together"));
}

// Its own layers halve a picture three times, as FLUX.1's autoencoder does.
TEST(ControlNets, OfPixelsFitTheirAutoencoder) {
  const TemporaryFolder folder;
  auto options = with_pixels();
  options.model = folder.path() / "model";
  std::filesystem::copy(kFixtures / "controlnets/model", options.model,
                        std::filesystem::copy_options::recursive);
  edit_json(options.model / "vae/config.json", [](auto& config) {
    for (const auto* blocks : {"block_out_channels", "down_block_types", "up_block_types"})
      config[blocks].erase(0);
  });
  EXPECT_THAT(message_of([&] { (void)open_family(find_model(options).files); }),
              HasSubstr("sees a token in 16x16 pixels, the model with this autoencoder draws one "
                        "in 8x8"));
}

// A stage may have no picture of its own to follow.
TEST(ControlNets, FollowOnePictureInSeveralStages) {
  auto options = with_controlnets();
  auto request = following();
  request.num_images = 1;
  const auto one = recording_of(options, request);
  options.layout.pp = 2;
  expect_near(one, recording_of(options, request));
}

TEST(SlowControlNets, DrawTheSameBytesOffloaded) {
  auto options = with_controlnets();
  const auto want = recording_of(options, following()).at("latents_final");
  for (const auto mode :
       {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf, OffloadMode::kSequential}) {
    options.memory.offload.transformer = mode;
    EXPECT_TRUE(at::equal(recording_of(options, following()).at("latents_final"), want));
  }
}

// Noise is drawn after the sample of the followed picture, so that both begin with the same
// latents.
TEST(ControlNets, ChangeNothingAtAScaleOfZero) {
  const auto followed = recording_of(with_controlnets(), following(0));
  const auto& from = followed.at("latents_initial");
  auto alone = with_controlnets();
  alone.controlnets.clear();
  auto request = request_with({});
  request.latents = Latents{
      .shape = from.sizes().vec(),
      .values = {from.const_data_ptr<float>(), from.const_data_ptr<float>() + from.numel()}};
  EXPECT_TRUE(
      at::equal(followed.at("velocity_first"), recording_of(alone, request).at("velocity_first")));
}

TEST(ControlNets, TakeTimeInAPlan) {
  const auto seconds_of = [](const PipelineOptions& options) {
    const auto job = job_of(deploy(options), following());
    const Machine machine{.devices = devices_named("--devices", "h100"), .link = {}, .network = {}};
    return predict_time(job, {}, machine, {whole_transformer(job.shape())}).compute;
  };
  const auto all = with_controlnets();
  auto one = all, none = all;
  one.controlnets.pop_back();
  none.controlnets.clear();
  EXPECT_GT(seconds_of(one), seconds_of(none));
  EXPECT_GT(seconds_of(all), seconds_of(one));
}

// A single picture, followed by the first of several stages.
void expect_planned_traffic(PipelineOptions options) {
  options.dtype = Dtype::kFloat32;
  const auto grid = degrees_of(options.layout);
  auto job = surveyed(job_of(deploy(options), request_with({})));
  job.batch_size = 1;
  job.branches = grid.cfg;
  const std::vector cpus(std::size_t(grid.product()), devices_named("", "b200").front());
  const Machine machine{.devices = cpus, .link = {}, .network = {}};
  const auto want = predict_traffic(job, grid, 0, plan_stages(job, machine, grid).front());
  const auto got = bench(deploy(options), {.probe = {.width = job.width,
                                                     .height = job.height,
                                                     .max_sequence_length = job.text_tokens},
                                           .runs = 1,
                                           .warm_ups = 0})
                       .traffic;
  EXPECT_EQ(text_of_traffic(got), text_of_traffic(want));
}

TEST_P(FollowedLayouts, GiveWhatAPlanSays) {
  for (auto options : {with_controlnets(), with_pixels()}) {
    options.layout = GetParam();
    expect_planned_traffic(options);
  }
}

TEST(ControlNets, AreCountedInAPlan) {
  const auto bytes_of = [](const PipelineOptions& options) {
    return predict_bytes(job_of(deploy(options), following()), {}, 0,
                         whole_transformer(open_family(find_model(options).files)->shape()));
  };
  auto options = with_controlnets();
  options.dtype = Dtype::kBfloat16;  // as they are stored
  const auto with = bytes_of(options);
  std::int64_t stored = 0;
  for (const auto& folder : options.controlnets)
    stored += std::int64_t(Checkpoint::open(folder, "diffusion_pytorch_model").num_bytes());
  options.controlnets.clear();
  const auto without = bytes_of(options);
  EXPECT_EQ(with.transformer - without.transformer, stored);
  EXPECT_GT(with.activations, without.activations);
}

TEST(ControlNets, AreCloseToThemselvesInEightBits) {
  auto options = with_controlnets();
  const auto want = recording_of(options, following()).at("velocity_first");
  options.memory.quantize = Quantize::kInt8;
  const auto got = recording_of(options, following()).at("velocity_first");
  const auto error = ((got - want).norm() / want.norm()).item<double>();
  EXPECT_GT(error, 0);
  EXPECT_LT(error, 0.05);
}

TEST_P(FollowedLayouts, FollowByALoraWhatOneRankFollows) {
  if (GetParam().cfg > 1) GTEST_SKIP() << "its guidance is a single branch";
  PipelineOptions options{.model = kFixtures / "basic/model",
                          .adapters = {{.file = kFixtures / "control-lora/lora.safetensors"}}};
  auto request = request_with({.controls = {{.picture = waves(64, 48)}}});
  request.negative_prompt = {};
  request.true_cfg = 1;
  static const auto one = recording_of(options, request);
  options.layout = GetParam();
  expect_near(one, recording_of(options, request));
}

TEST_P(FollowedLayouts, LookBehindThePromptAsOneRankLooks) {
  PipelineOptions options{.model = kFixtures / "redux/model",
                          .redux = kFixtures / "redux/model/redux"};
  const auto request = request_with({.references = {waves(50, 40)}, .reference_scales = {0.5}});
  static const auto one = recording_of(options, request);
  options.layout = GetParam();
  expect_near(one, recording_of(options, request));
}

TEST(Redux, IsCountedInAPlan) {
  const PipelineOptions options{.model = kFixtures / "redux/model",
                                .redux = kFixtures / "redux/model/redux"};
  auto looking = request_with({.references = {waves(50, 40), waves(30, 40)}});
  auto short_text = looking;
  short_text.max_sequence_length = 1;  // keeps less of the text encoders
  const auto job = job_of(deploy(options), short_text);
  const auto encoder = Checkpoint::open(options.redux / "image_encoder", "model"),
             embedder =
                 Checkpoint::open(options.redux / "image_embedder", "diffusion_pytorch_model");
  std::int64_t stored = 0;
  for (const auto* const part : {&encoder, &embedder})
    for (const auto& [name, tensor] : part->tensors())
      if (!name.starts_with("head.")) stored += std::int64_t(tensor.view().nbytes());
  EXPECT_EQ(predict_bytes(job, {}, 0, whole_transformer(job.shape())).encoding, stored);
  const auto counted = job_of(deploy(options), looking).padded_text_tokens();
  const auto alone = job_of(deploy(options), request_with({})).padded_text_tokens();
  Engine engine(options, {});
  const auto tokens = [&](const Request& request) {
    return engine.generate(request, {}, {.record = RecordTensors::kYes})
        .facts.recording.at("prompt_embeds")
        .size(1);
  };
  EXPECT_EQ(counted - alone, tokens(looking) - tokens(request_with({})));
}

// A plain model's inputs are latents alone.
TEST(ControlLora, MakesAModelThatNeedsAPicture) {
  const PipelineOptions options{
      .model = kFixtures / "basic/model",
      .adapters = {{.file = kFixtures / "control-lora/lora.safetensors"}}};
  const auto family = open_family(find_model(options).files);
  EXPECT_EQ(family->shape().extra_width, family->shape().in_width);
  EXPECT_THAT(refusal({}, family->description().limits.pictures),
              HasSubstr("needs a control picture"));
}

// The picture's channels have only the LoRA's weights: at scale zero it is not seen.
TEST(ControlLora, SeesNothingAtAScaleOfZero) {
  PipelineOptions options{.model = kFixtures / "basic/model",
                          .adapters = {{.file = kFixtures / "control-lora/lora.safetensors"}}};
  const auto velocity = [&](double scale, const Pixels& picture) {
    options.adapters.front().scale = scale;
    auto request = request_with({.controls = {{.picture = picture}}});
    request.negative_prompt = {};
    request.true_cfg = 1;
    return recording_of(options, request).at("velocity_first");
  };
  EXPECT_TRUE(at::equal(velocity(0, waves(64, 48)), velocity(0, half(64, 48))));
  EXPECT_FALSE(at::equal(velocity(1, waves(64, 48)), velocity(1, half(64, 48))));
}

// The converted model follows a picture without its LoRA: same bits, as nothing is rounded off.
TEST(ControlLora, IsMergedByAConversion) {
  const TemporaryFolder folder;
  const PipelineOptions with{.model = kFixtures / "basic/model",
                             .adapters = {{.file = kFixtures / "control-lora/lora.safetensors"}},
                             .dtype = Dtype::kFloat32};
  const auto out = folder / "merged";
  convert({.model = with.model, .adapters = with.adapters, .out = out, .dtype = with.dtype});
  EXPECT_EQ(read_json(out / "model_index.json")["_class_name"], "FluxControlPipeline");
  auto request = request_with({.controls = {{.picture = waves(64, 48)}}});
  request.negative_prompt = {};
  request.true_cfg = 1;
  const auto merged = recording_of({.model = out, .dtype = with.dtype}, request);
  const auto want = recording_of(with, request);
  EXPECT_TRUE(at::equal(merged.at("velocity_first"), want.at("velocity_first")));
}

TEST(Redux, IsRefusedWhereReferencesDoNotFit) {
  using enum PicturesTaken::References;
  const PicturesTaken behind{.most_references = 2, .references = kBehindPrompt};
  const std::vector two(2, waves(4, 4));
  EXPECT_EQ(refusal({.references = two, .reference_scales = {1, -2}}, behind), "");
  EXPECT_THAT(refusal({.references = two, .reference_scales = {1}}, behind),
              HasSubstr("there are 1 scales for 2 references"));
  EXPECT_THAT(refusal({.references = two, .reference_scales = {1, NAN}}, behind),
              HasSubstr("should be a finite number"));
  EXPECT_THAT(refusal({.references = two, .reference_scales = {1, 1}}, {.most_references = 2}),
              HasSubstr("with Redux only"));
}

TEST(ControlNets, AreRefusedWherePicturesDoNotFit) {
  const PicturesTaken two{.controlnet_modes = {0, 3}};
  const ControlPicture plain{.picture = waves(4, 4)};
  auto of_kind = plain;
  of_kind.mode = 2;
  EXPECT_EQ(refusal({}, two), "");
  EXPECT_EQ(refusal({.controls = {plain, of_kind}}, two), "");
  EXPECT_THAT(refusal({.controls = {plain}}, two),
              HasSubstr("there are 2 ControlNets, each needs a control picture, 1 was given"));
  EXPECT_THAT(refusal({.controls = {plain, plain}}, two),
              HasSubstr("ControlNet 2 follows 3 kinds of pictures: its mode should lie between 0 "
                        "and 2, none is given"));
  EXPECT_THAT(refusal({.controls = {of_kind, of_kind}}, two), HasSubstr("its mode is 0, not 2"));
  const ControlPicture first{.picture = waves(4, 4), .mode = 0};
  EXPECT_EQ(refusal({.controls = {first, of_kind}}, two), "");
  EXPECT_EQ(refusal({.controls = {plain, plain}}, {.controlnet_modes = {0}}), "");
  auto never = plain;
  never.from = never.to;
  EXPECT_EQ(refusal({.controls = {never}}, {.controlnet_modes = {0}}), "");
  auto backward = plain;
  backward.from = 0.5;
  backward.to = 0.25;
  EXPECT_THAT(refusal({.controls = {backward}}, {.controlnet_modes = {0}}),
              HasSubstr("end no earlier than it begins, it is from 0.5 to 0.25"));
  auto weak = plain;
  weak.scale = 0.5;
  EXPECT_THAT(
      refusal({.controls = {weak}}, {.extra_channels = PicturesTaken::ExtraChannels::kControl}),
      HasSubstr("only with a ControlNet"));
}

// A transformer like FLUX.1-schnell's takes no guidance, but a net beside it may.
TEST(ControlNets, TakeTheGuidanceThatTheirTransformerLacks) {
  const TemporaryFolder folder;
  const auto model = folder.path() / "model";
  std::filesystem::copy(kFixtures / "controlnets/model", model,
                        std::filesystem::copy_options::recursive);
  const auto set = [&](const std::string& file, const std::string& key, const Json& value) {
    edit_json(model / file, [&](Json& json) { json[key] = value; });
  };
  set("transformer/config.json", "guidance_embeds", false);
  set("scheduler/scheduler_config.json", "use_dynamic_shifting", false);
  const auto with = [&](std::vector<std::filesystem::path> nets) {
    const PipelineOptions options{.model = model, .controlnets = std::move(nets)};
    return open_family(find_model(options).files)->description();
  };
  const auto guidance_with = [&](std::vector<std::filesystem::path> nets) {
    return info_of(with(std::move(nets))).guidance;
  };
  const auto said = [&](const RequestLimits& limits, const PicturesIn& pictures) {
    std::string all;
    auto request = request_with(pictures);
    request.guidance = 2;
    (void)settle(request, limits, [&](const std::string& sentence) { all += sentence; });
    return all;
  };
  EXPECT_EQ(guidance_with({}), 0);
  EXPECT_EQ(guidance_with({model / "controlnet_1"}), 3.5);
  EXPECT_THAT(said(with({}).limits, {}), HasSubstr("the guidance scale is not used"));
  const auto followed = with({model / "controlnet_1"}).limits;
  EXPECT_EQ(followed.defaults.steps, 4);
  EXPECT_EQ(said(followed, {.controls = {{.picture = waves(64, 48), .mode = 1}}}), "");
  set("controlnet_1/config.json", "guidance_embeds", false);
  EXPECT_EQ(guidance_with({model / "controlnet_1"}), 0);
  set("scheduler/scheduler_config.json", "use_dynamic_shifting", true);
  EXPECT_EQ(guidance_with({}), 0) << "dev's schedule is not its guidance";
  EXPECT_EQ(with({}).limits.defaults.steps, 28);
}

// A server's nets stay while some requests bring nothing to follow.
TEST(ControlNets, AreSaidToFollowNothing) {
  const auto said = [](const PicturesIn& pictures, const PicturesTaken& taken) {
    std::string all;
    (void)settle(request_with(pictures), {.pictures = taken},
                 [&](const std::string& sentence) { all += sentence + "\n"; });
    return all;
  };
  const PicturesTaken one{.controlnet_modes = {0}}, two{.controlnet_modes = {0, 0}};
  EXPECT_EQ(said({}, one), "the ControlNet is not used: there is no control picture to follow\n");
  EXPECT_EQ(said({}, two), "the ControlNets are not used: there is no control picture to follow\n");
  EXPECT_EQ(said({.controls = {{.picture = waves(4, 4)}}}, one), "");
  EXPECT_EQ(said({}, {}), "");
  const PicturesTaken fills{.init = PicturesTaken::Init::kWithMask,
                            .controlnet_modes = {0},
                            .nets_follow = PicturesTaken::NetsFollow::kMasked};
  EXPECT_EQ(said({}, fills),
            "the ControlNet is not used: there is no initial picture to fill in\n");
  EXPECT_EQ(said({.init = waves(4, 4), .mask = waves(4, 4)}, fills), "");
  EXPECT_THAT(refusal({.controls = {{.scale = 0.5}}}, one),
              HasSubstr("the ControlNet needs a control picture to follow: it fills none in"));
  EXPECT_THAT(refusal({.controls = {{.scale = 0.5}}}, fills), HasSubstr("there is none"));
}

const auto kNumber = [](const auto& info) { return "layout" + std::to_string(info.index); };
INSTANTIATE_TEST_SUITE_P(All, FollowedLayouts,
                         testing::Values(Layout{.tp = 2}, Layout{.ulysses = 2}), kNumber);
INSTANTIATE_TEST_SUITE_P(Slow, FollowedLayouts,
                         testing::Values(Layout{.ring = 2}, Layout{.cfg = 2}, Layout{.dp = 2},
                                         Layout{.pp = 2}),
                         kNumber);

}  // namespace braid::followed_pictures_test

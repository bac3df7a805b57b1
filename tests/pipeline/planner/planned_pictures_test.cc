// What a plan makes of a request's pictures.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pictures.h"
#include "pipeline/deployment/deployment.h"
#include "pipeline/engine/engine.h"
#include "pipeline/picture_requests.h"
#include "pipeline/planner/planned.h"
#include "pipeline/proofs/probe.h"

namespace braid::planned_pictures_test {

// Counted by diffusers.
TEST(PlannedPictures, HaveAnEncoder) {
  EXPECT_EQ(encoder_parameters(VaeConfig{}), 34'274'208);
  EXPECT_EQ(encoder_parameters(VaeConfig{.latent_channels = 32}), 34'421'696);
}

TEST(PlannedPictures, AreOfTheSizeThatTheModelSees) {
  const auto large = grey_picture(2048, 1024);
  const auto klein = named_family("klein-9b-kv");
  const auto planned = planned_pictures(*klein, {.references = {large, large}}, {64, 64});
  EXPECT_EQ(planned.encoded_pixels, 1440 * 720);  // 1448 x 724, cut
  EXPECT_EQ(planned.reference_tokens(), 2 * 90 * 45);
  EXPECT_EQ(planned.reference_use, PicturesTaken::ReferenceUse::kOnce);
  const PicturesIn in_every_step{.references = {large}, .reference_cache = ReferenceCache::kOff};
  EXPECT_EQ(planned_pictures(*klein, in_every_step, {64, 64}).reference_use,
            PicturesTaken::ReferenceUse::kInEveryStep);
  const auto flux = named_family("flux1-dev");
  const auto init = planned_pictures(*flux, {.init = large}, {512, 256});
  EXPECT_EQ(init.encoded_pixels, 512 * 256);
  EXPECT_EQ(init.held_bytes, 2048 * 1024 * 3);
  EXPECT_EQ(init.reference_tokens(), 0);
}

TEST(PlannedPictures, TakeTheirPartOfEveryStep) {
  auto job = surveyed(named_job("klein-9b-kv"));
  const auto machine = machine_of("8xh100");
  const auto seconds = [&](const Degrees& grid) {
    return predict_time(job, grid, machine, plan_stages(job, machine, grid)).compute;
  };
  const auto ring_bytes = [&] {
    const auto traffic = predict_traffic(job, {.ring = 2}, 0);
    return std::find_if(traffic.begin(), traffic.end(),
                        [](const auto& t) { return t.axis == "ring"; })
        ->traffic.bytes;
  };
  const auto alone = seconds({}), alone_in_ring = seconds({.ring = 2});
  const auto passed = ring_bytes();
  job.pictures.references = {4096};
  const auto every = seconds({});
  const auto with_keys = ring_bytes();
  EXPECT_GT(every, 1.8 * alone);  // twice as many tokens
  EXPECT_GT(seconds({.ring = 2}), 1.8 * alone_in_ring);
  job.pictures.reference_use = PicturesTaken::ReferenceUse::kOnce;
  EXPECT_LT(seconds({}), every / 1.5);
  EXPECT_GT(seconds({}), alone);  // keys and values remain
  EXPECT_EQ(ring_bytes(), with_keys);
  // 2048 of 4096 and 4608 tokens: keys and values of a token have 2 x 4096 numbers of 2 bytes
  EXPECT_EQ(with_keys - passed, std::int64_t(2048) * 2 * 4096 * 2 * 32);
}

// 2 x 4096 tokens x 4096 numbers x 2 bytes x 32 blocks; ranks share heads, tokens or blocks.
TEST(PlannedPictures, AreKeptOnce) {
  auto job = named_job("klein-9b-kv");
  job.dtype = at::kBFloat16;
  job.pictures = {.encoded_pixels = 1024 * 1024,
                  .references = {4096},
                  .reference_use = PicturesTaken::ReferenceUse::kOnce};
  job = surveyed(std::move(job));
  const auto kept = [&](const Degrees& grid, std::int64_t blocks) {
    return predict_bytes(job, grid, 0, {.first_block = 0, .num_blocks = blocks}).kept;
  };
  EXPECT_EQ(kept({}, 32), 2'147'483'648);
  EXPECT_EQ(kept({.tp = 4}, 32), 2'147'483'648 / 4);
  EXPECT_EQ(kept({.ring = 2, .ulysses = 4}, 32), 2'147'483'648 / 8);
  EXPECT_EQ(kept({.pp = 2}, 16), 2'147'483'648 / 2);
  const auto once = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  job.pictures.reference_use = PicturesTaken::ReferenceUse::kInEveryStep;
  const auto always = predict_bytes(job, {}, 0, whole_transformer(job.shape()));
  EXPECT_EQ(always.kept, 0);
  EXPECT_GT(always.activations, once.activations);
  job.pictures = {};
  EXPECT_LT(predict_bytes(job, {}, 0, whole_transformer(job.shape())).activations,
            always.activations);
}

Pixels of_size(int width, int height) { return {.width = width, .height = height, .rgb = {}}; }

PipelineOptions small(const std::string& name) {
  return {.model = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity" / name / "model",
          .dtype = Dtype::kFloat32};
}

// Edit's transformer sees the tokens of its text encoder's pictures, however many the prompt may
// have: of a longer prompt it is given as many as are planned.
TEST(SlowPlannedPictures, AreTextThatEditsSee) {
  for (const auto* const name : {"qwen-image-edit", "qwen-image-edit-plus"}) {
    Request request{.prompts = {""}, .width = 96, .height = 64, .steps = 2, .guidance = 1};
    for (int i = 0; i < 300; ++i) request.prompts.front() += "a star ";
    request.max_sequence_length = 250;
    request.pictures.references = {waves(60, 44)};
    if (std::string(name).ends_with("plus")) request.pictures.references.push_back(waves(40, 90));
    const auto drawn =
        Engine(small(name), {})
            .generate(request, {}, {.record = RecordTensors::kYes, .until = RunUntil::kLatents});
    const auto seen = drawn.facts.recording.at("prompt_embeds").size(1);
    const auto deployment = deploy(small(name));
    EXPECT_EQ(job_of(deployment, request).padded_text_tokens(), seen) << name;
    const auto probe = probe_of(
        {.width = 96, .height = 64, .max_sequence_length = 250, .pictures = request.pictures},
        deployment);
    EXPECT_EQ(probe.text_tokens, seen) << name;
  }
}

// Diffusers' calculate_dimensions() and transformers' smart_resize() give 1440 x 736 and 544 x 256
// pixels, of which a token has 28 x 28 or 32 x 32.
TEST(PlannedPictures, AreReadByTextEncoders) {
  const auto planned = [](const char* name, std::vector<Pixels> references) {
    return planned_pictures(*named_family(name), {.references = std::move(references)},
                            {.width = 1024, .height = 1024});
  };
  const auto wide = of_size(2048, 1024);
  EXPECT_EQ(planned("qwen-image-edit", {wide}).tokens_read, 51 * 26 - 1);
  EXPECT_EQ(planned("qwen-image-edit", {wide}).tokens_behind_prompt, 51 * 26 - 1);
  EXPECT_EQ(planned("qwen-image-edit-2509", {wide, wide}).tokens_read, 2 * (19 * 9 - 1));
  EXPECT_EQ(planned("qwen-image-2.1", {wide}).tokens_read, 45 * 23);
  EXPECT_EQ(planned("qwen-image-2.1", {wide}).tokens_behind_prompt, 0);
  EXPECT_EQ(planned("joyai-image-edit", {wide}).tokens_read, 32 * 32);  // of the drawn size
  EXPECT_EQ(planned("joyai-image-edit-plus", {wide}).tokens_read, 44 * 22);
  EXPECT_EQ(planned("joyai-image-edit-plus", {wide}).tokens_behind_prompt, 0);
  EXPECT_EQ(planned("klein-9b", {wide}).tokens_read, 0);
}

// The widest place of a token is in the vision tower: 4 patches with 4 x 1152 and 2 x 4304 numbers.
// What the tower makes of a picture's token are four vectors.
TEST(PlannedPictures, TakeRoomInTextEncoders) {
  auto job = surveyed(named_job("qwen-image-2.1"));
  job.text_tokens = 16384;
  const auto encoding = [&] {
    return predict_bytes(job, {}, 0, whole_transformer(job.shape())).encoding;
  };
  const auto alone = encoding();
  job.pictures.tokens_read = 10 * 1024;
  constexpr std::int64_t kWidest = 4 * (4 * 1152 + 2 * 4304), kMade = 4 * 4096;
  EXPECT_EQ(encoding() - alone, 10 * 1024 * (kWidest + kMade) * 2);
}

// A server's budget is planned before any request: these do not draw without pictures.
TEST(PlannedPictures, AreThoseThatAModelNeeds) {
  const auto without = [](const char* name) {
    return with_request(job_of_family(named_family(name)), {}).pictures;
  };
  EXPECT_EQ(without("qwen-image-edit").references, std::vector<std::int64_t>{4096});
  EXPECT_EQ(without("qwen-image-edit").tokens_behind_prompt, 37 * 37 - 1);
  EXPECT_EQ(without("qwen-image-layered").references, std::vector<std::int64_t>{1600});
  EXPECT_EQ(without("flux1-fill-dev").encoded_pixels, 1024 * 1024);
  EXPECT_EQ(without("flux1-canny-dev").held_bytes, 1024 * 1024 * 3);
  EXPECT_EQ(without("flux1-kontext-dev").references, std::vector<std::int64_t>());
  EXPECT_EQ(without("joyai-image-edit").tokens_read, 0);
}

}  // namespace braid::planned_pictures_test

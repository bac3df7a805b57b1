// The toy families that see their text otherwise: by cross-attention, or as a prefix that is kept.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/print/info/model_info.h"
#include "base/error.h"
#include "film/model.h"
#include "made_toy.h"
#include "named_layout.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/engine/engine.h"
#include "pipeline/files/found_files.h"
#include "pipeline/planner/costs/memory.h"
#include "pipeline/planner/planner.h"
#include "pipeline/planner/traffic_text.h"
#include "pipeline/proofs/bench.h"
#include "pipeline/proofs/verify.h"
#include "random_picture.h"
#include "served.h"
#include "sticker/model.h"

namespace braid::toy::kinds_test {

const std::filesystem::path& made_film() {
  static const MadeToy film("FilmPipeline", made_tensors<Film>(FilmConfig()));
  return film.model();
}

const std::filesystem::path& made_sticker() {
  static const MadeToy sticker("StickerPipeline", made_tensors<Sticker>(StickerConfig()),
                               MadeToy::Alpha::kYes);
  return sticker.model();
}

struct Kind {
  const char* name;
  const std::filesystem::path& (*model)();
  ReferenceCache cache = ReferenceCache::kAuto;
  bool has_references = false;

  Request request() const {
    Request request{.prompts = {"a blue star"}, .seed = 5};
    if (has_references)
      request.pictures.references = {random_picture(40, 24, 1), random_picture(24, 32, 2)};
    request.pictures.reference_cache = cache;
    request.width = request.height = 64;
    return request;
  }
  PipelineOptions options(const Layout& layout = {}, const Memory& memory = {}) const {
    return {.model = model(), .dtype = Dtype::kFloat32, .layout = layout, .memory = memory};
  }
  std::vector<std::uint8_t> drawn(const PipelineOptions& options, const Request& request) const {
    return Engine(options, {}).generate(request, {}).pictures.front().rgb;
  }
};

const Kind kFilm{"Film", made_film};
const Kind kSticker{"Sticker", made_sticker};
const Kind kStickerOfReferences{"StickerOfReferences", made_sticker, ReferenceCache::kAuto, true};
const Kind kStickerInEveryStep{"StickerInEveryStep", made_sticker, ReferenceCache::kOff, true};
const Kind kKinds[] = {kFilm, kSticker, kStickerOfReferences, kStickerInEveryStep};

const NamedLayout kLayouts[] = {{"Tp2", {.tp = 2}},
                                {"Ring3", {.ring = 3}},
                                {"Ring2Gathered", {.ring = 2, .ring_form = RingForm::kGather}},
                                {"Ulysses2", {.ulysses = 2}},
                                {"Ring2Ulysses3", {.ring = 2, .ulysses = 3}},
                                {"LayerSplit3", {.pp = 3}},
                                {"Tp2LayerSplit2Ring2", {.tp = 2, .ring = 2, .pp = 2}}};
const NamedLayout kSharedLayouts[] = {
    {"Cfg2", {.cfg = 2}}, {"Dp2", {.dp = 2}}, {"Cfg2Dp2Ring2", {.ring = 2, .cfg = 2, .dp = 2}}};

using Case = std::tuple<Kind, NamedLayout>;
std::string case_name(const testing::TestParamInfo<Case>& info) {
  return std::string(std::get<0>(info.param).name) + std::get<1>(info.param).name;
}

class KindsUnderLayouts : public testing::TestWithParam<Case> {
 public:
  const Kind& kind() const { return std::get<0>(GetParam()); }
  const Layout& layout() const { return std::get<1>(GetParam()).layout; }
};
class KindsUnderSplits : public KindsUnderLayouts {};
INSTANTIATE_TEST_SUITE_P(All, KindsUnderLayouts,
                         testing::Combine(testing::ValuesIn(kKinds), testing::ValuesIn(kLayouts)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(OfBranchesAndPictures, KindsUnderLayouts,
                         testing::Combine(testing::ValuesIn(kKinds),
                                          testing::ValuesIn(kSharedLayouts)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(All, KindsUnderSplits,
                         testing::Combine(testing::ValuesIn(kKinds), testing::ValuesIn(kLayouts)),
                         case_name);

TEST_P(KindsUnderLayouts, AreVerified) {
  const auto verdict =
      verify(deploy(kind().options(layout())),
             {.probe = {.width = 64, .height = 64, .pictures = kind().request().pictures}});
  EXPECT_GT(verdict.blocks.size(), 3u);
  EXPECT_EQ(verdict.first_divergent(), nullptr) << verdict.first_divergent()->where;
}

TEST_P(KindsUnderSplits, MoveWhatIsPredicted) {
  const auto options = kind().options(layout());
  const auto step = Engine(options, {}).generate(kind().request(), {}).facts.step_traffic;
  const auto job = job_of(deploy(options), kind().request());
  const auto degrees = degrees_of(layout());
  const auto stage = stage_of(job.shape(), share_of(job.shape().num_blocks(), 0, degrees.pp));
  EXPECT_EQ(text_of_traffic(step), text_of_traffic(predict_traffic(job, degrees, 0, stage)));
}

// One answer for every kind, however it is kept or divided.
class Kinds : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(All, Kinds, testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Kinds, KeepTheirBitsWhereverTheirWeightsAre) {
  const auto& kind = GetParam();
  const auto resident = kind.drawn(kind.options(), kind.request());
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf})
    EXPECT_EQ(
        resident,
        kind.drawn(kind.options({}, {.offload = {.transformer = mode, .text = mode, .vae = mode}}),
                   kind.request()))
        << int(mode);
}

TEST_P(Kinds, AreGuidedOnTwoRanks) {
  const auto& kind = GetParam();
  auto guided = kind.request();
  guided.negative_prompt = "a green square of other length";
  guided.true_cfg = 3;
  guided.num_images = 3;
  guided.batch_size = 2;
  auto one_thread = kind.options();  // as each of two ranks has
  one_thread.threads = 1;
  const auto all = [&](const PipelineOptions& options) {
    std::vector<std::vector<std::uint8_t>> pictures;
    const auto generated = Engine(options, {}).generate(guided, {});
    for (const auto& picture : generated.pictures) pictures.push_back(picture.rgb);
    return pictures;
  };
  const auto one = all(one_thread);
  EXPECT_NE(one.front(), kind.drawn(kind.options(), kind.request()));
  EXPECT_EQ(one, all(kind.options({.cfg = 2})));
}

TEST_P(Kinds, AreQuantizedAndConvertedToTheSame) {
  const auto& kind = GetParam();
  const Memory int8{.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8};
  const auto quantized = kind.drawn(kind.options({}, int8), kind.request());
  EXPECT_NE(quantized, kind.drawn(kind.options(), kind.request()));
  const auto out = kind.model().string() + "-int8";
  convert({.model = kind.model(), .out = out, .dtype = Dtype::kFloat32, .memory = int8});
  auto converted = kind.options();
  converted.model = out;
  EXPECT_EQ(quantized, kind.drawn(converted, kind.request()));
  std::filesystem::remove_all(out);
}

TEST_P(Kinds, AreTimedAndDescribed) {
  const auto& kind = GetParam();
  const auto timed =
      bench(deploy(kind.options({.ring = 2})),
            {.probe = {.width = 64, .height = 64, .pictures = kind.request().pictures}, .runs = 1});
  EXPECT_EQ(timed.num_ranks, 2);
  EXPECT_EQ(model_info(deploy(kind.options()))["parts"].size(), 3u);
}

// What is kept from the one evaluation is what each would compute: bit for bit, in float32.
// Frames and alpha, too.
TEST_P(Kinds, AreServed) {
  const auto& kind = GetParam();
  const auto request = kind.request();
  const auto once = Engine(kind.options(), {}).generate(request, {}).pictures;
  const auto over_http = drawn_by(served(kind.options()), request);
  ASSERT_EQ(once.size(), over_http.size());
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(once[i].rgb, over_http[i].rgb);
    EXPECT_EQ(once[i].alpha, over_http[i].alpha);
    EXPECT_EQ(once[i].frame, over_http[i].frame);
  }
}

TEST(Film, TellsClientsItsFrames) {
  const auto info = served(kFilm.options()).info;
  EXPECT_EQ(info.frames.drawn, 3);
  EXPECT_EQ(info.frames.most, 9);
  EXPECT_EQ(info.frames.per_second, 8);
  EXPECT_FALSE(info.draws_alpha);
  EXPECT_TRUE(served(kSticker.options()).info.draws_alpha);
}

TEST(Sticker, DrawsTheSameWithItsPrefixKept) {
  EXPECT_EQ(
      kStickerOfReferences.drawn(kStickerOfReferences.options(), kStickerOfReferences.request()),
      kStickerInEveryStep.drawn(kStickerInEveryStep.options(), kStickerInEveryStep.request()));
}

TEST(Sticker, LooksAtTheAlphaOfReferencesAndDrawsItsOwn) {
  const auto draw = [](const Request& request) {
    return Engine(kStickerOfReferences.options(), {}).generate(request, {}).pictures.front();
  };
  const auto picture = draw(kStickerOfReferences.request());
  EXPECT_EQ(picture.channels(), 4);
  EXPECT_EQ(picture.alpha.size(), 64u * 64u);
  auto opaque = kStickerOfReferences.request();
  for (auto& reference : opaque.pictures.references) reference.alpha.clear();
  EXPECT_NE(picture.rgb, draw(opaque).rgb);
}

TEST(Sticker, HoldsThePrefixThatIsPlanned) {
  const auto bytes_of = [](const Kind& kind, const Degrees& degrees) {
    const auto job = job_of(deploy(kind.options()), kind.request());
    return predict_transformer_bytes(job, degrees, 0, whole_transformer(job.shape())).kept;
  };
  // 12 tokens of text, 15 and 12 of the references: 2 x 3 blocks x 2 heads of 8 numbers.
  constexpr std::int64_t kToken = 2 * 3 * 2 * 8 * 4;
  EXPECT_EQ(bytes_of(kStickerOfReferences, {}), (12 + 15 + 12) * kToken);
  EXPECT_EQ(bytes_of(kStickerOfReferences, {.ring = 3}), (4 + 5 + 4) * kToken);
  EXPECT_EQ(bytes_of(kStickerOfReferences, {.ulysses = 2}), (12 + 15 + 12) * kToken / 2);
  EXPECT_EQ(bytes_of(kStickerInEveryStep, {}), 0);
}

TEST(Film, DrawsClipsWhoseFramesFollowEachOther) {
  const Engine engine(kFilm.options(), {});
  auto request = kFilm.request();
  request.num_images = 2;
  int told = 0;
  const auto frames = engine.generate(request, {.picture = [&](Picture&) { ++told; }}).pictures;
  ASSERT_EQ(frames.size(), 6u);
  EXPECT_EQ(told, 6);
  for (int i = 0; i < 6; ++i) {
    const auto& frame = frames[std::size_t(i)];
    EXPECT_EQ(frame.frame, i % 3);
    EXPECT_EQ(frame.num_frames, 3);
    EXPECT_EQ(frame.frames_per_second, 8);
    EXPECT_EQ(frame.seed, 5u + unsigned(i / 3));
  }
  EXPECT_NE(frames[0].rgb, frames[1].rgb);
}

TEST(Film, DrawsAPictureAsAClipOfOneFrame) {
  auto request = kFilm.request();
  request.frames = 1;
  const auto pictures = Engine(kFilm.options(), {}).generate(request, {}).pictures;
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures.front().num_frames, 1);
  EXPECT_EQ(pictures.front().frames_per_second, 0);
  request.frames = 4;  // 3: one more than a multiple of 2
  EXPECT_EQ(Engine(kFilm.options(), {}).generate(request, {}).pictures.size(), 3u);
  request.frames = 11;
  EXPECT_THROW(Engine(kFilm.options(), {}).generate(request, {}), InputError);
}

TEST(Sticker, RefusesFramesAsItDrawsPictures) {
  auto request = kSticker.request();
  request.frames = 2;
  EXPECT_THROW(Engine(kSticker.options(), {}).generate(request, {}), InputError);
}

// Tokens by their latents: those of a frame are the same as a picture's.
TEST(Film, PacksTheTimeAxisOfItsLatents) {
  const auto family = open_family(find_model(kFilm.options()).files);
  const PictureSize size{.width = 24, .height = 16, .frames = 3};
  EXPECT_EQ(family->latent_shape(size), (std::vector<std::int64_t>{16, 3, 2, 3}));
  EXPECT_EQ(family->num_tokens(size), 18);
  const auto latents = at::randn({2, 16, 3, 2, 3});
  const auto tokens = family->pack(latents);
  EXPECT_TRUE(
      at::equal(tokens[1][2 * 6 + 1 * 3 + 2], latents[1].select(1, 2).select(1, 1).select(1, 2)));
  EXPECT_TRUE(at::equal(family->unpack(tokens, size), latents));
}

}  // namespace braid::toy::kinds_test

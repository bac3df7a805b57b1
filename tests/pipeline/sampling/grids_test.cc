// Noise levels that requests and files choose (tools/parity/dump_samplers.py).
#include "pipeline/sampling/grids.h"
#include "message_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace braid::grids_test {

using testing::ElementsAre;
using testing::HasSubstr;

Json golden() { return read_json(BRAID_SOURCE_DIR "/tests/data/parity/samplers.json"); }

SigmaSchedule schedule_named(const std::string& asked) {
  for (const auto& [name, schedule] : kSigmaSchedules)
    if (name == asked) return schedule;
  throw std::runtime_error(asked);
}

// ComfyUI computes in float32, the fixture in float64: 1e-6 apart.
TEST(Grids, EqualComfyUisByDefinition) {
  int compared = 0;
  const auto data = golden();
  for (const auto& entry : data["grids"]) {
    const ScheduleConfig config{.shift = entry.value("shift", 1.0),
                                .use_dynamic_shifting = entry.contains("mu")};
    const auto got =
        make_grid({.schedule = schedule_named(entry["schedule"])}, config,
                  {.steps = entry["steps"], .image_tokens = 16, .mu = entry.value("mu", 0.0)});
    const auto want = entry["sigmas"].get<std::vector<double>>();
    ASSERT_EQ(got.sigmas.size(), want.size()) << entry["schedule"] << entry["steps"];
    ASSERT_EQ(got.timesteps.size() + 1, want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.sigmas[i], want[i], 1e-6);
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

// FLUX.2-dev-Turbo's and Qwen-Image-2.1-Turbo's lists among them.
TEST(Grids, ShiftGivenLevelsAsDiffusersBitForBit) {
  int compared = 0;
  const auto data = golden();
  for (const auto& entry : data["base"]) {
    const auto config = read_schedule_config(entry["config"], "golden");
    const auto got = make_grid({.base_sigmas = entry["levels"].get<std::vector<double>>()}, config,
                               {.steps = 99, .image_tokens = 16, .mu = entry["mu"]});
    const auto floats = [](const Json& list) { return list.get<std::vector<float>>(); };
    EXPECT_EQ(got.sigmas, floats(entry["sigmas"])) << entry["config"] << entry["levels"];
    EXPECT_EQ(got.timesteps, floats(entry["timesteps"]));
    ++compared;
  }
  EXPECT_EQ(compared, 16);
}

SettledSampling settled(const Sampling& asked, const Sampling& named = {},
                        std::optional<int> steps = {}, const SamplingLimits& limits = {},
                        std::vector<std::string>* warnings = nullptr) {
  return settle_sampling(asked, named, steps, 20, limits, [&](const std::string& warning) {
    if (warnings) warnings->push_back(warning);
  });
}

TEST(Grids, UseSigmasAsTheyAre) {
  const auto s = settled({.sigmas = {1, 0.98, 0.5, 0}}).sampling;
  const auto got = make_grid(s, {.num_train_timesteps = 500, .shift = 3},
                             {.steps = 3, .image_tokens = 16, .mu = 1});
  EXPECT_THAT(got.sigmas, ElementsAre(1, 0.98f, 0.5f, 0));
  EXPECT_THAT(got.timesteps, ElementsAre(500, 490, 250));
}

TEST(Grids, TakeAShiftInPlaceOfTheModels) {
  const ScheduleConfig dynamic{.use_dynamic_shifting = true, .shift_terminal = 0.02};
  const ScheduleStart start{.steps = 4, .image_tokens = 16, .mu = 2};
  const auto got = make_grid({.shift = 3}, dynamic, start);  // Lightning's 3x / (1 + 2x)
  EXPECT_THAT(got.sigmas, ElementsAre(1, 0.9f, 0.75f, 0.5f, 0));
  const auto beta = make_grid({.schedule = SigmaSchedule::kBeta, .shift = 3}, dynamic, start);
  const auto fixed = make_grid({.schedule = SigmaSchedule::kBeta}, {.shift = 3}, start);
  EXPECT_EQ(beta.sigmas, fixed.sigmas);
}

TEST(Grids, BeginBelowOneOnlyForThoseWhoDivideByIt) {
  const ScheduleConfig config{.shift = 3};
  const Schedule whole{.sigmas = {1, 0.5f, 0}, .timesteps = {1000, 500}};
  const auto begun = begun_below_one(whole, config, 0);
  EXPECT_NEAR(begun.sigmas.front(), 3 * 0.9999 / (1 + 2 * 0.9999), 1e-7);
  EXPECT_FLOAT_EQ(begun.timesteps.front(), begun.sigmas.front() * 1000);
  const Schedule part{.sigmas = {0.5f, 0}, .timesteps = {500}};
  EXPECT_EQ(begun_below_one(part, config, 0).sigmas, part.sigmas);
}

// Those who divide by the differences of neighbours need a fall there, too.
TEST(Grids, BeginAboveTheirSecondLevel) {
  const Schedule close{.sigmas = {1, 0.99999f, 0.5f, 0}, .timesteps = {1000, 999.99f, 500}};
  const auto begun = begun_below_one(close, {}, 0);
  EXPECT_LT(begun.sigmas[0], 1);
  EXPECT_GT(begun.sigmas[0], begun.sigmas[1]);
  const Schedule closest{.sigmas = {1, std::nextafter(1.0f, 0.0f), 0}, .timesteps = {1000, 999}};
  EXPECT_THAT(message_of([&] { (void)begun_below_one(closest, {}, 0); }),
              HasSubstr("leaves no room for"));
}

TEST(Grids, CountTheStepsOfLists) {
  std::vector<std::string> warnings;
  EXPECT_EQ(settled({.sigmas = {1, 0.5, 0}}, {}, {}, {}, &warnings).steps, 2);
  EXPECT_THAT(warnings, ElementsAre());
  const auto s = settled({.base_sigmas = {1, 0.7, 0.5}}, {}, 8, {}, &warnings);
  EXPECT_EQ(s.num_steps, 3);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("is that of the noise levels, 3, not 8")));
}

// Expected levels are those of diffusers' set_timesteps(sigmas=..., mu=1).
TEST(Grids, StretchALastZeroAsDiffusersDoes) {
  const auto levels = [](std::vector<double> base, const ScheduleConfig& config) {
    const auto s = settled({.base_sigmas = std::move(base)}, {}, {}, sampling_limits(config));
    const auto grid = make_grid(s.sampling, config, {.steps = 99, .image_tokens = 16, .mu = 1});
    EXPECT_EQ(s.num_steps, int(grid.timesteps.size()));
    return grid.sigmas;
  };
  const ScheduleConfig dynamic{.use_dynamic_shifting = true, .shift_terminal = 0.1};
  EXPECT_THAT(levels({1, 0.5, 0}, dynamic), ElementsAre(1, 0.7579527497291565f, 0.100000024f, 0));
  EXPECT_THAT(levels({1, 0}, dynamic), ElementsAre(1, 0.100000024f, 0));
  EXPECT_THAT(levels({1, 0.5, 0}, {.shift = 3, .shift_terminal = 0.1}),
              ElementsAre(1, 0.7749999761581421f, 0.100000024f, 0));
  EXPECT_THAT(levels({1, 0.8, 0.5, 0}, {.use_dynamic_shifting = true, .shift_terminal = 0.02}),
              ElementsAre(1, 0.9174606800079346f, 0.7364374399185181f, 0.019999980926513672f, 0));
  auto karras = dynamic;
  karras.spacing = SigmaSpacing::kKarras;
  EXPECT_THAT(levels({1, 0.5, 0}, karras), ElementsAre(1, 0.3474830090999603f, 0.100000024f, 0));
  auto inverted = dynamic;
  inverted.invert_sigmas = true;
  EXPECT_THAT(levels({1, 0.5, 0}, inverted),
              ElementsAre(0, 0.2420472502708435f, 0.8999999761581421f, 1));
}

// Unless others follow from it, it would be a step from 0 to 0.
TEST(Grids, DropALastZeroOrSayWhyNot) {
  const auto kept = [](const Sampling& asked, const ScheduleConfig& config) {
    return settled(asked, {}, {}, sampling_limits(config)).sampling.base_sigmas;
  };
  EXPECT_THAT(kept({.base_sigmas = {1, 0.5, 0}}, {.shift = 3}), ElementsAre(1, 0.5));
  EXPECT_THAT(kept({.base_sigmas = {1, 0.5, 0}, .shift = 3}, {.shift_terminal = 0.1}),
              ElementsAre(1, 0.5));
  const ScheduleConfig karras{.spacing = SigmaSpacing::kKarras};
  EXPECT_THAT(kept({.base_sigmas = {1, 0.5}}, karras), ElementsAre(1, 0.5));
  EXPECT_THAT(message_of([&] {
                kept({.base_sigmas = {1, 0.5, 0}}, karras);
              }),
              HasSubstr("base sigmas should lie above 0, since the model's scheduler spaces"));
}

TEST(Grids, SayHowManyStepsOfBetaAreLeft) {
  std::vector<std::string> warnings;
  const auto s = settled({.schedule = SigmaSchedule::kBeta}, {}, 400, {}, &warnings);
  EXPECT_EQ(s.steps, 400);
  EXPECT_EQ(s.num_steps, 387);  // as in the fixture
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("387 noise levels for 400 steps")));
}

// There are 1000 levels, so 1500 steps meet each of them once, and samplers divide by no 0.
TEST(Grids, TakeEachLevelOfATableOnce) {
  std::vector<std::string> warnings;
  const auto s = settled({.schedule = SigmaSchedule::kSimple}, {}, 1500, {}, &warnings);
  EXPECT_EQ(s.num_steps, 1000);
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("the simple schedule has 1000 noise levels for 1500")));
  const auto grid = make_grid(s.sampling, {}, {.steps = s.steps, .image_tokens = 16, .mu = 0});
  ASSERT_EQ(grid.sigmas.size(), 1001);
  for (int i = 0; i <= 1000; ++i) EXPECT_FLOAT_EQ(grid.sigmas[i], float(1000 - i) / 1000);
}

// A request chooses the sampler and the levels apart; what files name fills the rest.
TEST(Grids, TakeWhatFilesNameForWhatARequestLeavesOpen) {
  const Sampling named{.sampler = Sampler::kErSde, .base_sigmas = {1, 0.5}, .shift = 2};
  const auto open = settled({}, named);
  EXPECT_EQ(open.sampling.sampler, Sampler::kErSde);
  EXPECT_EQ(open.sampling.base_sigmas, named.base_sigmas);
  EXPECT_EQ(open.steps, 2);
  const auto euler = settled({.sampler = Sampler::kEuler}, named);
  EXPECT_EQ(euler.sampling.sampler, Sampler::kEuler);
  EXPECT_EQ(euler.steps, 2);
  const auto beta = settled({.schedule = SigmaSchedule::kBeta}, named, 5);
  EXPECT_TRUE(beta.sampling.base_sigmas.empty());
  EXPECT_EQ(beta.sampling.shift, 2);
  EXPECT_EQ(beta.steps, 5);
  const auto list = settled({.sigmas = {1}}, named);
  EXPECT_FALSE(list.sampling.shift.has_value());
  const auto shift = settled({.shift = 3}, {.sigmas = {1, 0.5}}, 7);
  EXPECT_TRUE(shift.sampling.sigmas.empty());
  EXPECT_EQ(shift.steps, 7);
  EXPECT_EQ(settled({}, {}, {}, {.usual = Sampler::kLcm}).sampling.sampler, Sampler::kLcm);
}

TEST(Grids, SayWhatIsWrong) {
  const auto refusal = [](const Sampling& asked, const SamplingLimits& limits = {}) {
    return message_of([&] { settled(asked, {}, {}, limits); });
  };
  EXPECT_THAT(refusal({.sigmas = {1, 0.5, 0.5}}), HasSubstr("should fall, but 0.5 follows 0.5"));
  EXPECT_THAT(refusal({.sigmas = {1, 0.8, 0.7999999999, 0.2}}), HasSubstr("the same in 32 bits"));
  EXPECT_THAT(refusal({.sigmas = {1, 1e-60}}), HasSubstr("should lie above 0"));
  EXPECT_THAT(
      message_of([] { make_grid({.shift = 1e9}, {}, {.steps = 4, .image_tokens = 16, .mu = 0}); }),
      HasSubstr("a shift of 1e+09 is too far from 1"));
  EXPECT_THAT(refusal({.sigmas = {0.5, 0.7}}), HasSubstr("should fall, but 0.7 follows 0.5"));
  EXPECT_THAT(refusal({.sigmas = {1.5, 1}}), HasSubstr("sigmas should lie above 0 and up to 1"));
  EXPECT_THAT(refusal({.base_sigmas = {1, -0.1}}), HasSubstr("base sigmas should lie above 0"));
  EXPECT_THAT(refusal({.sigmas = {0}}), HasSubstr("one is 0"));
  EXPECT_THAT(refusal({.schedule = SigmaSchedule::kBeta, .sigmas = {1}}), HasSubstr("only one"));
  EXPECT_THAT(refusal({.shift = 0}), HasSubstr("shift should be a number above 0, it is 0"));
  EXPECT_THAT(refusal({.sigmas = {1}, .shift = 2}), HasSubstr("no effect on sigmas"));
  EXPECT_THAT(refusal({.schedule = SigmaSchedule(99)}), HasSubstr("no such schedule as number 99"));
  EXPECT_THAT(refusal({.sampler = Sampler(77)}), HasSubstr("no such sampler as number 77"));
  const SamplingLimits inverted{.is_inverted = true};
  EXPECT_THAT(refusal({.sampler = Sampler::kHeun}, inverted),
              HasSubstr("the sampler heun needs noise levels that fall"));
  EXPECT_THAT(refusal({.sigmas = {1}}, inverted), HasSubstr("takes no schedule and no sigmas"));
}

}  // namespace braid::grids_test

// Schedules: bit for bit diffusers' (tools/parity/dump_schedules.py), and what is refused.
#include "pipeline/sampling/schedule.h"
#include "message_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "pipeline/families/flux/flux.h"
#include "pipeline/families/flux3/flux3.h"
#include "pipeline/families/krea2/krea2.h"
#include "pipeline/families/qwen21/qwen21.h"
#include "pipeline/families/qwen_image/qwen_image.h"

namespace braid::schedule_test {

using testing::HasSubstr;

ScheduleConfig config_of(const std::string& text) {
  return read_schedule_config(parse_json(text, "s.json"), "s.json");
}

std::string hexadecimal(const std::vector<float>& values) {
  std::string out;
  char digits[9];
  for (const float value : values) {
    std::snprintf(digits, sizeof digits, "%08x", std::bit_cast<std::uint32_t>(value));
    out += digits;
  }
  return out;
}

// FNV-1a of the little-endian bytes of sigmas, then timesteps.
std::string checksum(const Schedule& schedule) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const auto* values : {&schedule.sigmas, &schedule.timesteps})
    for (const float value : *values)
      for (int shift = 0; shift < 32; shift += 8)
        sum = (sum ^ (std::bit_cast<std::uint32_t>(value) >> shift & 0xff)) * 0x100000001b3;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(sum));
  return digits;
}

Json golden() { return read_json(BRAID_SOURCE_DIR "/tests/data/parity/schedules.json"); }

// Only FLUX.1's pipeline from text to pictures looks at use_flow_sigmas.
TEST(Schedule, OfFluxTakesTheLevelsOfTrainingOnlyFromNoise) {
  const auto sigmas = [](FluxKind kind, bool has_flow, StartsFrom start) {
    const auto family = make_flux_family({.kind = kind}, {.shift = 3, .use_flow_sigmas = has_flow});
    return family->schedule(4, {.width = 64, .height = 64}, start).sigmas;
  };
  const auto usual = sigmas(FluxKind::kPlain, false, StartsFrom::kNoise);
  EXPECT_NE(sigmas(FluxKind::kPlain, true, StartsFrom::kNoise), usual);
  EXPECT_EQ(sigmas(FluxKind::kPlain, true, StartsFrom::kPicture), usual);
  for (const auto kind : {FluxKind::kFill, FluxKind::kKontext, FluxKind::kControl})
    EXPECT_EQ(sigmas(kind, true, StartsFrom::kNoise), usual);
}

// Their pipelines give the scheduler levels from 1 to 1/steps, which these are the shift of.
TEST(Schedule, OfOtherFamiliesIgnoresTheLevelsOfTraining) {
  const ScheduleConfig flow{.shift = 3, .use_flow_sigmas = true};
  const auto of_levels = make_schedule({.shift = 3}, 4, 16).sigmas;
  ASSERT_NE(make_schedule(flow, 4, 16).sigmas, of_levels);
  for (const auto& family : {make_krea2_family({}, flow, {}), make_qwen21_family({}, flow, {}),
                             make_qwen_image_family({}, flow, {}), make_flux3_family({}, flow, {})})
    EXPECT_EQ(family->schedule(4, {.width = 64, .height = 64}, StartsFrom::kNoise).sigmas,
              of_levels)
        << family->description().family;
}

TEST(Schedule, EqualsDiffusersBitForBit) {
  int compared = 0;
  for (const auto& entry : golden()) {
    const auto config = read_schedule_config(entry["config"], "golden");
    for (const auto& [steps, expected] : entry["schedules"].items()) {
      const auto got = make_schedule(config, std::stoi(steps), entry["tokens"]);
      EXPECT_EQ(hexadecimal(got.sigmas), expected["sigmas"].get<std::string>())
          << entry["config"] << " " << steps;
      EXPECT_EQ(hexadecimal(got.timesteps), expected["timesteps"].get<std::string>())
          << entry["config"] << " " << steps;
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
}

TEST(Schedule, EqualsDiffusersAtEveryNumberOfStepsUpTo50) {
  int compared = 0;
  for (const auto& entry : golden()) {
    const auto config = read_schedule_config(entry["config"], "golden");
    for (const auto& [steps, expected] : entry["checksums"].items()) {
      const auto got = make_schedule(config, std::stoi(steps), entry["tokens"]);
      EXPECT_EQ(checksum(got), expected.get<std::string>())
          << entry["config"] << " " << entry["tokens"] << " " << steps;
      ++compared;
    }
  }
  EXPECT_GT(compared, 2000);
}

TEST(Schedule, GoesDownFromOneToZeroWhateverTheSpacing) {
  for (const char* text :
       {"{}", R"({"use_karras_sigmas": true})", R"({"use_exponential_sigmas": true})",
        R"({"use_beta_sigmas": true})", R"({"use_flow_sigmas": true, "shift": 3})"}) {
    const auto schedule = make_schedule(config_of(text), 200, 4096);
    ASSERT_EQ(schedule.sigmas.size(), 201u);
    ASSERT_EQ(schedule.timesteps.size(), 200u);
    EXPECT_NEAR(schedule.sigmas.front(), 1, 1e-6) << text;
    EXPECT_EQ(schedule.sigmas.back(), 0) << text;
    for (std::size_t i = 0; i < 200; ++i)
      EXPECT_LT(schedule.sigmas[i + 1], schedule.sigmas[i]) << text << " step " << i;
  }
}

TEST(Schedule, GivesOneStepTheWholeWay) {
  const auto schedule = make_schedule({}, 1, 256);
  EXPECT_EQ(schedule.sigmas, (std::vector<float>{1, 0}));
  EXPECT_EQ(schedule.timesteps, (std::vector<float>{1000}));
}

TEST(Schedule, ShiftsByThePublishedLineBetweenTwoSizes) {
  EXPECT_DOUBLE_EQ(dynamic_shift({}, 256), 0.5);
  EXPECT_DOUBLE_EQ(dynamic_shift({}, 4096), 1.15);
  EXPECT_NEAR(dynamic_shift({}, 1024), 0.63, 1e-12);
}

// Diffusers' values: FLUX.2 at 1024 x 1024 in 4 steps, Z-Image's first and last of 8.
TEST(Schedule, TakesAShiftAndLevelsThatAreGiven) {
  const auto near = [](const std::vector<float>& got, const std::vector<double>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 5e-5) << i;
  };
  const auto dynamic = config_of(R"({"use_dynamic_shifting": true})");
  near(make_schedule(dynamic, {.steps = 4, .image_tokens = 4096, .mu = 2.29118}).sigmas,
       {1, 0.9674, 0.9081, 0.7672, 0});
  const auto fixed = config_of(R"({"shift": 3, "use_flow_sigmas": true})");
  near(make_schedule(fixed, {.steps = 2, .image_tokens = 4096, .mu = 9, .levels = {1, 0.125f}})
           .sigmas,
       {1, 0.3, 0});
}

// Values of compute_empirical_mu in diffusers' Flux2Pipeline, from Python.
TEST(Schedule, ShiftsByTheEmpiricalLinesOfFlux2) {
  EXPECT_EQ(empirical_shift(16, 4), 1.9452163656143495);
  EXPECT_EQ(empirical_shift(4096, 50), 2.0233511571292637);
  EXPECT_EQ(empirical_shift(4300, 28), 2.170851489658105);
  EXPECT_EQ(empirical_shift(4301, 28), 1.18469693);
}

TEST(Schedule, EndsAtTheTerminalShift) {
  const auto config = config_of(R"({"shift": 3, "shift_terminal": 0.1})");
  const auto schedule = make_schedule(config, 10, 256);
  EXPECT_NEAR(schedule.sigmas[9], 0.1, 1e-6);
  EXPECT_THAT(message_of([&] { make_schedule(config, 1, 256); }), HasSubstr("at least 2 steps"));
}

TEST(Schedule, RefusesNoSteps) {
  EXPECT_THAT(message_of([] { make_schedule({}, 0, 256); }), HasSubstr("at least 1 step, not 0"));
  EXPECT_THAT(message_of([] { make_schedule({}, -3, 256); }), HasSubstr("not -3"));
}

TEST(Schedule, RefusesOptionsThatGiveNoLevels) {
  const auto config = config_of(
      R"({"use_dynamic_shifting": true, "time_shift_type": "linear", "use_karras_sigmas": true,
          "base_shift": 1.0, "max_shift": 0.1})");
  EXPECT_NO_THROW(make_schedule(config, 10, 256));
  EXPECT_THAT(message_of([&] { make_schedule(config, 10, 19000); }),
              HasSubstr("no noise levels for 19000 image tokens"));
}

// scipy.stats.beta.ppf(q, 0.6, 0.6), itself up to 6e-16 off the true quantile.
TEST(BetaQuantile, EqualsScipy) {
  const std::vector<std::pair<double, double>> golden = {
      {1e-06, 1.8558824624053043e-10},
      {0.001, 1.855873851745199e-05},
      {0.02, 0.002732982024577027},
      {0.02040816326530612, 0.002826505325987209},
      {0.1, 0.03958440558878085},
      {0.25, 0.17568037865269498},
      {0.3333333333333333, 0.2754132907776234},
      {0.499, 0.49861275046460674},
      {0.5001, 0.5001387250945002},
      {0.75, 0.824319621347305},
      {0.98, 0.9972670179754229},
      {0.999, 0.9999814412614826}};
  for (const auto& [q, x] : golden) EXPECT_NEAR(beta_quantile(q), x, 1.5e-15 * x) << q;
}

TEST(BetaQuantile, EqualsScipyBitForBitAtTheEndsAndTheMedian) {
  EXPECT_EQ(beta_quantile(0), 0);
  EXPECT_EQ(beta_quantile(1), 1);
  EXPECT_EQ(beta_quantile(0.5), 0.5000000000000001);
}

TEST(ScheduleConfig, TakesDiffusersDefaults) {
  const auto config = config_of(R"({"shift_terminal": null, "later_option": [1]})");
  EXPECT_EQ(config.num_train_timesteps, 1000);
  EXPECT_EQ(config.shift, 1);
  EXPECT_FALSE(config.use_dynamic_shifting);
  EXPECT_EQ(config.shift_terminal, 0);
  EXPECT_EQ(config.spacing, SigmaSpacing::kShifted);
  EXPECT_EQ(config.time_shift, TimeShift::kExponential);
  EXPECT_FALSE(config.sigma_min.has_value());
}

TEST(ScheduleConfig, ReadsTheModelsFile) {
  const auto path = BRAID_SOURCE_DIR "/models/demo/scheduler/scheduler_config.json";
  EXPECT_TRUE(read_schedule_config(read_json(path), path).use_dynamic_shifting);
}

// What diffusers does not read may be any number that Python writes.
TEST(ScheduleConfig, MayHoldNumbersThatAreNotFinite) {
  const auto read = [](const std::string& text) {
    return read_schedule_config(parse_python_json(text, "s.json"), "s.json");
  };
  EXPECT_EQ(read(R"({"lambda_min_clipped": -Infinity, "shift": 3.0})").shift, 3);
  EXPECT_THAT(message_of([&] { (void)read(R"({"shift_terminal": Infinity})"); }),
              HasSubstr("'shift_terminal' should be a number, it is Infinity"));
}

TEST(ScheduleConfig, NamesItsClassAloneOrInAList) {
  EXPECT_NO_THROW(config_of(R"({"_class_name": ["code", "FlowMatchEulerDiscreteScheduler"]})"));
  EXPECT_THAT(message_of([] { (void)config_of(R"({"_class_name": ["code", "DDIMScheduler"]})"); }),
              HasSubstr("asks for the scheduler DDIMScheduler"));
}

TEST(ScheduleConfig, SaysWhichOptionIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"_class_name": "DDIMScheduler"})", "s.json asks for the scheduler DDIMScheduler"},
      {R"({"use_karras_sigmas": true, "use_beta_sigmas": true})",
       "s.json sets both use_karras_sigmas and use_beta_sigmas"},
      {R"({"time_shift_type": "cubic"})", "should be 'exponential' or 'linear', it is 'cubic'"},
      {R"({"shift": 0})", "'shift' should be above 0"},
      {R"({"shift": "big"})", "'shift' should be a number"},
      {R"({"shift_terminal": 1})", "'shift_terminal' should be at least 0 and below 1"},
      {R"({"num_train_timesteps": 0})", "'num_train_timesteps' should lie between 1 and"},
      {R"({"base_image_seq_len": 4096})", "should differ, both are 4096"},
      {R"({"sigma_min": 0})", "'sigma_min' should be above 0"},
      {R"({"invert_sigmas": 1})", "'invert_sigmas' should be true or false"},
      {"[]", "should hold a JSON object"},
  };
  for (const auto& [text, words] : cases)
    EXPECT_THAT(message_of([&] { config_of(text); }), HasSubstr(words)) << text;
}

}  // namespace braid::schedule_test
